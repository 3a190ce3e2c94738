//! Trains two layers on a grid of ranks: tensor-parallel along the rows, data-parallel along the
//! columns.
//!
//! Each rank of a row holds a part of the second layer; all rows hold the same, and each sees its
//! share of the samples. So gradients come together in two stages, which [`Trainer::synchronise`]
//! shows. In the end every rank compares its weights with those of a training without any others.

mod model;

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tutti::{Communicator, Config, Rank, Reduction};

use crate::model::{Gradient, Model, OUTPUTS, SAMPLES, Sample};

const STEPS: u32 = 200;
const LEARNING_RATE: f32 = 0.4;
/// What another order of summing may do to a weight.
const TOLERANCE: f32 = 1e-4;

/// Trains two layers on a grid of ranks, and compares with a training on one
#[derive(Parser)]
#[command(version, after_help = "Example:\n  tutti run -p 4 -- target/release/grid 2 2")]
struct Args {
    /// Ranks that share a model: the length of a row
    #[arg(value_parser = clap::value_parser!(u32).range(1..=OUTPUTS as i64))]
    tensor_parallel: u32,
    /// Ranks that share the samples: the length of a column
    #[arg(value_parser = clap::value_parser!(u32).range(1..=SAMPLES as i64))]
    data_parallel: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let world = Communicator::from_env(Config::from_env()?)?;
    let trained = Trainer::new(&world, args.tensor_parallel, args.data_parallel)?.train()?;

    let alone = world.split(Some(world.rank().0), 0)?.context("a colour for each")?;
    let reference = Trainer::new(&alone, 1, 1)?.train()?;
    let mut difference = [trained.largest_difference(&reference)];
    world.all_reduce(&mut difference, Reduction::Max)?;

    ensure!(difference[0] <= TOLERANCE, "weights differ by {} from one rank's", difference[0]);
    if world.rank() == Rank(0) {
        let Args { tensor_parallel, data_parallel } = args;
        println!(
            "{tensor_parallel} x {data_parallel} ranks, {STEPS} steps, loss {:.6}",
            trained.loss
        );
        println!("weights as on one rank: yes, to within {:.1e}", difference[0]);
    }
    Ok(())
}

/// One rank's place in the grid, and its part of the model.
struct Trainer {
    /// The ranks with which this one shares a model.
    row: Communicator,
    /// The ranks with the same part of it.
    column: Communicator,
    /// The outputs that this rank computes.
    outputs: Range<usize>,
    samples: Vec<Sample>,
    model: Model,
}

/// What a training ends with.
struct Trained {
    outputs: Range<usize>,
    model: Model,
    /// The mean over all samples, before the last step.
    loss: f32,
}

impl Trainer {
    /// Lays the ranks of `world` out row by row.
    fn new(world: &Communicator, tensor_parallel: u32, data_parallel: u32) -> Result<Trainer> {
        let (rank, size) = (world.rank().0, world.size());
        ensure!(
            size == tensor_parallel * data_parallel,
            "a grid of {tensor_parallel} x {data_parallel} needs {} ranks, there are {size}",
            tensor_parallel * data_parallel
        );
        let (y, x) = (rank / tensor_parallel, rank % tensor_parallel);
        let row = world.split(Some(y), x)?.context("every rank has a row")?;
        let column = world.split(Some(x), y)?.context("every rank has a column")?;
        let outputs = share(OUTPUTS, &row);
        let samples = share(SAMPLES, &column).map(Sample::numbered).collect();
        let model = Model::first(outputs.clone());
        Ok(Trainer { row, column, outputs, samples, model })
    }

    fn train(mut self) -> Result<Trained> {
        let mut loss = 0.0;
        for _ in 0..STEPS {
            let mut gradient = Gradient::zero(self.outputs.len());
            for sample in &self.samples {
                self.model.add_gradient(sample, self.outputs.clone(), &mut gradient);
            }
            self.synchronise(&mut gradient)?;
            loss = gradient.loss[0] / SAMPLES as f32;
            self.model.step(&gradient, LEARNING_RATE / SAMPLES as f32);
        }
        Ok(Trained { outputs: self.outputs, model: self.model, loss })
    }

    /// From this rank's part of the gradient to the whole.
    fn synchronise(&self, gradient: &mut Gradient) -> Result<()> {
        // What flows back into the first layer comes from all outputs, and so does the loss.
        self.row.all_reduce(&mut gradient.first, Reduction::Sum)?;
        self.row.all_reduce(&mut gradient.loss, Reduction::Sum)?;
        // Now every rank has the gradient of its weights for the samples of its row.
        self.column.all_reduce(&mut gradient.first, Reduction::Sum)?;
        self.column.all_reduce(&mut gradient.second, Reduction::Sum)?;
        self.column.all_reduce(&mut gradient.loss, Reduction::Sum)?;
        Ok(())
    }
}

impl Trained {
    /// Between weights of this and the same ones of `whole`, which has all.
    fn largest_difference(&self, whole: &Trained) -> f32 {
        let theirs = whole.model.second_rows(self.outputs.clone());
        let second = self.model.second.iter().zip(theirs);
        let first = self.model.first.iter().zip(&whole.model.first);
        first.chain(second).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
    }
}

/// Which of `count` things are this rank's: neighbouring ones, as many as the others' or one more or
/// less.
fn share(count: usize, comm: &Communicator) -> Range<usize> {
    let (rank, size) = (comm.rank().index(), comm.size() as usize);
    count * rank / size..count * (rank + 1) / size
}
