//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::case::{Case, Collective, Transport};

/// Measures Tutti and its peers in turn, at the same sizes, by the same protocol
#[derive(clap::Parser)]
#[command(name = "benches/peers/run")]
pub(crate) struct Args {
    /// Numbers of ranks
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_value = "2,4,8")]
    ranks: Vec<NonZeroU32>,
    /// What to measure [default: all of them]
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    collectives: Vec<Collective>,
    /// What carries the bytes
    #[arg(long, default_value = "shm")]
    pub(crate) transport: Transport,
    /// Measures fewer sizes, up to 16 MiB, with fewer iterations, and three rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// How often all programs have their turn [default: 5, with --quick 3]
    #[arg(long, value_name = "N", default_value = "5", default_value_if("quick", "true", "3"))]
    pub(crate) rounds: NonZeroU32,
    /// Measures Gloo too, over tcp; it comes with PyTorch, which is large
    #[arg(long)]
    pub(crate) gloo: bool,
    /// Compares the fastest iterations instead of the medians: where others use the machine too
    #[arg(long)]
    pub(crate) fastest: bool,
    /// Writes all figures to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes tables to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Draws the ratio by size into a file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

impl Args {
    pub(crate) fn cases(&self) -> Vec<Case> {
        let all = || Collective::ALL.to_vec();
        let asked = if self.collectives.is_empty() { all() } else { self.collectives.clone() };
        let case = |collective, ranks: &NonZeroU32| Case {
            collective,
            ranks: ranks.get(),
            transport: self.transport,
        };
        let cases = asked.iter().flat_map(|c| self.ranks.iter().map(move |ranks| case(*c, ranks)));
        cases.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_quick_run_has_three_rounds_unless_told_otherwise() {
        let rounds = |line: &str| Args::parse_from(line.split(' ')).rounds.get();
        assert_eq!(rounds("run"), 5);
        assert_eq!(rounds("run --quick"), 3);
        assert_eq!(rounds("run --quick --rounds 7"), 7);
    }

    #[test]
    fn every_collective_is_measured_with_every_number_of_ranks() {
        let args = Args::parse_from(["run", "--ranks", "2,3", "--collectives", "reduce,barrier"]);
        let names: Vec<String> = args.cases().iter().map(Case::to_string).collect();
        let expected = ["reduce, shm, 2 ranks", "reduce, shm, 3 ranks"];
        assert_eq!(names[..2], expected);
        assert_eq!(names.len(), 4);
        assert_eq!(Args::parse_from(["run"]).cases().len(), 21);
    }
}
