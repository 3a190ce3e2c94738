//! Two linear layers that learn to rotate: small enough to follow, large enough to split.

use std::ops::Range;

pub(crate) const INPUTS: usize = 8;
pub(crate) const HIDDEN: usize = 16;
pub(crate) const OUTPUTS: usize = 8;
pub(crate) const SAMPLES: usize = 48;

/// The first layer whole, and of the second the rows of some outputs.
pub(crate) struct Model {
    /// `HIDDEN` rows of `INPUTS` weights.
    pub(crate) first: Vec<f32>,
    /// A row of `HIDDEN` weights per output.
    pub(crate) second: Vec<f32>,
}

/// The gradient of the squared error, as [`Model`] has its weights; and the error itself.
pub(crate) struct Gradient {
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
    pub(crate) loss: [f32; 1],
}

/// An input; the output that belongs to it is the input turned round by one place.
pub(crate) struct Sample([f32; INPUTS]);

impl Sample {
    /// The same on all ranks.
    pub(crate) fn numbered(number: usize) -> Sample {
        Sample(std::array::from_fn(|i| noise(number * INPUTS + i)))
    }

    fn target(&self, output: usize) -> f32 {
        self.0[(output + 1) % INPUTS]
    }
}

impl Model {
    /// Where training begins, the same for every part on all ranks.
    pub(crate) fn first(outputs: Range<usize>) -> Model {
        let scaled = |index| 0.3 * noise(index);
        let first = (0..HIDDEN * INPUTS).map(|index| scaled(1_000_000 + index)).collect();
        let second = outputs.start * HIDDEN..outputs.end * HIDDEN;
        Model { first, second: second.map(|index| scaled(2_000_000 + index)).collect() }
    }

    /// The weights of these outputs, in a model that has all.
    pub(crate) fn second_rows(&self, outputs: Range<usize>) -> &[f32] {
        &self.second[outputs.start * HIDDEN..outputs.end * HIDDEN]
    }

    /// Adds what `sample` gives by the outputs of this part.
    pub(crate) fn add_gradient(&self, sample: &Sample, outputs: Range<usize>, to: &mut Gradient) {
        let rows = self.first.chunks(INPUTS);
        let hidden: Vec<f32> = rows.map(|row| dot(row, &sample.0)).collect();
        let mut back = [0.0; HIDDEN];
        let rows = self.second.chunks(HIDDEN).zip(to.second.chunks_mut(HIDDEN));
        for (output, (row, slope)) in outputs.zip(rows) {
            let error = dot(row, &hidden) - sample.target(output);
            to.loss[0] += error * error / 2.0;
            slope.iter_mut().zip(&hidden).for_each(|(slope, hidden)| *slope += error * hidden);
            back.iter_mut().zip(row).for_each(|(back, weight)| *back += error * weight);
        }
        for (slope, back) in to.first.chunks_mut(INPUTS).zip(back) {
            slope.iter_mut().zip(&sample.0).for_each(|(slope, input)| *slope += back * input);
        }
    }

    /// Goes down the gradient.
    pub(crate) fn step(&mut self, gradient: &Gradient, rate: f32) {
        let first = self.first.iter_mut().zip(&gradient.first);
        let second = self.second.iter_mut().zip(&gradient.second);
        first.chain(second).for_each(|(weight, slope)| *weight -= rate * slope);
    }
}

impl Gradient {
    /// For a part with so many outputs.
    pub(crate) fn zero(outputs: usize) -> Gradient {
        let (first, second) = (vec![0.0; HIDDEN * INPUTS], vec![0.0; outputs * HIDDEN]);
        Gradient { first, second, loss: [0.0] }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A number from -1 to 1 that looks random.
fn noise(index: usize) -> f32 {
    let mixed = (index as u32).wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b);
    (mixed ^ mixed >> 15) as f32 / u32::MAX as f32 * 2.0 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(model: &Model) -> f32 {
        let mut gradient = Gradient::zero(OUTPUTS);
        (0..SAMPLES).for_each(|n| {
            model.add_gradient(&Sample::numbered(n), 0..OUTPUTS, &mut gradient);
        });
        gradient.loss[0]
    }

    #[test]
    fn gradient_is_the_slope_of_the_loss() {
        let mut model = Model::first(0..OUTPUTS);
        let mut gradient = Gradient::zero(OUTPUTS);
        for n in 0..SAMPLES {
            model.add_gradient(&Sample::numbered(n), 0..OUTPUTS, &mut gradient);
        }
        for weight in [0, 77] {
            for (layer, slope) in [(0, gradient.first[weight]), (1, gradient.second[weight])] {
                let mut at = |shift: f32| {
                    let of = if layer == 0 { &mut model.first } else { &mut model.second };
                    of[weight] += shift;
                    let loss = loss(&model);
                    let of = if layer == 0 { &mut model.first } else { &mut model.second };
                    of[weight] -= shift;
                    loss
                };
                let measured = (at(0.01) - at(-0.01)) / 0.02;
                assert!((measured - slope).abs() < 0.05, "layer {layer}: {measured}, {slope}");
            }
        }
    }
}
