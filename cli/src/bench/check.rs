//! Whether results are right, on every rank.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tutti::Communicator;

use super::buffer::Buffers;
use super::case::Case;
use super::data::{self, Wrong};
use super::places::Places;
use super::timing::Span;

/// Which results are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// None
    #[value(name = "0")]
    Nothing,
    /// One per size, of an iteration that is not timed
    #[value(name = "1")]
    Once,
    /// All of the timed iterations
    #[value(name = "2")]
    Every,
}

/// What one rank found in its own results.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Verdict {
    /// Stands for the bits of all results, where they are to be the same on all ranks.
    hash: u64,
    /// The first element found wrong.
    wrong: Option<Wrong>,
    /// The distance from the data of the first guard byte found overwritten.
    touched: Option<i64>,
}

impl Verdict {
    /// Looks at one more result: every element of it, and the guards. If it is to `corrupt`, a bit of
    /// the result is flipped first.
    pub(super) fn add(
        &mut self,
        case: &Case,
        places: &Places,
        buffers: &mut Buffers,
        corrupt: bool,
    ) {
        let into = &mut buffers.into;
        if corrupt && let Some(run) = places.result.first() {
            let size = case.data_type.size();
            let run = run.at as usize * size..(run.at + run.len) as usize * size;
            flip_a_bit(&mut into.data()[run], size);
        }
        if places.alike {
            self.hash = hash(self.hash, into.data());
        }
        if self.wrong.is_none() {
            self.wrong = data::first_wrong(case, &places.result, into.data());
        }
        self.touched = self.touched.or(into.touched()).or(buffers.from.touched());
    }
}

/// Flips the bit below the highest of the element in the middle: of a float that is the top of
/// its exponent, so the value cannot stay near what it was.
fn flip_a_bit(data: &mut [u8], element: usize) {
    let middle = data.len() / element / 2 * element;
    if let Some(element) = data.get_mut(middle..middle + element) {
        let highest =
            if cfg!(target_endian = "little") { element.last_mut() } else { element.first_mut() };
        *highest.expect("an element has bytes") ^= 0x40;
    }
}

fn hash(seed: u64, data: &[u8]) -> u64 {
    let step =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = data.as_chunks::<8>();
    let hash = words.iter().fold(seed, |hash, word| step(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}

/// Puts all ranks' verdicts together: a sentence per failure, the same list on every rank.
pub(super) fn judge(comm: &Communicator, mine: &Verdict) -> Result<Vec<String>> {
    let blobs = comm.exchange(&serde_json::to_vec(mine)?)?;
    let read = |blob: &Vec<u8>| serde_json::from_slice(blob).context("a rank's verdict is garbled");
    let verdicts = blobs.iter().map(read).collect::<Result<Vec<Verdict>>>()?;
    Ok(failures(&verdicts))
}

fn failures(verdicts: &[Verdict]) -> Vec<String> {
    let mut failures = Vec::new();
    for (rank, verdict) in verdicts.iter().enumerate() {
        if let Some(Wrong { index, expected, found }) = &verdict.wrong {
            failures.push(format!("rank {rank}: element {index} is {found}, expected {expected}"));
        }
        if let Some(at) = verdict.touched {
            failures.push(format!("rank {rank}: a byte outside the data was overwritten, at {at}"));
        }
    }
    // Where elements are wrong the bits differ anyway.
    let odd = verdicts.iter().position(|verdict| verdict.hash != verdicts[0].hash);
    if let (Some(rank), true) = (odd, failures.is_empty()) {
        failures.push(format!("rank {rank} holds other bits than rank 0, within the tolerance"));
    }
    failures
}

/// The first iteration, if any, in which a rank left a barrier before another had entered it.
/// The spans are by rank and iteration and of one clock.
pub(super) fn early_exits(all: &[Vec<Span>]) -> Vec<String> {
    let iterations = all.first().map_or(0, Vec::len);
    let early = |i: usize| {
        let (first, out) =
            all.iter().map(|spans| spans[i].leave).enumerate().min_by_key(|x| x.1)?;
        let (last, into) =
            all.iter().map(|spans| spans[i].enter).enumerate().max_by_key(|x| x.1)?;
        (out < into).then(|| format!("iteration {i}: rank {first} left before rank {last} entered"))
    };
    (0..iterations).find_map(early).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(index: u64) -> Option<Wrong> {
        Some(Wrong { index, expected: "3".into(), found: "7".into() })
    }

    #[test]
    fn equal_verdicts_are_no_failure() {
        let same = || Verdict { hash: 9, ..Verdict::default() };
        assert_eq!(failures(&[same(), same(), same()]), Vec::<String>::new());
    }

    #[test]
    fn failure_names_rank_index_and_both_values() {
        let verdicts = [Verdict::default(), Verdict { hash: 1, wrong: wrong(5), touched: None }];
        assert_eq!(failures(&verdicts), ["rank 1: element 5 is 7, expected 3"]);
    }

    #[test]
    fn bits_that_differ_are_a_failure_even_if_every_element_passes() {
        let verdicts =
            [Verdict::default(), Verdict::default(), Verdict { hash: 1, ..Verdict::default() }];
        let failures = failures(&verdicts);
        assert!(failures[0].starts_with("rank 2 holds other bits"), "{failures:?}");
    }

    #[test]
    fn an_overwritten_guard_is_a_failure() {
        let verdicts = [Verdict { touched: Some(-1), ..Verdict::default() }];
        assert!(failures(&verdicts)[0].contains("outside the data"));
    }

    #[test]
    fn hash_sees_every_byte_and_the_order() {
        let data = [1u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        for at in 0..data.len() {
            let mut other = data;
            other[at] ^= 1;
            assert_ne!(hash(0, &data), hash(0, &other), "byte {at}");
        }
        let [one, two] = [[1; 8], [2; 8]];
        assert_ne!(hash(0, &[one, two].concat()), hash(0, &[two, one].concat()));
    }

    #[test]
    fn a_barrier_that_lets_a_rank_out_early_is_found() {
        let span = |enter, leave| Span { enter, leave };
        let good = [vec![span(0, 9), span(10, 19)], vec![span(5, 7), span(12, 15)]];
        assert_eq!(early_exits(&good), Vec::<String>::new());
        let bad = [vec![span(0, 9), span(10, 11)], vec![span(5, 7), span(12, 15)]];
        assert_eq!(early_exits(&bad), ["iteration 1: rank 0 left before rank 1 entered"]);
    }

    #[test]
    fn a_flipped_bit_changes_just_the_middle_element() {
        let mut data = [0u8; 12];
        flip_a_bit(&mut data, 4);
        assert_eq!(data.iter().position(|byte| *byte != 0).map(|at| at / 4), Some(1));
        flip_a_bit(&mut [], 4);
    }
}
