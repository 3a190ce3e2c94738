//! Communicators of some of a communicator's ranks: who is in them, that they reduce rightly, and
//! that each fails for itself.

use std::time::Duration;

use tutti::{
    Cause, Collective, Communicator, Config, DataType, Error, ErrorKind, Rank, Reduction, Request,
    TransportChoice,
};
use tutti_tests::processes::Processes;
use tutti_tests::{ranks, reference};

/// Longer than any test takes: an error that comes only at the deadline hangs the test.
const NEVER: Duration = Duration::from_secs(3600);

/// A way to start ranks: by shared memory, by TCP, or by both with neighbours on two hosts.
#[derive(Clone, Copy, Debug)]
enum Way {
    Shm,
    Tcp,
    Mixed,
}

const WAYS: [Way; 3] = [Way::Shm, Way::Tcp, Way::Mixed];

impl Way {
    fn config(self, rank: Rank) -> Config {
        let (transport, host_id) = match self {
            Way::Shm => (TransportChoice::Shm, None),
            Way::Tcp => (TransportChoice::Tcp, None),
            Way::Mixed => (TransportChoice::Auto, Some(format!("host {}", rank.0 % 2))),
        };
        Config { transport, host_id, deadline: NEVER, ..Config::default() }
    }

    fn variables(self, rank: u32) -> Vec<(&'static str, String)> {
        match self {
            Way::Shm => vec![("TUTTI_TRANSPORT", "shm".into())],
            Way::Tcp => vec![("TUTTI_TRANSPORT", "tcp".into())],
            Way::Mixed => vec![("TUTTI_HOST_ID", format!("host {}", rank % 2))],
        }
    }
}

/// Runs `body` on so many ranks, for each way.
fn each_way(size: u32, body: impl Fn(Communicator) + Sync) {
    for way in WAYS {
        ranks::run(size, |rank| way.config(rank), &body);
    }
}

/// An all_reduce with its result compared.
fn check(comm: &Communicator, count: u64) {
    let (rank, ranks) = (comm.rank().0, comm.size());
    let mut data = reference::input(rank, count, ranks, DataType::F32, Reduction::Sum);
    comm.run(&Request::new(Collective::AllReduce, DataType::F32), None, &mut data).unwrap();
    let want = reference::output(count, ranks, DataType::F32, Reduction::Sum);
    assert_eq!(reference::compare(&data, &want, DataType::F32), Ok(()), "rank {rank} of {ranks}");
}

fn cause<T>(result: Result<T, Error>) -> Cause {
    match result.map(drop).unwrap_err().kind {
        ErrorKind::Failed(cause) => (*cause).clone(),
        other => panic!("not a failure: {other}"),
    }
}

/// The members' ranks in `parent`, by their ranks in `group`.
fn members(parent: &Communicator, group: &Communicator) -> Vec<u32> {
    let blobs = group.exchange(&parent.rank().0.to_le_bytes()).unwrap();
    blobs.into_iter().map(|blob| u32::from_le_bytes(blob.try_into().unwrap())).collect()
}

#[test]
fn rows_and_columns_of_a_grid_reduce_over_every_transport() {
    each_way(6, |comm| {
        let (row, column) = (comm.rank().0 / 3, comm.rank().0 % 3);
        let across = comm.split(Some(row), column).unwrap().unwrap();
        let down = comm.split(Some(column), row).unwrap().unwrap();
        assert_eq!((across.size(), across.rank().0), (3, column));
        assert_eq!((down.size(), down.rank().0), (2, row));
        for count in [0, 1, 1000, 100_003] {
            check(&across, count);
            check(&down, count);
            check(&comm, count);
        }
    });
}

#[test]
fn a_group_plans_for_its_own_hosts() {
    let config = |rank: Rank| Way::Mixed.config(rank);
    let seen = ranks::run(4, config, |comm| {
        let same_host = comm.split(Some(comm.rank().0 % 2), 0).unwrap().unwrap();
        let both_hosts = comm.split(Some(comm.rank().0 / 2), 0).unwrap().unwrap();
        let kind = |group: &Communicator| (group.hosts(), group.transport_name());
        (kind(&same_host), kind(&both_hosts))
    });
    assert!(seen.iter().all(|seen| *seen == ((1, "shm"), (2, "tcp"))), "{seen:?}");
}

#[test]
fn ranks_are_ordered_by_key_and_then_by_their_rank_before() {
    ranks::run(
        4,
        |rank| Way::Shm.config(rank),
        |comm| {
            let key = [7, 3, 7, 0][comm.rank().index()];
            let group = comm.split(Some(5), key).unwrap().unwrap();
            assert_eq!(members(&comm, &group), [3, 1, 0, 2]);
            check(&group, 1000);
        },
    );
}

