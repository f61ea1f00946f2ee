//! What a row loses at its margins, and how a tree should move them.
//!
//! A margin is what the trees of a row add up to: a value in standard deviations, the log-odds of the second of two
//! classes, or one number per class where there are more.

use hessboost::objective::GradPair;
use lapwing_sample::{Loss, TargetSpec, negative_log_probability};

/// Least second derivative: where the model is certain, a Newton step would divide by nothing.
const LEAST_HESSIAN: f64 = 1e-16;

/// A loss on margins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Objective {
    loss: Loss,
    /// Margins per row.
    pub(crate) outputs: usize,
}

impl Objective {
    pub(crate) fn new(loss: Loss, target: &TargetSpec) -> Self {
        Self { loss, outputs: margins(target) }
    }

    /// The loss of a row with this label or standardised value; not finite where a margin is not.
    pub(crate) fn loss(&self, margins: &[f32], target: f32) -> f32 {
        match self.loss {
            Loss::CrossEntropy if self.outputs == 1 => {
                let margin = f64::from(margins[0]);
                let wrong = if target > 0.5 { -margin } else { margin };
                // ln(1 + exp(wrong)), which neither overflows nor loses what is small.
                (wrong.max(0.0) + libm::log1p(libm::exp(-wrong.abs()))) as f32
            }
            Loss::CrossEntropy => negative_log_probability(margins, target as usize) as f32,
            Loss::SquaredError => (margins[0] - target).powi(2),
            Loss::Huber { delta } => {
                let distance = f64::from(margins[0] - target).abs();
                let near = distance.min(delta);
                (0.5 * near * near + delta * (distance - near)) as f32
            }
        }
    }

    /// First and second derivative by each margin, times `weight`; of half the square for squared error, and as XGBoost
    /// has them for many classes: the second is twice the diagonal, as moving one margin moves all probabilities.
    pub(crate) fn gradient(&self, margins: &[f32], target: f32, weight: f64, out: &mut [GradPair]) {
        let pair = |gradient: f64, hessian: f64| {
            GradPair::new((weight * gradient) as f32, (weight * hessian) as f32)
        };
        match self.loss {
            Loss::CrossEntropy if self.outputs == 1 => {
                let right = 1.0 / (1.0 + libm::exp(-f64::from(margins[0])));
                let hessian = (right * (1.0 - right)).max(LEAST_HESSIAN);
                out[0] = pair(right - f64::from(target), hessian);
            }
            Loss::CrossEntropy => {
                let highest = margins.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let power = |margin: f32| libm::exp(f64::from(margin - highest));
                let sum: f64 = margins.iter().map(|&margin| power(margin)).sum();
                for (class, (out, &margin)) in out.iter_mut().zip(margins).enumerate() {
                    let probability = power(margin) / sum;
                    let own = f64::from(u8::from(class == target as usize));
                    let hessian = (2.0 * probability * (1.0 - probability)).max(LEAST_HESSIAN);
                    *out = pair(probability - own, hessian);
                }
            }
            Loss::SquaredError => out[0] = pair(f64::from(margins[0] - target), 1.0),
            Loss::Huber { delta } => {
                // Beyond delta the curvature is that of the parabola which touches from above: with none, a tree could
                // go anywhere.
                let distance = f64::from(margins[0] - target);
                let slope = distance.clamp(-delta, delta);
                let curvature = if distance.abs() > delta { delta / distance.abs() } else { 1.0 };
                out[0] = pair(slope, curvature);
            }
        }
    }

    /// See [`Loss::bounded`].
    pub(crate) fn bounded(&self, loss: f32) -> f32 {
        self.loss.bounded(loss)
    }
}

