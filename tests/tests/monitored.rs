//! The barrier that names who is missing, on real communicators.

use std::time::Duration;

use tutti::{Communicator, Config, Error, ErrorKind, Member, Rank, Reduction, TransportChoice};
use tutti_tests::ranks;

/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

fn config(_: Rank) -> Config {
    Config { transport: TransportChoice::Shm, deadline: NEVER, ..Config::default() }
}

fn missing(result: Result<(), Error>) -> Vec<Member> {
    let error = result.unwrap_err();
    let text = error.to_string();
    let ErrorKind::Missing { members, .. } = error.kind else { panic!("{text}") };
    for member in &members {
        assert!(text.contains(&member.to_string()), "{text}");
    }
    members
}

fn add_up(comm: &Communicator) {
    let mut data = vec![1.0_f32; 1000];
    comm.all_reduce(&mut data, Reduction::Sum).unwrap();
    assert_eq!(data, vec![comm.size() as f32; 1000]);
}

#[test]
fn all_pass_when_all_have_come() {
    for size in [1, 2, 5] {
        ranks::run(size, config, |comm| {
            for _ in 0..100 {
                comm.barrier_monitored(NEVER).unwrap();
            }
            add_up(&comm);
        });
    }
}

#[test]
fn who_is_missing_is_named_on_all_and_the_communicator_goes_on() {
    let given_up = std::sync::Barrier::new(5);
    let found = ranks::run(5, config, |comm| {
        let comes_late = [Rank(1), Rank(3)].contains(&comm.rank());
        if comes_late {
            given_up.wait();
        }
        let result = comm.barrier_monitored(Duration::from_secs(1));
        if !comes_late {
            given_up.wait();
        }
        let found = missing(result);
        comm.barrier_monitored(NEVER).unwrap();
        add_up(&comm);
        found
    });
    for members in &found {
        let expected = |member: &Member| (member.rank, member.pid);
        let pid = std::process::id();
        assert_eq!(members.iter().map(expected).collect::<Vec<_>>(), [(1, pid), (3, pid)]);
    }
}

#[test]
fn a_group_has_its_own_barriers() {
    let given_up = std::sync::Barrier::new(2);
    ranks::run(4, config, |comm| {
        let pair = comm.split(Some(comm.rank().0 / 2), 0).unwrap().unwrap();
        match comm.rank() {
            Rank(0) | Rank(1) => pair.barrier_monitored(NEVER).unwrap(),
            Rank(2) => {
                let result = pair.barrier_monitored(Duration::from_millis(50));
                given_up.wait();
                let members = missing(result);
                assert_eq!((members.len(), members[0].rank), (1, 1), "rank 1 of the pair");
            }
            _ => drop(given_up.wait()),
        }
        comm.barrier_monitored(NEVER).unwrap();
    });
}

#[test]
fn a_rank_that_sits_in_another_operation_is_missing() {
    ranks::run(2, config, |comm| {
        let mut data = [1_u8; 4];
        if comm.rank() == Rank(0) {
            let members = missing(comm.barrier_monitored(Duration::from_millis(50)));
            assert_eq!(members[0].rank, 1);
            comm.send(&data, Rank(1)).unwrap();
        } else {
            comm.recv(&mut data, Rank(0)).unwrap();
            missing(comm.barrier_monitored(NEVER));
        }
        comm.barrier_monitored(NEVER).unwrap();
    });
}

#[test]
fn a_failure_ends_the_wait() {
    let texts = ranks::run(3, config, |comm| {
        if comm.rank() == Rank(0) {
            comm.abort();
        }
        comm.barrier_monitored(NEVER).and_then(|()| comm.barrier()).unwrap_err().to_string()
    });
    assert!(texts.iter().all(|text| text.contains("aborted by rank 0")), "{texts:?}");
}
