//! Times of iterations, and the figures that stand for them.

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tutti::Communicator;

/// When one rank was in an operation: nanoseconds of the clock that all processes of a host share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) enter: u64,
    pub(super) leave: u64,
}

/// Nanoseconds since some moment that is the same for all processes of a host.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Tells every rank's spans to every rank: a list per rank, with an entry per iteration.
pub(super) fn share(comm: &Communicator, mine: &[Span]) -> Result<Vec<Vec<Span>>> {
    let numbers = mine.iter().flat_map(|span| [span.enter, span.leave]);
    let blob: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let blobs = comm.exchange(&blob)?;
    let all: Vec<Vec<Span>> = blobs.iter().map(|blob| decode(blob)).collect();
    for (rank, spans) in all.iter().enumerate() {
        let (theirs, mine) = (spans.len(), mine.len());
        ensure!(theirs == mine, "rank {rank} has timed {theirs} iterations, we have timed {mine}");
    }
    Ok(all)
}

fn decode(blob: &[u8]) -> Vec<Span> {
    let (words, _) = blob.as_chunks::<8>();
    let numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (pairs, _) = numbers.as_chunks::<2>();
    pairs.iter().map(|&[enter, leave]| Span { enter, leave }).collect()
}

/// The time of each iteration on its slowest rank, in nanoseconds.
pub(super) fn slowest(all: &[Vec<Span>]) -> Vec<u64> {
    let iterations = all.first().map_or(0, Vec::len);
    let longest =
        |i: usize| all.iter().map(|spans| spans[i].leave.saturating_sub(spans[i].enter)).max();
    (0..iterations).filter_map(longest).collect()
}

/// Figures for the times of all iterations, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// The middle; of an even count the mean of the two in the middle.
    #[serde(rename = "median_us")]
    pub(super) median: f64,
    #[serde(rename = "min_us")]
    pub(super) min: f64,
    #[serde(rename = "mean_us")]
    pub(super) mean: f64,
    /// The least time that at least 95 in 100 iterations do not exceed.
    #[serde(rename = "p95_us")]
    pub(super) p95: f64,
    /// As `p95`, 99 in 100.
    #[serde(rename = "p99_us")]
    pub(super) p99: f64,
}

impl Summary {
    /// # Panics
    ///
    /// If there are no times.
    pub(super) fn of(mut times_ns: Vec<u64>) -> Self {
        times_ns.sort_unstable();
        let times: Vec<f64> = times_ns.into_iter().map(|ns| ns as f64 / 1e3).collect();
        let len = times.len();
        let percentile = |percent: usize| times[(len * percent).div_ceil(100) - 1];
        Summary {
            median: (times[(len - 1) / 2] + times[len / 2]) / 2.0,
            min: times[0],
            mean: times.iter().sum::<f64>() / len as f64,
            p95: percentile(95),
            p99: percentile(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_one_time_is_that_time() {
        let summary = Summary::of(vec![1500]);
        let all = [summary.median, summary.min, summary.mean, summary.p95, summary.p99];
        assert_eq!(all, [1.5; 5]);
    }

    #[test]
    fn median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(Summary::of(vec![4000, 1000, 3000, 2000]).median, 2.5);
        assert_eq!(Summary::of(vec![9000, 1000, 2000]).median, 2.0);
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let summary = Summary::of((1..=100).map(|n| n * 1000).collect());
        assert_eq!((summary.p95, summary.p99, summary.mean), (95.0, 99.0, 50.5));
        let summary = Summary::of((1..=20).map(|n| n * 1000).collect());
        assert_eq!((summary.p95, summary.p99), (19.0, 20.0));
    }

    #[test]
    fn an_iteration_takes_as_long_as_its_slowest_rank() {
        let span = |enter, leave| Span { enter, leave };
        let all = [vec![span(0, 5), span(10, 11)], vec![span(2, 4), span(10, 19)]];
        assert_eq!(slowest(&all), [5, 9]);
    }
}
