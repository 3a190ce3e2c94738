//! Messages between two ranks over every transport, on real communicators.

use std::collections::VecDeque;
use std::time::Duration;

use tutti::{
    Cause, Communicator, Config, Envelope, Error, ErrorKind, Point, Rank, Reduction,
    TransportChoice,
};
use tutti_tests::ranks;

/// Longer than any test takes: an error that comes only at the deadline hangs the test.
const NEVER: Duration = Duration::from_secs(3600);

/// Runs `body` on `size` ranks over shared memory, over TCP, and over both at once.
fn over_all<R: Send>(
    size: u32,
    deadline: Duration,
    body: impl Fn(Communicator) -> R + Sync,
) -> Vec<Vec<R>> {
    let spread = |rank: Rank| Some(format!("host {}", rank.0 % 2));
    let configs: [&(dyn Fn(Rank) -> Config + Sync); 3] = [
        &|_| Config { transport: TransportChoice::Shm, deadline, ..Config::default() },
        &|_| Config { transport: TransportChoice::Tcp, deadline, ..Config::default() },
        &|rank| Config { host_id: spread(rank), deadline, ..Config::default() },
    ];
    configs.iter().map(|config| ranks::run(size, config, &body)).collect()
}

/// What `from` sends to `to` as its message `n`: differs in each.
fn content(from: Rank, to: Rank, n: usize, len: usize) -> Vec<u8> {
    let seed = from.0 as usize * 31 + to.0 as usize * 7 + n * 13;
    // A prime length: nothing that a transport cuts by repeats with it.
    let block: Vec<u8> = (0..65_521).map(|i| (i * 5 + i / 251 + seed) as u8).collect();
    let mut bytes = block.repeat(len / block.len() + 1);
    bytes.truncate(len);
    bytes
}

fn cause<T>(result: Result<T, Error>) -> Cause {
    match result.map(drop).unwrap_err().kind {
        ErrorKind::Failed(cause) => (*cause).clone(),
        other => panic!("not a failure: {other}"),
    }
}

fn ring(comm: &Communicator) -> (Rank, Rank) {
    let (rank, size) = (comm.rank().0, comm.size());
    (Rank((rank + 1) % size), Rank((rank + size - 1) % size))
}

#[test]
fn a_message_goes_around_a_ring() {
    for size in [1, 2, 3, 5] {
        over_all(size, NEVER, |comm| {
            let (next, before) = ring(&comm);
            for len in [0, 1, 31, 32, 33, 993, 100_003, 3 << 20] {
                let mine = content(comm.rank(), next, 0, len);
                let mut theirs = vec![0; len];
                comm.batch(&mut [Point::send(&mine, next), Point::recv(&mut theirs, before)])
                    .unwrap();
                assert!(theirs == content(before, comm.rank(), 0, len), "{len} bytes");
            }
        });
    }
}

#[test]
fn blocking_sends_and_receives_take_turns() {
    over_all(2, NEVER, |comm| {
        let (me, other) = (comm.rank(), Rank(1 - comm.rank().0));
        for len in [0, 1, 7, 1001, 64 << 20] {
            let (mine, mut theirs) = (content(me, other, 0, len), vec![0; len]);
            if me == Rank(0) {
                comm.send(&mine, other).unwrap();
                comm.recv(&mut theirs, other).unwrap();
            } else {
                comm.recv(&mut theirs, other).unwrap();
                comm.send(&mine, other).unwrap();
            }
            assert!(theirs == content(other, me, 0, len), "{len} bytes");
        }
    });
}

/// A number below `below`, and the state after it (xorshift).
fn random(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % below as u64) as usize
}

fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random(state, last + 1));
    }
}

