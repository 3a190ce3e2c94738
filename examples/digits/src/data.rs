//! The images and their labels. See `data/ATTRIBUTION.md` for where they come from.

use crate::random::Random;

/// Pixels in one image: 8 rows of 8.
pub(crate) const PIXELS: usize = 64;
/// The digits 0 to 9.
pub(crate) const CLASSES: usize = 10;

const CSV: &str = include_str!("../data/digits.csv");
const TRAINING_SAMPLES: usize = 1437;
const SPLIT_SEED: u64 = 1998;

/// One image and the digit it shows.
#[derive(Clone)]
pub(crate) struct Sample {
    /// Ink per pixel, 0 to 1, row by row.
    pub(crate) pixels: [f32; PIXELS],
    /// The digit, 0 to 9.
    pub(crate) label: usize,
}

/// The samples to learn from, and those that only measure.
pub(crate) struct Dataset {
    pub(crate) training: Vec<Sample>,
    pub(crate) test: Vec<Sample>,
}

/// The 1,797 images, shuffled with a fixed seed, then split into 1,437 to train and 360 to test.
///
/// Unshuffled, the file's last 360 rows are a harder test than its rows on average.
pub(crate) fn load() -> Dataset {
    let mut training: Vec<Sample> = CSV.lines().map(sample).collect();
    Random::new(SPLIT_SEED).shuffle(&mut training);
    let test = training.split_off(TRAINING_SAMPLES);
    Dataset { training, test }
}

/// Reads 64 pixels of 0 to 16 and a label, separated by commas.
///
/// # Panics
///
/// If the line is anything else: the file is part of the program.
fn sample(line: &str) -> Sample {
    let values: Vec<u8> = line.split(',').map(|v| v.parse().expect("a number")).collect();
    assert_eq!(values.len(), PIXELS + 1, "values in {line:?}");
    let label = usize::from(values[PIXELS]);
    assert!(label < CLASSES, "label in {line:?}");
    Sample { pixels: std::array::from_fn(|at| f32::from(values[at]) / 16.0), label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_an_8_by_8_image_of_17_shades_and_a_digit() {
        assert_eq!(CSV.lines().count(), 1797);
        for line in CSV.lines() {
            let values: Vec<u8> = line.split(',').map(|v| v.parse().unwrap()).collect();
            assert_eq!(values.len(), 65);
            assert!(values[..64].iter().all(|&pixel| pixel <= 16));
            assert!(values[64] <= 9);
        }
    }

    #[test]
    fn digits_are_as_frequent_as_published() {
        let data = load();
        let mut counts = [0; CLASSES];
        for sample in data.training.iter().chain(&data.test) {
            counts[sample.label] += 1;
        }
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }

    #[test]
    fn split_leaves_360_samples_for_the_test() {
        let data = load();
        assert_eq!((data.training.len(), data.test.len()), (1437, 360));
    }

    #[test]
    fn first_row_is_a_zero_with_its_ink_scaled_to_one() {
        let first = sample(CSV.lines().next().unwrap());
        assert_eq!(first.label, 0);
        assert_eq!(first.pixels[..8], [0.0, 0.0, 0.3125, 0.8125, 0.5625, 0.0625, 0.0, 0.0]);
    }
}
