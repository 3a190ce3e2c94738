//! The figures of a run.

use serde::Serialize;

use crate::case::{Band, Case};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::stats::{geometric_mean, median};

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// A sentence for each peer that could not be measured.
    pub(crate) missing: Vec<String>,
    /// Whether the fastest iteration stands for a round, not the median of all.
    pub(crate) fastest: bool,
    pub(crate) cases: Vec<CaseResults>,
}

/// One case at all sizes.
#[derive(Serialize)]
pub(crate) struct CaseResults {
    #[serde(flatten)]
    pub(crate) case: Case,
    pub(crate) programs: Vec<ProgramResults>,
    /// The sizes in bytes.
    pub(crate) sizes: Vec<u64>,
    /// A sentence for each run that broke off.
    pub(crate) problems: Vec<String>,
    /// A sentence for each wrong result.
    pub(crate) wrong: Vec<String>,
    #[serde(skip)]
    fastest: bool,
}

/// What one program has measured, a peer with one of its settings.
#[derive(Serialize)]
pub(crate) struct ProgramResults {
    pub(crate) name: String,
    /// Whose settings compete with each other.
    pub(crate) library: Library,
    /// What it calls itself.
    pub(crate) version: Option<String>,
    /// Microseconds by size, then by round: what the iterations come to. None if it broke off before.
    pub(crate) times_us: Vec<Vec<Option<f64>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Library {
    Raw,
    Tutti,
    Peer(&'static str),
}

impl Report {
    pub(crate) fn new(machine: Machine, missing: Vec<String>, fastest: bool) -> Self {
        Report { machine, missing, fastest, cases: Vec::new() }
    }

    /// Whether all results were right, and Tutti has measured every size.
    pub(crate) fn is_all_right(&self) -> bool {
        let complete = |case: &CaseResults| {
            (0..case.sizes.len())
                .all(|size| case.times(Library::Tutti, size).iter().all(Option::is_some))
        };
        self.cases.iter().all(|case| case.wrong.is_empty() && complete(case))
    }

    /// What each library calls itself.
    pub(crate) fn versions(&self) -> Vec<&str> {
        let programs = self.cases.iter().flat_map(|case| &case.programs);
        let mut versions = Vec::new();
        for version in programs.filter_map(|program| program.version.as_deref()) {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }
}

impl CaseResults {
    pub(crate) fn new(case: Case, programs: &[Program], fastest: bool) -> Self {
        let programs = programs.iter().map(|program| ProgramResults {
            name: program.to_string(),
            library: program.library(),
            version: None,
            times_us: Vec::new(),
        });
        let (programs, sizes) = (programs.collect(), Vec::new());
        CaseResults { case, programs, sizes, problems: Vec::new(), wrong: Vec::new(), fastest }
    }

    /// Makes room for one more round of a band.
    pub(crate) fn start_round(&mut self, band: &Band) {
        for bytes in self.case.sizes(band) {
            if !self.sizes.contains(&bytes) {
                self.sizes.push(bytes);
                self.programs.iter_mut().for_each(|program| program.times_us.push(Vec::new()));
            }
            let row = self.row(bytes).expect("the size was added above");
            self.programs.iter_mut().for_each(|program| program.times_us[row].push(None));
        }
    }

    /// Adds what a program has measured to the round that was started last.
    pub(crate) fn add(&mut self, index: usize, outcome: Outcome) {
        let name = self.programs[index].name.clone();
        for time in &outcome.times {
            let Some(row) = self.row(time.bytes) else {
                self.problems.push(format!("{name} measured {} B unasked", time.bytes));
                continue;
            };
            if let Some(last) = self.programs[index].times_us[row].last_mut() {
                *last = Some(if self.fastest { time.min_us } else { time.median_us });
            }
            if time.wrong > 0 {
                self.wrong
                    .push(format!("{name} has {} wrong elements at {} B", time.wrong, time.bytes));
            }
        }
        let program = &mut self.programs[index];
        program.version = outcome.library.or(program.version.take());
        if let Some(problem) = outcome.problem.map(|problem| format!("{name}: {problem}"))
            && !self.problems.contains(&problem)
        {
            self.problems.push(problem);
        }
    }

    fn row(&self, bytes: u64) -> Option<usize> {
        self.sizes.iter().position(|size| *size == bytes)
    }

    /// The peers, each once.
    pub(crate) fn peers(&self) -> Vec<&'static str> {
        let mut peers = Vec::new();
        for program in &self.programs {
            if let Library::Peer(name) = program.library
                && !peers.contains(&name)
            {
                peers.push(name);
            }
        }
        peers
    }

    /// A library's time at one size in each round, by the setting that was its fastest in the round.
    pub(crate) fn times(&self, library: Library, size: usize) -> Vec<Option<f64>> {
        let programs = self.programs.iter().filter(|program| program.library == library);
        least_of_rounds(programs.map(|program| program.times_us[size].as_slice()))
    }

    /// The median of that over the rounds, in microseconds.
    pub(crate) fn median(&self, library: Library, size: usize) -> Option<f64> {
        median(&self.times(library, size).into_iter().flatten().collect::<Vec<f64>>())
    }

    /// The time of the fastest peer by ours, in each round that has both.
    pub(crate) fn ratios(&self, size: usize) -> Vec<f64> {
        let peers = self.peers().into_iter().map(|peer| self.times(Library::Peer(peer), size));
        let peers: Vec<Vec<Option<f64>>> = peers.collect();
        let best = least_of_rounds(peers.iter().map(Vec::as_slice));
        let both = best.into_iter().zip(self.times(Library::Tutti, size));
        both.filter_map(|(best, ours)| Some(best? / ours?)).collect()
    }

    /// The geometric mean over the sizes of the ratio's median.
    pub(crate) fn mean_ratio(&self) -> Option<f64> {
        geometric_mean(&self.median_ratios())
    }

    /// The median over the rounds of the ratio, of each size that has one.
    pub(crate) fn median_ratios(&self) -> Vec<f64> {
        (0..self.sizes.len()).filter_map(|size| median(&self.ratios(size))).collect()
    }
}

/// The least of each round.
fn least_of_rounds<'a>(programs: impl Iterator<Item = &'a [Option<f64>]>) -> Vec<Option<f64>> {
    let least = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
    programs.fold(Vec::new(), |fastest, rounds| {
        let fastest = fastest.into_iter().chain(std::iter::repeat(None));
        rounds.iter().zip(fastest).map(|(time, fastest)| least(*time, fastest)).collect()
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::case::{Collective, Transport};
    use crate::outcome::Time;

    /// Two rounds of one size: peers take 4 and 2 µs, then 4 and 9 µs, ours 2 µs, then 4 µs.
    pub(crate) fn example() -> CaseResults {
        let case = Case { collective: Collective::AllReduce, ranks: 2, transport: Transport::Shm };
        let program = |name: &'static str, library| ProgramResults {
            name: name.into(),
            library,
            version: None,
            times_us: Vec::new(),
        };
        let programs = vec![
            program("raw limit", Library::Raw),
            program("Tutti", Library::Tutti),
            program("A", Library::Peer("A")),
            program("A yielding", Library::Peer("A")),
            program("B", Library::Peer("B")),
        ];
        let mut results = CaseResults {
            case,
            programs,
            sizes: Vec::new(),
            problems: Vec::new(),
            wrong: Vec::new(),
            fastest: false,
        };
        for round in [[1.0, 2.0, 9.0, 4.0, 2.0], [1.0, 4.0, 4.0, 8.0, 9.0]] {
            results.start_round(&Band { begin: 8, factor: 2, end: 8, warm_up: 1, iterations: 1 });
            for (index, median_us) in round.into_iter().enumerate() {
                let times = vec![Time { bytes: 8, median_us, min_us: 1.0, wrong: 0 }];
                results.add(index, Outcome { times, ..Outcome::default() });
            }
        }
        results
    }

    #[test]
    fn the_better_setting_of_a_peer_counts() {
        assert_eq!(example().times(Library::Peer("A"), 0), [Some(4.0), Some(4.0)]);
        assert_eq!(example().peers(), ["A", "B"]);
    }

    #[test]
    fn each_round_compares_with_its_own_best_peer() {
        assert_eq!(example().ratios(0), [1.0, 1.0]);
        assert_eq!(example().median(Library::Tutti, 0), Some(3.0));
    }

    #[test]
    fn a_peer_that_broke_off_is_left_out_of_that_round_alone() {
        let mut results = example();
        results.programs[4].times_us[0][0] = None;
        assert_eq!(results.ratios(0), [2.0, 1.0]);
        results.programs[1].times_us[0][1] = None;
        assert_eq!(results.ratios(0), [2.0]);
    }

    #[test]
    fn wrong_results_and_missing_ones_of_ours_are_not_all_right() {
        let report = |case| {
            let machine = Machine::read().unwrap();
            Report { cases: vec![case], ..Report::new(machine, Vec::new(), false) }
        };
        assert!(report(example()).is_all_right());
        let mut wrong = example();
        let times = vec![Time { bytes: 8, median_us: 1.0, min_us: 1.0, wrong: 1 }];
        wrong.add(4, Outcome { times, ..Outcome::default() });
        assert!(!report(wrong).is_all_right());
        let mut missing = example();
        missing.programs[1].times_us[0][0] = None;
        assert!(!report(missing).is_all_right());
    }
}
