//! What a run leaves behind step by step: loss, unreliability and weight per source.
//!
//! At most [`MOST_POINTS`] points are kept. When there are more, every other step is forgotten and from then on only
//! every second (fourth, eighth, …) step is recorded. That depends on the steps alone, so a resumed run keeps the same.

use lapwing_judge::TrajectoryPoint;
use lapwing_train::Step;

/// Most points kept.
pub const MOST_POINTS: usize = 1 << 18;

/// Bytes of a point in a checkpoint.
const POINT: usize = 36;

/// Keeps the points.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorder {
    /// Steps are recorded that are a multiple of it.
    stride: u64,
    most: usize,
    points: Vec<TrajectoryPoint>,
}

impl Recorder {
    /// Keeps at most so many points.
    pub fn new(most: usize) -> Self {
        Self { stride: 1, most: most.max(1), points: Vec::new() }
    }

    /// Takes in a step.
    pub fn record(&mut self, step: &Step<'_>) {
        if step.step.is_multiple_of(self.stride) {
            self.points.extend(step.sources.iter().map(|source| TrajectoryPoint {
                step: step.step,
                source: source.source,
                loss: source.loss.unwrap_or(f64::NAN),
                unreliability: source.standing.unreliability,
                weight: source.standing.weight,
            }));
            self.thin();
        }
    }

    fn thin(&mut self) {
        // One step with more sources than points are kept stays: there is nothing between it and itself.
        while self.points.len() > self.most
            && self.points.first().map(|p| p.step) != self.points.last().map(|p| p.step)
        {
            self.stride *= 2;
            self.points.retain(|point| point.step.is_multiple_of(self.stride));
        }
    }

    /// What was kept, step by step.
    pub fn into_points(self) -> Vec<TrajectoryPoint> {
        self.points
    }

    /// Little-endian numbers, point after point.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + POINT * self.points.len());
        bytes.extend(self.stride.to_le_bytes());
        bytes.extend((self.most as u64).to_le_bytes());
        for point in &self.points {
            bytes.extend(point.step.to_le_bytes());
            bytes.extend(point.source.to_le_bytes());
            bytes.extend(point.loss.to_bits().to_le_bytes());
            bytes.extend(point.unreliability.to_le_bytes());
            bytes.extend(point.weight.to_bits().to_le_bytes());
        }
        bytes
    }

    /// Goes on from what was saved; every point must be of one of the `sources` that there are.
    pub(crate) fn load(&mut self, bytes: &[u8], sources: usize) -> Result<(), String> {
        let wrong = || "the recorded trajectory has the wrong length".to_owned();
        let (head, body) = bytes.split_at_checked(16).ok_or_else(wrong)?;
        if !body.len().is_multiple_of(POINT) {
            return Err(wrong());
        }
        let long = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let short = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
        if long(&head[8..]) != self.most as u64 {
            return Err("the recorded trajectory was thinned to another length".to_owned());
        }
        self.stride = long(&head[..8]).max(1);
        self.points = body
            .chunks_exact(POINT)
            .map(|point| TrajectoryPoint {
                step: long(&point[..8]),
                source: short(&point[8..12]),
                loss: f64::from_bits(long(&point[12..20])),
                unreliability: long(&point[20..28]),
                weight: f64::from_bits(long(&point[28..])),
            })
            .collect();
        match self.points.iter().find(|point| point.source as usize >= sources) {
            Some(point) => {
                Err(format!("the recorded trajectory has source {} of {sources}", point.source))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_train::{SourceStep, Standing};

    fn run(recorder: &mut Recorder, steps: std::ops::Range<u64>) {
        for step in steps {
            let sources: Vec<SourceStep> = (0..3)
                .map(|source| SourceStep {
                    source,
                    loss: (step % 5 != 0).then_some(step as f64 / 3.0),
                    standing: Standing { unreliability: step, weight: 0.5 },
                })
                .collect();
            recorder.record(&Step {
                step,
                steps: 1000,
                epoch: 0,
                learning_rate: 0.1,
                rows: &[],
                losses: &[],
                weights: &[],
                sources: &sources,
            });
        }
    }

    #[test]
    fn no_more_than_the_limit_is_kept_evenly_spaced() {
        let mut recorder = Recorder::new(100);
        run(&mut recorder, 0..1000);
        let points = recorder.into_points();
        assert!(points.len() <= 100 && points.len() > 40, "{}", points.len());
        let steps: Vec<u64> = points.iter().step_by(3).map(|point| point.step).collect();
        assert!(steps.windows(2).all(|pair| pair[1] - pair[0] == steps[1]), "{steps:?}");
    }

    #[test]
    fn a_recorder_that_was_saved_and_loaded_goes_on_the_same() {
        let mut whole = Recorder::new(100);
        run(&mut whole, 0..1000);
        for pause in [0, 1, 33, 34, 500, 999] {
            let mut first = Recorder::new(100);
            run(&mut first, 0..pause);
            let mut second = Recorder::new(100);
            second.load(&first.save(), 3).unwrap();
            run(&mut second, pause..1000);
            assert_eq!(second.save(), whole.save());
        }
    }

    #[test]
    fn one_step_with_more_sources_than_the_limit_does_not_loop_for_ever() {
        let mut recorder = Recorder::new(1);
        run(&mut recorder, 0..50);
        assert_eq!(recorder.into_points().len(), 3);
    }

    #[test]
    fn a_point_of_a_source_that_is_not_there_is_refused() {
        let mut recorder = Recorder::new(10);
        run(&mut recorder, 0..2);
        let bytes = recorder.save();
        assert!(recorder.load(&bytes, 3).is_ok());
        assert!(recorder.load(&bytes, 2).unwrap_err().contains("source 2 of 2"));
        assert!(Recorder::new(11).load(&bytes, 3).is_err());
    }

    #[test]
    fn cut_bytes_are_refused() {
        let mut recorder = Recorder::new(10);
        run(&mut recorder, 0..2);
        let bytes = recorder.save();
        assert!(recorder.load(&bytes[..bytes.len() - 1], 3).is_err());
        assert!(recorder.load(&[], 3).is_err());
    }
}
