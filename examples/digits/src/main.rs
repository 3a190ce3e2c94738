//! Trains a small network on handwritten digits, with the work split over all ranks.
//!
//! Each rank takes its share of every batch; one `all_reduce` adds the gradients up, and then every
//! rank takes the same step. [`train`] is the loop to copy.

mod data;
mod model;
mod random;
mod report;

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use tutti::{Communicator, Config, Rank, Reduction};

use crate::data::Sample;
use crate::model::{Model, PARAMETERS};
use crate::random::Random;
use crate::report::{Epoch, Format, Summary};

const SEED: u64 = 42;
/// Samples per step, over all ranks.
const BATCH: usize = 48;
const LEARNING_RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;

/// Trains a small network on handwritten digits, with the work split over all ranks
#[derive(Parser)]
#[command(version, after_help = "Example:\n  tutti run -p 4 -- target/release/digits")]
struct Args {
    /// How often to go through the training images
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Print one JSON object per epoch: epoch, loss, accuracy (0 to 1); the summary goes to stderr
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let comm = Communicator::from_env(Config::from_env()?)?;
    let format = if args.json { Format::Json } else { Format::Text };
    let speaks = comm.rank() == Rank(0);

    let summary =
        train(
            &comm,
            args.epochs,
            |epoch| {
                if speaks { report::epoch(format, epoch) } else { Ok(()) }
            },
        )?;
    if speaks {
        report::summary(format, &summary)?;
    }
    Ok(())
}

/// Trains from the same start to the same weights on every rank; tells `observe` of each epoch.
///
/// # Errors
///
/// If a collective fails, `observe` fails, or the ranks' weights differ at the end.
fn train(
    comm: &Communicator,
    epochs: u32,
    mut observe: impl FnMut(&Epoch) -> std::io::Result<()>,
) -> Result<Summary> {
    let data = data::load();
    // Every rank shuffles alike, so nobody needs to be told who takes which sample.
    let mut random = Random::new(SEED);
    let mut order: Vec<&Sample> = data.training.iter().collect();

    let mut trainer = Trainer::new(comm)?;
    let start = Instant::now();
    for number in 1..=epochs {
        random.shuffle(&mut order);
        // What is left over when the batches are full has its turn in another epoch.
        let batches = order.chunks_exact(BATCH);
        let (steps, mut loss) = (batches.len() as f64, 0.0);
        for batch in batches {
            loss += f64::from(trainer.step(batch)?) / steps;
        }
        observe(&Epoch { number, loss, accuracy: trainer.accuracy(&data.test)? })?;
    }

    let all_reduce_share = trainer.in_all_reduce.as_secs_f64() / start.elapsed().as_secs_f64();
    Ok(Summary { ranks: comm.size(), all_reduce_share, weights_hash: trainer.weights_hash()? })
}

/// One rank's copy of the model, kept the same as all others.
struct Trainer<'a> {
    comm: &'a Communicator,
    model: Model,
    velocity: Vec<f32>,
    in_all_reduce: Duration,
}

impl<'a> Trainer<'a> {
    /// Draws the first weights on rank 0 and hands them to all.
    fn new(comm: &'a Communicator) -> Result<Self> {
        let mut model = match comm.rank() {
            Rank(0) => Model::random(&mut Random::new(SEED)),
            _ => Model::zero(),
        };
        comm.broadcast(&mut model.parameters, Rank(0))?;
        let velocity = vec![0.0; PARAMETERS];
        Ok(Self { comm, model, velocity, in_all_reduce: Duration::ZERO })
    }

    /// One step of gradient descent with momentum. Returns the mean loss over the batch.
    fn step(&mut self, batch: &[&Sample]) -> Result<f32> {
        // The loss rides behind the gradient, so that one collective adds up both.
        let mut sums = [0.0; PARAMETERS + 1];
        let (gradient, loss) = sums.split_at_mut(PARAMETERS);
        for sample in &batch[self.share(batch.len())] {
            loss[0] += self.model.add_gradient(sample, gradient);
        }

        let start = Instant::now();
        self.comm.all_reduce(&mut sums, Reduction::Sum)?;
        self.in_all_reduce += start.elapsed();

        let [gradient @ .., loss] = &sums;
        let samples = batch.len() as f32;
        let state = self.model.parameters.iter_mut().zip(&mut self.velocity);
        for ((parameter, velocity), slope) in state.zip(gradient) {
            *velocity = MOMENTUM * *velocity - LEARNING_RATE * slope / samples;
            *parameter += *velocity;
        }
        Ok(loss / samples)
    }

    /// The part of `samples` that the model reads correctly, 0 to 1.
    fn accuracy(&self, samples: &[Sample]) -> Result<f64> {
        let share = &samples[self.share(samples.len())];
        let correct = share.iter().filter(|s| self.model.predict(&s.pixels) == s.label).count();
        let mut correct = [correct as i32];
        self.comm.all_reduce(&mut correct, Reduction::Sum)?;
        Ok(f64::from(correct[0]) / samples.len() as f64)
    }

    /// Which of `count` samples are this rank's: neighbouring ones, as many as the others' or one
    /// more or less.
    fn share(&self, count: usize) -> Range<usize> {
        let (rank, size) = (self.comm.rank().0 as usize, self.comm.size() as usize);
        count * rank / size..count * (rank + 1) / size
    }

    /// FNV-1a of the bits of all weights, once it is sure that they are the same on every rank.
    fn weights_hash(&self) -> Result<u64> {
        let bits: Vec<i32> =
            self.model.parameters.iter().map(|p| p.to_bits().cast_signed()).collect();
        let (mut lowest, mut highest) = (bits.clone(), bits.clone());
        self.comm.all_reduce(&mut lowest, Reduction::Min)?;
        self.comm.all_reduce(&mut highest, Reduction::Max)?;
        let differing = lowest.iter().zip(&highest).filter(|(low, high)| low != high).count();
        ensure!(differing == 0, "{differing} of {PARAMETERS} weights differ between ranks");

        let bytes = bits.iter().flat_map(|b| b.to_le_bytes());
        Ok(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_learns_to_read_95_of_100_digits() {
        let comm = Communicator::from_env(Config::from_env().unwrap()).unwrap();
        let mut accuracy = 0.0;
        train(&comm, 20, |epoch| {
            accuracy = epoch.accuracy;
            Ok(())
        })
        .unwrap();
        assert!(accuracy >= 0.95, "accuracy is {accuracy}");
    }
}
