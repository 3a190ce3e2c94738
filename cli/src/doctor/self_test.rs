//! Two ranks on this machine that add numbers, over each transport.

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use tutti::{Communicator, Config, Error, Rank, Reduction, Rendezvous, TransportChoice};

use super::checks::segment_bytes;
use super::finding::{Finding, Outcome};
use super::readings::Readings;

const RANKS: u32 = 2;
/// How long the two may wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);
/// Enough for more than one chunk, and odd.
const ELEMENTS: usize = 100_003;

/// Runs the test with the settings of the environment. Blocks until it is over.
pub(super) fn run(readings: &Readings) -> Vec<Outcome> {
    let Ok(config) = &readings.config else { return Vec::new() };
    let test = |transport: TransportChoice| {
        let result = match blocked(readings, config, transport) {
            Some(reason) => Err(reason),
            None => all_reduce(config, transport),
        };
        let name = transport.name();
        let finding = result.err().map(|error| failure(name, &error));
        Outcome { check: format!("self-test over {name}"), finding }
    };
    [TransportChoice::Shm, TransportChoice::Tcp].map(test).into()
}

/// Why the test is not even tried: the system would kill this process.
fn blocked(readings: &Readings, config: &Config, transport: TransportChoice) -> Option<String> {
    let limit = readings.file_size.soft?;
    let exceeds = transport == TransportChoice::Shm && limit < segment_bytes(RANKS, config);
    exceeds.then(|| format!("not tried, for the limit of file sizes is {limit} bytes"))
}

fn failure(transport: &str, error: &str) -> Finding {
    Finding::error(
        format!("an all_reduce of two ranks on this machine over {transport} fails: {error}"),
        "ranks of this machine cannot work together that way",
        "mend what else is found here, and try again with TUTTI_LOG=debug",
    )
}

/// Adds up what two ranks have, on a thread each.
fn all_reduce(config: &Config, transport: TransportChoice) -> Result<(), String> {
    let rendezvous = Rendezvous::bind((Ipv4Addr::LOCALHOST, 0).into()).map_err(in_words)?;
    let id = rendezvous.id();
    let (deadline, start_deadline) = (PATIENCE, PATIENCE);
    let config = Config { transport, deadline, start_deadline, ..config.clone() };
    thread::scope(|scope| {
        let start = |rank| {
            let (id, config) = (&id, config.clone());
            scope.spawn(move || {
                let comm =
                    Communicator::connect(id, Rank(rank), RANKS, config).map_err(in_words)?;
                sum(&comm)
            })
        };
        let ranks = [0, 1].map(start);
        let ended = ranks.map(|rank| rank.join().unwrap_or_else(|_| Err("a rank panicked".into())));
        ended.into_iter().collect()
    })
}

/// Has all ranks of the communicator add up a vector and compares the sum. Blocks until they have.
pub(super) fn sum(comm: &Communicator) -> Result<(), String> {
    let mut data = vec![comm.rank().0 as f32 + 1.0; ELEMENTS];
    comm.all_reduce(&mut data, Reduction::Sum).map_err(in_words)?;
    let size = u64::from(comm.size());
    let expected = (size * (size + 1) / 2) as f32;
    match data.iter().position(|element| *element != expected) {
        None => Ok(()),
        Some(index) => {
            let (rank, found) = (comm.rank(), data[index]);
            Err(format!("rank {rank} has {found} for {expected} in element {index}"))
        }
    }
}

fn in_words(error: Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::readings::Limit;

    #[test]
    fn two_ranks_add_up_over_both_transports() {
        let outcomes = run(&Readings::healthy());
        let names: Vec<_> = outcomes.iter().map(|outcome| &*outcome.check).collect();
        assert_eq!(names, ["self-test over shm", "self-test over tcp"]);
        assert!(outcomes.iter().all(|outcome| outcome.finding.is_none()), "{outcomes:?}");
    }

    #[test]
    fn a_failure_has_the_error_in_it() {
        let readings = Readings::with_variables(&[("TUTTI_SOCKET_IFNAME", "=nowhere0")]);
        let outcomes = run(&readings);
        let finding = outcomes[1].finding.as_ref().unwrap();
        assert!(finding.found.contains("TUTTI_SOCKET_IFNAME"), "{finding:?}");
    }

    #[test]
    fn what_would_kill_this_process_is_not_tried() {
        let file_size = Limit { soft: Some(4096), hard: None };
        let outcomes = run(&Readings { file_size, ..Readings::healthy() });
        let finding = outcomes[0].finding.as_ref().unwrap();
        assert!(finding.found.contains("not tried"), "{finding:?}");
        assert_eq!(outcomes[1].finding, None);
    }
}