#[test]
fn a_batch_of_all_pairs_is_right_in_any_order() {
    let seed = std::env::var("SEED").ok().map_or_else(
        || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1,
        |seed| seed.parse().expect("SEED is a number"),
    );
    println!("SEED={seed}");
    over_all(5, NEVER, |comm| {
        let me = comm.rank();
        let mut common = seed;
        let mut own = seed ^ (u64::from(me.0 + 1) << 32);
        for _ in 0..10 {
            let lengths: Vec<usize> = (0..3).map(|_| random(&mut common, 400_000)).collect();
            let numbered = || (0..5).map(Rank).flat_map(|rank| (0..3).map(move |n| (rank, n)));
            let sent: Vec<_> = numbered().map(|(to, n)| content(me, to, n, lengths[n])).collect();
            let mut got: Vec<_> = numbered().map(|(_, n)| vec![0; lengths[n]]).collect();
            let sends = numbered().zip(&sent).map(|((to, n), data)| {
                let tag = n as u32;
                Point::send(data, Envelope { peer: to, tag })
            });
            let receives = numbered().zip(&mut got).map(|((from, n), data)| {
                let tag = n as u32;
                Point::recv(data, Envelope { peer: from, tag })
            });
            // Between two ranks the order is kept; that of the ranks is shuffled.
            let points: Vec<Point> = sends.chain(receives).collect();
            let mut turns: Vec<usize> = (0..points.len()).map(|index| index / 3).collect();
            shuffle(&mut turns, &mut own);
            let mut lanes: Vec<VecDeque<Point>> = (0..10).map(|_| VecDeque::new()).collect();
            points.into_iter().enumerate().for_each(|(n, point)| lanes[n / 3].push_back(point));
            let points = turns.iter().map(|&lane| lanes[lane].pop_front().expect("three in each"));
            comm.batch(&mut points.collect::<Vec<_>>()).unwrap();
            for ((from, n), data) in numbered().zip(&got) {
                assert!(*data == content(from, me, n, lengths[n]), "{from} to {me}, SEED={seed}");
            }
        }
    });
}