#[test]
fn who_has_no_colour_is_in_no_group() {
    each_way(3, |comm| {
        let color = (comm.rank() != Rank(1)).then_some(0);
        let group = comm.split(color, 0).unwrap();
        assert_eq!(group.is_none(), comm.rank() == Rank(1));
        if let Some(group) = group {
            assert_eq!(members(&comm, &group), [0, 2]);
            check(&group, 1000);
        }
        check(&comm, 1000);
    });
}

#[test]
fn a_group_of_one_works() {
    each_way(2, |comm| {
        let alone = comm.split(Some(comm.rank().0), 0).unwrap().unwrap();
        assert_eq!((alone.size(), alone.transport_name()), (1, "self"));
        check(&alone, 1000);
        let again = alone.split(Some(0), 0).unwrap().unwrap();
        check(&again, 1000);
    });
    let config = || Config::default();
    let comm = ranks::run(1, |_| config(), |comm| comm).remove(0);
    check(&comm.split(Some(3), 0).unwrap().unwrap(), 10);
    assert!(comm.split(None, 0).unwrap().is_none());
    assert!(comm.group(&[]).unwrap().is_none());
}

#[test]
fn a_group_is_split_as_well_and_outlives_its_parents() {
    each_way(6, |comm| {
        let (rank, parity) = (comm.rank().0, comm.rank().0 % 2);
        let three = comm.split(Some(parity), 6 - rank).unwrap().unwrap();
        assert_eq!(members(&comm, &three), [4 + parity, 2 + parity, parity]);
        let color = (three.rank() != Rank(1)).then_some(0);
        let two = three.split(color, 0).unwrap();
        drop(comm);
        drop(three);
        let Some(two) = two else { return };
        check(&two, 1000);
        check(&two.split(Some(0), 0).unwrap().unwrap(), 1000);
    });
}

#[test]
fn lists_of_ranks_make_groups_in_their_order() {
    each_way(4, |comm| {
        let list = [Rank(3), Rank(0), Rank(2)];
        let group = comm.group(&list).unwrap();
        assert_eq!(group.is_none(), comm.rank() == Rank(1));
        if let Some(group) = group {
            assert_eq!(members(&comm, &group), [3, 0, 2]);
            check(&group, 1000);
        }
        let halves = [[Rank(0), Rank(1)], [Rank(2), Rank(3)]];
        let half = comm.group(&halves[comm.rank().index() / 2]).unwrap().unwrap();
        check(&half, 1000);
    });
}

#[test]
fn a_list_that_makes_no_sense_is_refused_on_all_ranks_and_leaves_the_communicator_usable() {
    let lists = |lists: [&'static [u32]; 3]| {
        lists.map(|list| list.iter().copied().map(Rank).collect::<Vec<_>>())
    };
    for (lists, words) in [
        (lists([&[0, 1], &[0, 1], &[2, 2]]), ["rank 2 passes [2, 2]", "rank 2 twice"]),
        (lists([&[0, 1], &[0, 1], &[5]]), ["rank 2 passes [5]", "rank 5 is outside"]),
        (
            lists([&[0, 1], &[1, 2], &[1, 2]]),
            ["rank 0 passes [0, 1]", "rank 1 of these passes [1, 2]"],
        ),
    ] {
        let said = ranks::run(
            3,
            |rank| Way::Shm.config(rank),
            |comm| {
                let error = comm.group(&lists[comm.rank().index()]).map(drop).unwrap_err();
                check(&comm, 10);
                match error.kind {
                    ErrorKind::Argument(what) => what,
                    other => panic!("no argument's fault: {other}"),
                }
            },
        );
        assert!(words.iter().all(|word| said[0].contains(word)), "{said:?}");
        assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
    }
}

#[test]
fn who_calls_something_else_than_split_is_named() {
    let causes = ranks::run(
        3,
        |rank| Way::Shm.config(rank),
        |comm| match comm.rank() {
            Rank(1) => cause(comm.group(&[Rank(0)])),
            _ => cause(comm.split(Some(0), 0)),
        },
    );
    for found in &causes {
        let Cause::Mismatch { odd, odd_call, other_call, .. } = found else { panic!("{causes:?}") };
        let calls = [&**odd_call, &**other_call];
        assert!(odd.rank == 1 || calls == ["split", "group"], "{found}");
        assert!(calls.contains(&"group") && calls.contains(&"split"), "{found}");
    }
}

#[test]
fn who_has_closed_the_communicator_is_no_reason_to_wait_in_split() {
    let causes = ranks::run(
        3,
        |rank| Way::Shm.config(rank),
        |comm| (comm.rank() != Rank(2)).then(|| cause(comm.split(Some(0), 0))),
    );
    for found in causes.iter().flatten() {
        assert!(matches!(found, Cause::Left { member } if member.rank == 2), "{found}");
    }
}

