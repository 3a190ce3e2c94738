//! What goes wrong on one rank is told on all, at once and with the same cause.

use std::time::Duration;

use tutti::{
    Cause, Communicator, Config, DataType, Error, ErrorKind, Rank, Reduction, Rendezvous,
    TransportChoice,
};
use tutti_tests::processes::Processes;
use tutti_tests::ranks;

/// Longer than any test takes: an error that comes only at the deadline hangs the test.
const NEVER: Duration = Duration::from_secs(3600);

fn config(transport: TransportChoice) -> Config {
    Config { transport, deadline: NEVER, ..Config::default() }
}

/// The program whose processes are ranks.
const RANK: &str = env!("CARGO_BIN_EXE_rank");

const TRANSPORTS: [TransportChoice; 2] = [TransportChoice::Shm, TransportChoice::Tcp];

fn cause<T>(result: Result<T, Error>) -> Cause {
    match result.map(drop).unwrap_err().kind {
        ErrorKind::Failed(cause) => (*cause).clone(),
        other => panic!("not a failure: {other}"),
    }
}

/// Rank 2 makes one call, the other three another; all four name both calls and rank 2.
fn all_name_rank_two(
    odd: impl Fn(&Communicator) -> Result<(), Error> + Sync,
    most: impl Fn(&Communicator) -> Result<(), Error> + Sync,
    words: [&str; 2],
) {
    for transport in TRANSPORTS {
        let causes = ranks::run(
            4,
            |_| config(transport),
            |comm| {
                comm.barrier().unwrap();
                let result = if comm.rank() == Rank(2) { odd(&comm) } else { most(&comm) };
                // A rank whose own part was done before anybody noticed is told by its next call.
                cause(result.and_then(|()| comm.barrier()))
            },
        );
        for found in &causes {
            let Cause::Mismatch { odd, odd_call, other_call, .. } = found else {
                panic!("{found:?}")
            };
            assert_eq!(odd.rank, 2, "{found:?}");
            assert!(odd_call.contains(words[0]) && other_call.contains(words[1]), "{found:?}");
            assert_eq!(*found, causes[0], "all ranks are told the same");
        }
    }
}

fn sum(comm: &Communicator, count: usize) -> Result<(), Error> {
    comm.all_reduce(&mut vec![1.0_f32; count], Reduction::Sum)
}

#[test]
fn another_operation_is_named_on_all_ranks() {
    for count in [10, 100_000] {
        let broadcast = |comm: &Communicator| comm.broadcast(&mut vec![1.0_f32; count], Rank(0));
        all_name_rank_two(broadcast, |comm| sum(comm, count), ["broadcast", "all_reduce"]);
        let barrier = |comm: &Communicator| comm.barrier();
        all_name_rank_two(barrier, |comm| sum(comm, count), ["barrier", "all_reduce"]);
    }
}

#[test]
fn another_count_is_named_on_all_ranks() {
    for (count, other) in [(10, 9), (100_000, 99_999), (100_000, 0), (10, 100_000)] {
        let words = [format!("of {other} "), format!("of {count} ")];
        all_name_rank_two(|comm| sum(comm, other), |comm| sum(comm, count), [&words[0], &words[1]]);
    }
}

#[test]
fn another_type_of_the_same_size_is_named_on_all_ranks() {
    for count in [10, 100_000] {
        let ints = |comm: &Communicator| comm.all_reduce(&mut vec![1_i32; count], Reduction::Sum);
        all_name_rank_two(ints, |comm| sum(comm, count), ["int32", "fp32"]);
    }
}

#[test]
fn another_reduction_is_named_on_all_ranks() {
    for count in [10, 100_000] {
        let max = |comm: &Communicator| comm.all_reduce(&mut vec![1.0_f32; count], Reduction::Max);
        all_name_rank_two(max, |comm| sum(comm, count), ["by max", "by sum"]);
    }
}

#[test]
fn a_failed_communicator_says_so_and_a_new_one_works() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let id = rendezvous.id();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let id = &id;
            scope.spawn(move || {
                let connect = || {
                    Communicator::connect(id, Rank(rank), 2, config(TransportChoice::Auto)).unwrap()
                };
                let comm = connect();
                let first = cause(sum(&comm, 100 + rank as usize));
                assert_eq!(cause(sum(&comm, 100)), first);
                assert_eq!(cause(comm.start_all_reduce(vec![1], Reduction::Sum)), first);
                drop(comm);
                sum(&connect(), 100).unwrap();
            });
        }
    });
}

#[test]
fn abort_ends_a_wait_on_all_ranks_and_names_who_called_it() {
    for transport in TRANSPORTS {
        let all_are_out = std::sync::Barrier::new(3);
        let causes = ranks::run(
            3,
            |_| config(transport),
            |comm| {
                comm.barrier().unwrap();
                all_are_out.wait();
                if comm.rank() == Rank(1) {
                    let handle = comm.abort_handle();
                    std::thread::scope(|scope| {
                        scope.spawn(move || {
                            handle.abort();
                            handle.abort();
                        });
                    });
                }
                // Rank 1 never calls this, so that the others wait until the abort.
                if comm.rank() == Rank(1) {
                    cause(comm.barrier())
                } else {
                    cause(sum(&comm, 50_000))
                }
            },
        );
        let aborted =
            |cause: &Cause| matches!(cause, Cause::Aborted { member } if member.rank == 1);
        assert!(causes.iter().all(aborted), "{causes:?}");
    }
}

