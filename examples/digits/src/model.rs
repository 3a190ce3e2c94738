//! A network of one hidden layer, and its gradient by hand.

use crate::data::{CLASSES, PIXELS, Sample};
use crate::random::Random;

const HIDDEN: usize = 32;

/// Weights and biases of both layers.
pub(crate) const PARAMETERS: usize = HIDDEN * (PIXELS + 1) + CLASSES * (HIDDEN + 1);

/// 64 pixels → 32 tanh → 10 scores, of which softmax makes probabilities.
///
/// All parameters lie in one slice, so that one collective moves them: per unit of the hidden
/// layer its bias and 64 weights, then per class its bias and 32 weights.
pub(crate) struct Model {
    pub(crate) parameters: Vec<f32>,
}

impl Model {
    /// All parameters are zero: a place to receive them.
    pub(crate) fn zero() -> Self {
        Self { parameters: vec![0.0; PARAMETERS] }
    }

    /// Random weights as wide as tanh wants them, and biases of zero.
    ///
    /// Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward
    /// neural networks", 2010.
    pub(crate) fn random(random: &mut Random) -> Self {
        let mut model = Self::zero();
        let (hidden, output) = model.parameters.split_at_mut(HIDDEN * (PIXELS + 1));
        for (layer, inputs, outputs) in [(hidden, PIXELS, HIDDEN), (output, HIDDEN, CLASSES)] {
            let limit = (6.0 / (inputs + outputs) as f32).sqrt();
            for unit in layer.chunks_exact_mut(inputs + 1) {
                unit[1..].fill_with(|| random.symmetric(limit));
            }
        }
        model
    }

    /// Adds the gradient for one sample to `gradient` and returns the sample's loss.
    ///
    /// The loss is the cross-entropy, in nats. `gradient` has the layout of `parameters`.
    pub(crate) fn add_gradient(&self, sample: &Sample, gradient: &mut [f32]) -> f32 {
        let (_, output) = self.layers();
        let (hidden_gradient, output_gradient) = gradient.split_at_mut(HIDDEN * (PIXELS + 1));
        let (hidden, scores) = self.forward(&sample.pixels);
        let (loss, score_slopes) = cross_entropy(&scores, sample.label);

        let mut slopes = [0.0; HIDDEN];
        for (unit, slope) in output.chunks_exact(HIDDEN + 1).zip(score_slopes) {
            for (sum, weight) in slopes.iter_mut().zip(&unit[1..]) {
                *sum += slope * weight;
            }
        }
        for (slope, tanh) in slopes.iter_mut().zip(hidden) {
            *slope *= 1.0 - tanh * tanh;
        }

        add_outer(output_gradient, &score_slopes, &hidden);
        add_outer(hidden_gradient, &slopes, &sample.pixels);
        loss
    }

    /// The digit with the highest score.
    pub(crate) fn predict(&self, pixels: &[f32; PIXELS]) -> usize {
        let (_, scores) = self.forward(pixels);
        (1..CLASSES).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
    }

    /// What the hidden units and the classes make of an image.
    fn forward(&self, pixels: &[f32; PIXELS]) -> ([f32; HIDDEN], [f32; CLASSES]) {
        let (hidden, output) = self.layers();
        let hidden: [f32; HIDDEN] = affine(hidden, pixels);
        let hidden = hidden.map(f32::tanh);
        (hidden, affine(output, &hidden))
    }

    fn layers(&self) -> (&[f32], &[f32]) {
        self.parameters.split_at(HIDDEN * (PIXELS + 1))
    }
}

/// Per unit of a layer: its bias plus the weighted sum of `inputs`.
fn affine<const UNITS: usize>(layer: &[f32], inputs: &[f32]) -> [f32; UNITS] {
    let mut sums = [0.0; UNITS];
    for (sum, unit) in sums.iter_mut().zip(layer.chunks_exact(inputs.len() + 1)) {
        *sum = unit[1..].iter().zip(inputs).fold(unit[0], |sum, (w, x)| sum + w * x);
    }
    sums
}

/// The transpose of [`affine`]: adds to each bias its unit's slope, to each weight slope × input.
fn add_outer(gradient: &mut [f32], slopes: &[f32], inputs: &[f32]) {
    for (unit, slope) in gradient.chunks_exact_mut(inputs.len() + 1).zip(slopes) {
        unit[0] += slope;
        for (sum, input) in unit[1..].iter_mut().zip(inputs) {
            *sum += slope * input;
        }
    }
}

/// `−ln(softmax(scores)[label])`, and its slope by each score: the probabilities, less 1 at `label`.
fn cross_entropy(scores: &[f32; CLASSES], label: usize) -> (f32, [f32; CLASSES]) {
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers = scores.map(|score| (score - highest).exp());
    let total: f32 = powers.iter().sum();
    let mut slopes = powers.map(|power| power / total);
    slopes[label] -= 1.0;
    (total.ln() - (scores[label] - highest), slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    #[test]
    fn gradient_is_the_slope_of_the_loss() {
        const STEP: f32 = 1e-2;
        let samples = &data::load().test[..4];
        let mut model = Model::random(&mut Random::new(3));
        let mut gradient = vec![0.0; PARAMETERS];
        for sample in samples {
            model.add_gradient(sample, &mut gradient);
        }
        assert!(gradient.iter().filter(|slope| slope.abs() > 1e-2).count() > PARAMETERS / 4);

        for (at, slope) in gradient.into_iter().enumerate() {
            let centre = model.parameters[at];
            model.parameters[at] = centre + STEP;
            let above = loss(&model, samples);
            model.parameters[at] = centre - STEP;
            let below = loss(&model, samples);
            model.parameters[at] = centre;
            let measured = (above - below) / (2.0 * STEP);
            assert!((measured - slope).abs() < 5e-4, "parameter {at}: {measured} is not {slope}");
        }
    }

    #[test]
    fn scores_beyond_the_range_of_exp_keep_the_loss_finite() {
        let mut scores = [-1000.0; CLASSES];
        scores[4] = 1000.0;
        assert_eq!(cross_entropy(&scores, 4).0, 0.0);
        assert_eq!(cross_entropy(&scores, 5).0, 2000.0);
    }

    fn loss(model: &Model, samples: &[Sample]) -> f32 {
        let of = |sample: &Sample| cross_entropy(&model.forward(&sample.pixels).1, sample.label).0;
        samples.iter().map(of).sum()
    }
}