/// Margins per row.
pub(crate) fn margins(target: &TargetSpec) -> usize {
    match target {
        TargetSpec::Classes { classes: 2 } | TargetSpec::Values(_) => 1,
        TargetSpec::Classes { classes } => *classes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_sample::Scale;

    const POINTS: [f32; 6] = [-3.0, -0.7, 0.0, 0.25, 1.4, 6.0];

    fn of(loss: Loss, classes: usize) -> Objective {
        let target = match loss {
            Loss::CrossEntropy => TargetSpec::Classes { classes },
            _ => TargetSpec::Values(Scale { mean: 0.0, std: 1.0 }),
        };
        Objective::new(loss, &target)
    }

    /// The loss in double precision, written down as the books have it.
    fn slow(objective: &Objective, margins: &[f64], target: f64) -> f64 {
        match objective.loss {
            Loss::CrossEntropy if objective.outputs == 1 => {
                let right = 1.0 / (1.0 + (-margins[0]).exp());
                -(target * right.ln() + (1.0 - target) * (1.0 - right).ln())
            }
            Loss::CrossEntropy => {
                let sum: f64 = margins.iter().map(|margin| margin.exp()).sum();
                -(margins[target as usize].exp() / sum).ln()
            }
            Loss::SquaredError => (margins[0] - target).powi(2),
            Loss::Huber { delta } => match (margins[0] - target).abs() {
                near if near <= delta => 0.5 * near * near,
                far => delta * (far - 0.5 * delta),
            },
        }
    }

    #[test]
    fn losses_are_those_of_the_books() {
        for (loss, classes) in
            [(Loss::CrossEntropy, 2), (Loss::SquaredError, 0), (Loss::Huber { delta: 1.3 }, 0)]
        {
            let objective = of(loss, classes);
            for margin in POINTS {
                for target in [0.0, 1.0] {
                    let expected = slow(&objective, &[f64::from(margin)], f64::from(target));
                    let found = f64::from(objective.loss(&[margin], target));
                    assert!(
                        (found - expected).abs() < 1e-5 * (1.0 + expected),
                        "{loss:?} {margin}"
                    );
                }
            }
        }
        let many = of(Loss::CrossEntropy, 3);
        let expected = slow(&many, &[0.5, -1.25, 2.0], 1.0);
        assert!((f64::from(many.loss(&[0.5, -1.25, 2.0], 1.0)) - expected).abs() < 1e-6);
    }

    #[test]
    fn gradients_are_differences_of_losses_and_carry_the_weight() {
        let step = 1e-4;
        let check = |objective: &Objective, margins: &[f32], target: f32, half: f64, twice: f64| {
            let mut pairs = vec![GradPair::default(); objective.outputs];
            objective.gradient(margins, target, 0.5, &mut pairs);
            let at = |moved: usize, by: f64| {
                let mut margins: Vec<f64> =
                    margins.iter().map(|&margin| f64::from(margin)).collect();
                margins[moved] += by;
                slow(objective, &margins, f64::from(target))
            };
            for (output, pair) in pairs.iter().enumerate() {
                let (less, here, more) = (at(output, -step), at(output, 0.0), at(output, step));
                let first = half * (more - less) / (2.0 * step);
                let second = half * twice * (more - 2.0 * here + less) / (step * step);
                assert!(
                    (f64::from(pair.grad) - 0.5 * first).abs() < 1e-4,
                    "{objective:?} {margins:?}"
                );
                assert!(
                    (f64::from(pair.hess) - 0.5 * second).abs() < 1e-3,
                    "{objective:?} {margins:?}"
                );
            }
        };
        for margin in POINTS {
            for target in [0.0, 1.0] {
                check(&of(Loss::CrossEntropy, 2), &[margin], target, 1.0, 1.0);
                check(&of(Loss::SquaredError, 0), &[margin], target, 0.5, 1.0);
            }
            check(&of(Loss::Huber { delta: 20.0 }, 0), &[margin], 0.3, 1.0, 1.0);
            for class in 0..3 {
                check(&of(Loss::CrossEntropy, 3), &[0.3, margin, -0.8], class as f32, 1.0, 2.0);
            }
        }
        let mut far = [GradPair::default()];
        of(Loss::Huber { delta: 1.5 }, 0).gradient(&[4.0], 1.0, 1.0, &mut far);
        assert_eq!((far[0].grad, far[0].hess), (1.5, 0.5));
    }

    #[test]
    fn certain_and_wild_margins_give_numbers() {
        for margin in [-1e30, -200.0, 200.0, 1e30] {
            for objective in [of(Loss::CrossEntropy, 2), of(Loss::CrossEntropy, 3)] {
                let margins = vec![margin; objective.outputs];
                let mut pairs = vec![GradPair::default(); objective.outputs];
                objective.gradient(&margins, 1.0, 1.0, &mut pairs);
                assert!(pairs.iter().all(|p| p.grad.is_finite() && p.hess > 0.0), "{margin}");
                assert!(objective.loss(&margins, 1.0) >= 0.0, "{margin}");
            }
        }
        assert!(!of(Loss::SquaredError, 0).loss(&[f32::NAN], 1.0).is_finite());
    }
}