#[test]
fn a_rank_that_only_tests_is_told_as_well() {
    for transport in TRANSPORTS {
        let causes = ranks::run(
            3,
            |_| config(transport),
            |comm| {
                comm.barrier().unwrap();
                if comm.rank() == Rank(1) {
                    return cause(comm.broadcast(&mut vec![1.0_f32; 100_000], Rank(0)));
                }
                let mut work =
                    comm.start_all_reduce(vec![1.0_f32; 100_000], Reduction::Sum).unwrap();
                while !work.test() {}
                cause(work.wait())
            },
        );
        let named = |cause: &Cause| matches!(cause, Cause::Mismatch { odd, .. } if odd.rank == 1);
        assert!(causes.iter().all(named), "{causes:?}");
    }
}

#[test]
fn a_deadline_says_whom_it_waits_for_and_what_everybody_does() {
    for transport in TRANSPORTS {
        let over = std::sync::Barrier::new(3);
        let short = |_| Config { deadline: Duration::from_millis(300), ..config(transport) };
        let causes = ranks::run(3, short, |comm| {
            comm.barrier().unwrap();
            let found = (comm.rank() != Rank(2)).then(|| cause(sum(&comm, 100_000)));
            over.wait();
            found
        });
        let Some(Cause::Deadline { waits_for, operation, others, .. }) = &causes[0] else {
            panic!("{causes:?}")
        };
        assert!(operation.contains("all_reduce of 100000 fp32"), "{operation}");
        assert!(waits_for.is_some());
        assert!(
            others[2].contains("is alive, not in an operation, the last was #0 barrier"),
            "{others:?}"
        );
        assert_eq!(causes[0], causes[1]);
    }
}

#[test]
fn a_rank_that_leaves_early_is_named() {
    // A single element goes over the board, where no stream shows that its other end is closed.
    for (transport, count) in TRANSPORTS.iter().flat_map(|t| [(*t, 1), (*t, 100_000)]) {
        let causes = ranks::run(
            3,
            |_| config(transport),
            |comm| {
                comm.barrier().unwrap();
                (comm.rank() != Rank(1)).then(|| cause(sum(&comm, count)))
            },
        );
        for found in [&causes[0], &causes[2]] {
            assert!(matches!(found, Some(Cause::Left { member }) if member.rank == 1), "{found:?}");
        }
    }
}

#[test]
fn a_killed_rank_is_named_by_all_others_and_leaves_nothing() {
    kill_rank_two(&["reduce-forever", "64"], "all_reduce of");
}

#[test]
fn a_rank_killed_before_it_sends_is_named_by_all_who_wait_for_it() {
    kill_rank_two(&["receive-forever"], "recv of 1000 fp32 from rank 2 with tag 0 (message 1)");
}

/// Four ranks do what `args` say; when rank 2 is killed the others name it, and their operation.
fn kill_rank_two(args: &[&str], operation: &str) {
    let before = shared_memory_files();
    for transport in ["shm", "tcp", "mixed"] {
        let set = |rank: u32| match transport {
            "mixed" => vec![("TUTTI_HOST_ID", format!("host {}", rank % 2))],
            other => vec![("TUTTI_TRANSPORT", other.to_string())],
        };
        let mut processes = Processes::start(RANK, 4, args, set);
        let mut lines: Vec<_> = (0..4).map(|rank| processes.lines(rank)).collect();
        for lines in &mut lines {
            assert!(lines.next().unwrap().unwrap().starts_with("ready"));
        }
        let pid = processes.kill(2);
        let said: Vec<String> =
            [0, 1, 3].map(|rank: usize| lines[rank].next().unwrap().unwrap()).into();
        for said in &said {
            let named =
                format!("the process of rank 2 (host {}, pid {pid}) has ended", ranks::host());
            assert!(said.starts_with("failed: ") && said.contains(&named), "{transport}: {said}");
            assert!(said.contains(operation), "{transport}: {said}");
        }
        for rank in [0, 1, 3] {
            assert_eq!(processes.exit_code(rank), Some(3));
        }
    }
    assert_eq!(shared_memory_files(), before);
}

fn shared_memory_files() -> Vec<std::path::PathBuf> {
    let files =
        std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.to_string_lossy().contains("tutti")).collect()
}

#[test]
fn a_mismatch_between_processes_is_named_by_all() {
    for transport in ["shm", "tcp"] {
        for kind in ["broadcast", "count", "type", "reduction"] {
            let set = |_| {
                vec![("TUTTI_TRANSPORT", transport.to_string()), ("TUTTI_DEADLINE", "3600".into())]
            };
            let mut processes = Processes::start(RANK, 4, &["mismatch", kind], set);
            for rank in 0..4 {
                let said = processes.lines(rank).next().unwrap().unwrap();
                assert!(
                    said.contains("rank 2 (host") && said.contains(" calls #1 "),
                    "{transport} {kind}: {said}"
                );
            }
        }
    }
}

#[test]
fn sixteen_processes_reduce_over_every_transport() {
    for transport in ["shm", "tcp", "mixed"] {
        let set = |rank: u32| match transport {
            "mixed" => vec![("TUTTI_HOST_ID", format!("host {}", rank % 3))],
            other => vec![("TUTTI_TRANSPORT", other.to_string())],
        };
        let mut processes = Processes::start(RANK, 16, &["once"], set);
        for rank in 0..16 {
            assert_eq!(
                processes.lines(rank).next().unwrap().unwrap(),
                "ok",
                "{transport}, rank {rank}"
            );
        }
    }
}

#[test]
fn bits_of_another_rank_do_not_pass_the_reference() {
    // The reference itself must notice: the one check all tests stand on.
    let mut data = tutti_tests::reference::output(10, 4, DataType::F32, Reduction::Sum);
    let want = data.clone();
    data[21] ^= 1;
    assert!(
        tutti_tests::reference::compare(&data, &want, DataType::F32)
            .unwrap_err()
            .contains("element 5")
    );
}