#[test]
fn a_split_that_a_rank_does_not_come_to_ends_at_the_deadline_and_names_it() {
    let over = std::sync::Barrier::new(3);
    let config = |rank| Config { deadline: Duration::from_millis(200), ..Way::Shm.config(rank) };
    let causes = ranks::run(3, config, |comm| {
        let found = (comm.rank() != Rank(1)).then(|| cause(comm.split(Some(0), 0)));
        over.wait();
        found
    });
    let Some(Cause::Deadline { operation, waits_for: Some(member), others, .. }) = &causes[0]
    else {
        panic!("{causes:?}")
    };
    assert_eq!((&**operation, member.rank), ("split", 1));
    assert!(others[2].ends_with("is alive, in split"), "{others:?}");
    assert_eq!(causes[0], causes[2]);
}

#[test]
fn sixteen_groups_are_used_by_four_threads_at_once() {
    each_way(4, |comm| {
        let groups: Vec<Communicator> = (0..16)
            .map(|n| {
                let color = [comm.rank().0 / 2, comm.rank().0 % 2, 0][n % 3];
                comm.split(Some(color), n as u32).unwrap().unwrap()
            })
            .collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mine: Vec<_> = groups.iter().skip(thread).step_by(4).collect();
                scope.spawn(move || {
                    for round in 0..12 {
                        for group in &mine {
                            check(group, [10, 1000, 20_000][round % 3]);
                        }
                    }
                });
            }
        });
    });
}

#[test]
fn a_mismatch_ends_its_group_alone_and_names_both_ranks_of_the_odd_one() {
    each_way(4, |comm| {
        let (row, column) = (comm.rank().0 / 2, comm.rank().0 % 2);
        let across = comm.split(Some(row), column).unwrap().unwrap();
        let down = comm.split(Some(column), row).unwrap().unwrap();
        if row == 1 {
            let found =
                cause(across.all_reduce(&mut vec![0_f32; 10 + column as usize], Reduction::Sum));
            let Cause::Mismatch { odd, other, .. } = &found else { panic!("{found:?}") };
            assert_eq!((odd.rank, odd.world_rank, other.rank, other.world_rank), (1, 3, 0, 2));
            assert!(found.to_string().contains("rank 1 (rank 3 of all, host "), "{found}");
        } else {
            check(&across, 1000);
        }
        check(&down, 1000);
        check(&comm, 1000);
        check(&comm.split(Some(row), column).unwrap().unwrap(), 1000);
    });
}

#[test]
fn an_abort_ends_its_group_alone() {
    each_way(4, |comm| {
        let half = comm.split(Some(comm.rank().0 / 2), 0).unwrap().unwrap();
        match comm.rank() {
            Rank(3) => half.abort(),
            Rank(2) => {
                let found = cause(half.barrier());
                assert!(matches!(&found, Cause::Aborted { member } if member.world_rank == 3));
            }
            _ => check(&half, 1000),
        }
        check(&comm, 1000);
    });
}

#[test]
fn a_killed_rank_ends_the_groups_that_contain_it_and_is_named_there() {
    for way in WAYS {
        let program = env!("CARGO_BIN_EXE_rank");
        let mut processes =
            Processes::start(program, 6, &["grid", "4"], |rank| way.variables(rank));
        let mut lines: Vec<_> = (0..6).map(|rank| processes.lines(rank)).collect();
        lines.iter_mut().for_each(|lines| assert_eq!(lines.next().unwrap().unwrap(), "ready"));
        let pid = processes.kill(4);
        let mut said = |rank: usize| lines[rank].next().unwrap().unwrap();
        for whole in [0, 2] {
            assert_eq!(said(whole), "row: ok, column: ok", "{way:?}");
        }
        let named = format!("process of rank 1 (rank 4 of all, host {}, pid {pid})", ranks::host());
        let one = said(1);
        assert!(one.starts_with("row: ok, column: failed") && one.contains(&named), "{one}");
        for rank in [3, 5] {
            let said = said(rank);
            assert!(said.starts_with("row: failed") && said.contains(&named), "{way:?}: {said}");
            assert!(said.ends_with("column: ok"), "{way:?}: {said}");
        }
    }
}

#[test]
fn more_groups_over_tcp_need_no_more_descriptors() {
    let program = env!("CARGO_BIN_EXE_rank");
    let mut processes =
        Processes::start(program, 3, &["descriptors"], |rank| Way::Tcp.variables(rank));
    for rank in 0..3 {
        let said: Vec<String> = processes.lines(rank).map(Result::unwrap).collect();
        assert_eq!(said.len(), 2, "rank {rank}: {said:?}");
        assert_eq!(said[0], said[1], "rank {rank}");
    }
}