#[test]
fn a_receive_from_any_collects_from_all() {
    over_all(5, NEVER, |comm| {
        let me = comm.rank();
        for len in [0, 5, 300_000] {
            comm.barrier().unwrap();
            if me != Rank(2) {
                comm.send(&content(me, Rank(2), 0, len), Envelope { peer: Rank(2), tag: 4 })
                    .unwrap();
                continue;
            }
            let mut seen: Vec<u32> = (0..4)
                .map(|_| {
                    let mut data = vec![0; len];
                    let from = comm.recv_any(&mut data, 4).unwrap();
                    assert!(data == content(from, me, 0, len));
                    from.0
                })
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 3, 4]);
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn messages_and_collectives_keep_out_of_each_others_way() {
    over_all(4, NEVER, |comm| {
        let me = comm.rank();
        for count in [1_usize, 50_000] {
            for round in 0..20_usize {
                let mut sum = vec![1_i64; count];
                comm.all_reduce(&mut sum, Reduction::Sum).unwrap();
                assert!(sum.iter().all(|sum| *sum == 4));
                // One pair talks while the others go on.
                let mut data = content(Rank(0), Rank(3), round, count);
                match me {
                    Rank(0) => comm.send(&data, Rank(3)).unwrap(),
                    Rank(3) => {
                        data.fill(0);
                        comm.recv(&mut data, Rank(0)).unwrap();
                        assert!(data == content(Rank(0), Rank(3), round, count));
                    }
                    _ => {}
                }
                let root = Rank(round as u32 % 4);
                let mut told = vec![me.0 as i32; count];
                comm.broadcast(&mut told, root).unwrap();
                assert!(told.iter().all(|told| *told == root.0 as i32));
            }
        }
    });
}

#[test]
fn a_pair_talks_while_others_do_nothing() {
    let talked = std::sync::Barrier::new(4);
    over_all(4, Duration::from_secs(60), |comm| {
        let mut data = vec![comm.rank().0 as i32; 100_000];
        match comm.rank() {
            Rank(1) => comm.send(&data, Rank(2)).unwrap(),
            Rank(2) => comm.recv(&mut data, Rank(1)).unwrap(),
            _ => {}
        }
        talked.wait();
        assert!(comm.rank() != Rank(2) || data == [1; 100_000]);
    });
}

#[test]
fn messages_of_a_group_go_by_its_ranks_and_beside_those_of_all() {
    over_all(5, NEVER, |comm| {
        let me = comm.rank();
        // The odd and the even ranks, each backwards.
        let group = comm.split(Some(me.0 % 2), 5 - me.0).unwrap().unwrap();
        let (next, before) = ring(&comm);
        let mut from_all = vec![0; 100_000];
        let mine = content(me, next, 0, 100_000);
        let sent = comm.start_send(mine, next).unwrap();
        let last = Rank(group.size() - 1);
        if group.rank() == last {
            for _ in 0..last.0 {
                let mut world = [0_i32];
                let from = group.recv_any(&mut world, 0).unwrap();
                assert_eq!(world[0] as u32, me.0 + 2 * (last.0 - from.0));
            }
        } else {
            group.send(&[me.0 as i32], last).unwrap();
        }
        comm.recv(&mut from_all, before).unwrap();
        assert!(from_all == content(before, me, 0, 100_000));
        sent.wait().unwrap();
    });
}

#[test]
fn a_message_outlives_its_sender() {
    let gone = std::sync::Barrier::new(2);
    over_all(2, NEVER, |comm| {
        comm.barrier().unwrap();
        let mut data = [7_i32; 100];
        if comm.rank() == Rank(1) {
            comm.send(&data, Rank(0)).unwrap();
            drop(comm);
            gone.wait();
        } else {
            data.fill(0);
            gone.wait();
            comm.recv(&mut data, Rank(1)).unwrap();
            assert_eq!(data, [7; 100]);
            let found = cause(comm.recv(&mut data, Rank(1)));
            assert!(matches!(found, Cause::Left { member } if member.rank == 1));
        }
    });
}

#[test]
fn started_messages_in_opposite_orders_do_not_block() {
    over_all(2, NEVER, |comm| {
        let (me, other) = (comm.rank(), Rank(1 - comm.rank().0));
        let len = 1 << 20;
        let send = || comm.start_send(content(me, other, 0, len), other).unwrap();
        let recv = || comm.start_recv(vec![0; len], other).unwrap();
        let want = content(other, me, 0, len);
        // Both send first, and wait for that first.
        let (sent, got) = (send(), recv());
        sent.wait().unwrap();
        assert!(got.wait().unwrap() == want);
        // The one waits for its send, the other for its receive.
        let (sent, got) = (send(), recv());
        if me == Rank(0) {
            sent.wait().unwrap();
            assert!(got.wait().unwrap() == want);
        } else {
            assert!(got.wait().unwrap() == want);
            sent.wait().unwrap();
        }
        // A blocking receive takes a started send along.
        let (sent, mut got) = (send(), vec![0; len]);
        comm.recv(&mut got, other).unwrap();
        assert!(got == want);
        sent.wait().unwrap();
        // One that nobody waits for is done before the collective.
        drop(send());
        let got = recv();
        comm.barrier().unwrap();
        assert!(got.wait().unwrap() == want);
    });
}

#[test]
fn a_started_receive_from_any_says_whose_message_it_is() {
    over_all(3, NEVER, |comm| {
        let me = comm.rank();
        if me != Rank(0) {
            return comm.send(&[me.0 as i32], Rank(0)).unwrap();
        }
        let mut works: Vec<_> =
            (0..2).map(|_| comm.start_recv_any(vec![0_i32], 0).unwrap()).collect();
        while !works[1].test() {}
        let came = works.into_iter().map(|work| work.wait().unwrap());
        let mut came: Vec<_> = came.map(|(data, from)| (data[0], from)).collect();
        came.sort_unstable();
        assert_eq!(came, [(1, Rank(1)), (2, Rank(2))]);
    });
}

#[test]
fn a_message_to_oneself_needs_both_its_ends() {
    over_all(2, NEVER, |comm| {
        let (me, mine) = (comm.rank(), [1_u8, 2, 3]);
        for result in [comm.send(&mine, me), comm.recv(&mut [0_u8; 3], me)] {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("itself would wait for ever"), "{text}");
        }
        let mut back = [0; 3];
        comm.batch(&mut [Point::recv(&mut back, me), Point::send(&mine, me)]).unwrap();
        assert_eq!(back, mine);
        let got = comm.start_recv(vec![0_u8; 3], me).unwrap();
        comm.send(&mine, me).unwrap();
        assert_eq!(got.wait().unwrap(), mine);
        let mut points = [Point::send(&mine, me), Point::recv_any(&mut back, 0)];
        comm.batch(&mut points).unwrap();
        assert_eq!(points.map(|point| point.source()), [None, Some(me)]);
    });
}

#[test]
fn arguments_that_make_no_sense_change_nothing() {
    over_all(2, NEVER, |comm| {
        let other = Rank(1 - comm.rank().0);
        let refused = [
            (comm.send(&[1_u8], Rank(2)), "send: rank 2 is outside a group of 2"),
            (comm.recv(&mut [1_u8], Rank(9)), "recv: rank 9 is outside a group of 2"),
            (comm.send_bytes(&[0; 7], tutti::DataType::F32, other), "7 bytes are no whole number"),
        ];
        for (result, words) in refused {
            let error = result.unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Argument(_)), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        comm.batch(&mut []).unwrap();
        comm.barrier().unwrap();
    });
}

/// Rank 1 sends to rank 2 what does not fit to its receive; all ranks name both.
fn both_are_named(
    send: impl Fn(&Communicator) -> Result<(), Error> + Sync,
    recv: impl Fn(&Communicator) -> Result<(), Error> + Sync,
    [sent, received]: [&str; 2],
) {
    let found = over_all(4, NEVER, |comm| {
        // Some may still be in the barrier when the others have failed.
        let result = comm.barrier().and_then(|()| match comm.rank() {
            Rank(1) => send(&comm),
            Rank(2) => recv(&comm),
            _ => Ok(()),
        });
        // Who has no part in it, or has sent all, is told by its next call.
        cause(result.and_then(|()| comm.recv(&mut [0_u8], Rank((comm.rank().0 + 3) % 4))))
    });
    for found in &found {
        for one in found {
            let Cause::Mismatch { odd, odd_call, other, other_call } = one else { panic!("{one}") };
            assert_eq!((odd.rank, other.rank), (1, 2), "{one}");
            assert!(odd_call.contains(sent) && other_call.contains(received), "{one}");
            assert_eq!(one, &found[0], "all ranks are told the same");
        }
    }
}

#[test]
fn another_tag_count_or_type_is_named() {
    let send = |comm: &Communicator| comm.send(&[1_i32; 10], Envelope { peer: Rank(2), tag: 5 });
    let recv = |comm: &Communicator| comm.recv(&mut [0_i32; 10], Rank(1));
    both_are_named(
        send,
        recv,
        [
            "send of 10 int32 to rank 2 with tag 5 (message 0)",
            "recv of 10 int32 from rank 1 with tag 0 (message 0)",
        ],
    );
    for (count, other) in [(10, 11), (0, 1), (500_000, 1), (1, 500_000)] {
        let send = |comm: &Communicator| comm.send(&vec![1_i32; count], Rank(2));
        let recv = |comm: &Communicator| comm.recv(&mut vec![0_i32; other], Rank(1));
        let words = [format!("send of {count} int32"), format!("recv of {other} int32")];
        both_are_named(send, recv, [&words[0], &words[1]]);
    }
    let recv =
        |comm: &Communicator| comm.recv(&mut [0_f32; 10], Envelope { peer: Rank(1), tag: 5 });
    both_are_named(send, recv, ["send of 10 int32", "recv of 10 fp32"]);
}

#[test]
fn a_receive_from_any_that_does_not_fit_names_the_sender() {
    let send = |comm: &Communicator| comm.send(&[1_i32; 10], Rank(2));
    let recv = |comm: &Communicator| comm.recv_any(&mut [0_i32; 9], 0).map(drop);
    both_are_named(send, recv, ["send of 10 int32", "recv of 9 int32 from rank 1"]);
}

#[test]
fn a_collective_at_the_one_end_of_a_message_is_named() {
    for sends in [false, true] {
        // In streams the two meet. A collective over the board meets no message: the ranks are told
        // at the deadline what each of them is in.
        let found = over_all(2, Duration::from_millis(500), |comm| {
            // More than any transport takes ahead of its receive.
            let mut data = vec![0_u8; 64 << 20];
            cause(match comm.rank() {
                Rank(0) => comm.all_reduce(&mut data, Reduction::Sum),
                _ if sends => comm.send(&data, Rank(0)),
                _ => comm.recv(&mut data, Rank(0)),
            })
        });
        for one in found.iter().flatten() {
            let text = one.to_string();
            let message = if sends { "send" } else { "recv" };
            assert!(text.contains("all_reduce") && text.contains(message), "{text}");
        }
    }
}

#[test]
fn two_ranks_that_both_send_first_are_told_that_they_wait_for_each_other() {
    let found = over_all(3, Duration::from_millis(300), |comm| {
        let data = vec![0_u8; 64 << 20];
        (comm.rank() != Rank(2)).then(|| cause(comm.send(&data, Rank(1 - comm.rank().0))))
    });
    for found in &found {
        let [Some(one), Some(other), None] = &found[..] else { panic!("{found:?}") };
        assert_eq!(one, other);
        let text = one.to_string();
        assert!(text.contains("in send of 67108864 uint8 to rank"), "{text}");
        let circle =
            ["rank 0 waits for rank 1, which waits for rank 0: none of them can go on", ""];
        let turned = "rank 1 waits for rank 0, which waits for rank 1: none of them can go on";
        assert!(text.contains(circle[0]) || text.contains(turned), "{text}");
    }
}

#[test]
fn a_receive_beyond_the_deadline_says_what_the_sender_does() {
    let over = std::sync::Barrier::new(3);
    let found = over_all(3, Duration::from_millis(300), |comm| {
        comm.barrier().unwrap();
        let found = (comm.rank() == Rank(0)).then(|| cause(comm.recv(&mut [0_u8; 4], Rank(1))));
        over.wait();
        found
    });
    for found in &found {
        let Some(Cause::Deadline { operation, waits_for, others, .. }) = &found[0] else {
            panic!("{found:?}")
        };
        assert!(operation.contains("recv of 4 uint8 from rank 1"), "{operation}");
        assert_eq!(waits_for.as_ref().map(|member| member.rank), Some(1));
        assert!(others[1].contains("not in an operation, the last was #0 barrier"), "{others:?}");
    }
}
