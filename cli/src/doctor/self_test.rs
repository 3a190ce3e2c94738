//! A small job in this process: whether shared memory and TCP work here at all.

use std::net::Ipv4Addr;
use std::time::Duration;

use tutti::{Communicator, Config, Rank, Reduction, Rendezvous, TransportChoice};

use super::{Finding, Severity};

/// How long the ranks may take to meet, and to reduce.
const LIMIT: Duration = Duration::from_secs(10);

/// What does not work; nothing if all does.
pub(super) fn findings() -> Vec<Finding> {
    let transports = [("shm", TransportChoice::Shm), ("tcp", TransportChoice::Tcp)];
    let failed = transports.into_iter().filter_map(|(name, transport)| {
        let problem = two_ranks(transport).err()?;
        Some(Finding {
            check: format!("self_test_{name}"),
            severity: Severity::Error,
            found: format!("two ranks on this machine do not reduce over {name}: {problem}"),
            why: "jobs on this machine fail in the same way".into(),
            remedy: "follow the message; the findings above may tell more".into(),
        })
    });
    failed.collect()
}

/// Has two ranks, a thread each, reduce a vector that is too long for one message.
fn two_ranks(transport: TransportChoice) -> Result<(), String> {
    let rendezvous =
        Rendezvous::bind((Ipv4Addr::LOCALHOST, 0).into()).map_err(|e| e.to_string())?;
    let id = rendezvous.id();
    let rank = |rank: u32| -> Result<(), String> {
        let config =
            Config { transport, deadline: LIMIT, start_deadline: LIMIT, ..Config::default() };
        let comm = Communicator::connect(&id, Rank(rank), 2, config).map_err(|e| e.to_string())?;
        let mut data = vec![rank as i32 + 1; 100_000];
        comm.all_reduce(&mut data, Reduction::Sum).map_err(|e| e.to_string())?;
        match data.iter().all(|sum| *sum == 3) {
            true => Ok(()),
            false => Err("the result is wrong".into()),
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rank(1));
        let first = rank(0);
        first.and(other.join().unwrap_or_else(|_| Err("a rank panicked".into())))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_transports_work_where_the_tests_run() {
        assert_eq!(super::findings(), []);
    }
}
