//! Pictures of distributions: losses early, midway and late; residuals of one source.

use std::collections::HashMap;

use lapwing_judge::{Histogram, Phase};
use serde::Serialize;

use crate::scale::{BOX, Scale, Tick, at, trimmed};
use crate::{name, number};

/// Sources drawn one by one; the rest are pooled.
const MOST: usize = 8;

/// One panel: a phase of training, one ridge per source, one axis for all.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    title: String,
    steps: String,
    description: String,
    ridges: Vec<Ridge>,
    x_ticks: Vec<Tick>,
    reference: Option<Tick>,
    threshold: Option<Tick>,
}

/// One distribution: the outline shows all values, the filled part what they count for.
#[derive(Debug, Serialize)]
pub(crate) struct Ridge {
    class: String,
    label: String,
    weight: String,
    outline: String,
    filled: String,
}

/// Draws the phases. `classes` gives the sources to be drawn one by one, in order, with their colours.
pub(crate) fn panels(phases: &[Phase], classes: &[(&str, String)]) -> Vec<Panel> {
    let ends = phases.iter().flat_map(|phase| {
        let seen = phase.sources.iter().filter(|s| s.losses.total() > 0);
        seen.flat_map(|s| [s.losses.low, s.losses.high])
            .chain(phase.reference_mean)
            .chain(phase.threshold)
    });
    let Some(axis) = Scale::over(ends) else {
        return Vec::new();
    };
    phases.iter().map(|phase| panel(phase, classes, axis)).collect()
}

fn panel(phase: &Phase, classes: &[(&str, String)], axis: Scale) -> Panel {
    let mut by_name: HashMap<&str, _> =
        phase.sources.iter().map(|s| (s.source.as_str(), s)).collect();
    let mut ridges: Vec<Ridge> = Vec::new();
    for (source, class) in classes.iter().take(MOST) {
        let (weight, losses) =
            by_name.remove(source).map_or((0.0, &EMPTY), |s| (s.weight, &s.losses));
        ridges.push(Ridge {
            class: class.clone(),
            label: name::label(source),
            weight: if losses.total() == 0 {
                "not seen".to_owned()
            } else {
                format!("weight {}", number::fixed(weight, 2))
            },
            outline: area(losses, axis, 1.0),
            filled: area(losses, axis, weight),
        });
    }
    let rest: Vec<&Histogram> = phase
        .sources
        .iter()
        .filter(|s| by_name.contains_key(s.source.as_str()))
        .map(|s| &s.losses)
        .collect();
    if let Some(pooled) = pool(&rest) {
        ridges.push(Ridge {
            class: String::new(),
            label: format!("{} others", number::count(rest.len() as u64)),
            weight: String::new(),
            outline: area(&pooled, axis, 1.0),
            filled: area(&pooled, axis, 1.0),
        });
    }
    let mark = |value: Option<f64>| {
        value
            .filter(|v| v.is_finite())
            .map(|v| Tick { at: at(axis.share(v)), text: number::value(v) })
    };
    let mut title = name::short(&phase.name);
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Panel {
        description: format!("Losses per source, {}", name::short(&phase.name)),
        title,
        steps: format!(
            "steps {}–{}",
            number::count(phase.first_step),
            number::count(phase.last_step)
        ),
        ridges,
        x_ticks: axis.ticks_across(4),
        reference: mark(phase.reference_mean),
        threshold: mark(phase.threshold),
    }
}

static EMPTY: Histogram = Histogram { low: 0.0, high: 0.0, counts: Vec::new() };

/// The sum of histograms with equal bins; those with other bins than the first are left out.
fn pool(histograms: &[&Histogram]) -> Option<Histogram> {
    let mut pooled = (*histograms.iter().find(|h| h.total() > 0)?).clone();
    pooled.counts.fill(0);
    for histogram in histograms {
        if (histogram.low, histogram.high, histogram.counts.len())
            == (pooled.low, pooled.high, pooled.counts.len())
        {
            for (sum, n) in pooled.counts.iter_mut().zip(&histogram.counts) {
                *sum = sum.saturating_add(*n);
            }
        }
    }
    Some(pooled)
}

/// Residuals of one source over those of the reliable ones.
#[derive(Debug, Serialize)]
pub(crate) struct ResidualPicture {
    own: String,
    reliable: String,
    x_ticks: Vec<Tick>,
    zero: Option<String>,
}

/// Draws residuals; `None` when there are none.
pub(crate) fn residuals(own: &Histogram, reliable: Option<&Histogram>) -> Option<ResidualPicture> {
    let drawn = [Some(own), reliable].into_iter().flatten().filter(|h| h.total() > 0);
    let axis = Scale::over(drawn.flat_map(|h| [h.low, h.high]))?;
    Some(ResidualPicture {
        own: area(own, axis, 1.0),
        reliable: reliable.map(|h| area(h, axis, 1.0)).unwrap_or_default(),
        x_ticks: axis.ticks_across(5),
        zero: axis.holds(0.0).then(|| at(axis.share(0.0))),
    })
}

/// Area under a histogram as SVG path data in a box of 1000 × 100; empty when nothing was counted.
///
/// The axis may be wider than the histogram. `height` is the share of the box that the fullest bin takes.
fn area(histogram: &Histogram, axis: Scale, height: f64) -> String {
    let most = histogram.counts.iter().copied().max().unwrap_or(0);
    let width = (histogram.high - histogram.low) / histogram.counts.len().max(1) as f64;
    if most == 0 || !width.is_finite() {
        return String::new();
    }
    let place = |bin: usize| trimmed(axis.share(histogram.low + bin as f64 * width) * BOX);
    let height = if height.is_finite() { height.clamp(0.0, 1.0) } else { 0.0 };
    let mut out = format!("M{} 100", place(0));
    for (bin, n) in histogram.counts.iter().enumerate() {
        let top = trimmed(100.0 - 98.0 * height * (*n as f64 / most as f64));
        out.push_str(&format!("V{top}H{}", place(bin + 1)));
    }
    out.push_str("V100Z");
    out
}

#[cfg(test)]
mod tests {
    use lapwing_judge::SourceLosses;
    use proptest::prelude::*;

    use super::*;

    fn phase(names: &[&str]) -> Phase {
        let losses = Histogram { low: 0.0, high: 2.0, counts: vec![1, 3] };
        let sources = names.iter().map(|n| SourceLosses {
            source: (*n).to_owned(),
            weight: 0.5,
            losses: losses.clone(),
        });
        Phase {
            name: "early".into(),
            threshold: Some(1.0),
            reference_mean: Some(f64::NAN),
            sources: sources.collect(),
            ..Default::default()
        }
    }

    #[test]
    fn the_filled_part_is_the_weighted_part() {
        let panels = panels(&[phase(&["a"])], &[("a", "s0".into())]);
        assert_eq!(panels[0].ridges[0].outline, "M0 100V67.33H500V2H1000V100Z");
        assert_eq!(panels[0].ridges[0].filled, "M0 100V83.67H500V51H1000V100Z");
        assert_eq!(panels[0].threshold.as_ref().unwrap().at, "50%");
        assert!(panels[0].reference.is_none());
    }

    #[test]
    fn sources_without_a_colour_are_pooled() {
        let panels = panels(&[phase(&["a", "b", "c"])], &[("b", "s0".into())]);
        let labels: Vec<&str> = panels[0].ridges.iter().map(|r| r.label.as_str()).collect();
        assert_eq!(labels, ["b", "2 others"]);
    }

    #[test]
    fn a_source_not_seen_in_a_phase_keeps_its_place() {
        let panels = panels(&[phase(&["a"])], &[("z", "s0".into()), ("a", "s1".into())]);
        assert_eq!(panels[0].ridges[0].weight, "not seen");
        assert_eq!(panels[0].ridges[0].outline, "");
    }

    #[test]
    fn no_losses_give_no_panels() {
        assert!(panels(&[Phase::default()], &[]).is_empty());
        assert!(residuals(&Histogram::default(), None).is_none());
    }

    #[test]
    fn an_empty_or_broken_histogram_has_no_area() {
        let axis = Scale::new(0.0, 1.0);
        assert_eq!(area(&Histogram::default(), axis, 1.0), "");
        assert_eq!(area(&Histogram::of(&[], 0.0, 1.0), axis, 1.0), "");
        assert_eq!(area(&Histogram { low: f64::NAN, high: 1.0, counts: vec![1] }, axis, 1.0), "");
        assert_eq!(
            area(&Histogram { low: 0.0, high: 1.0, counts: vec![1, 2] }, axis, 1.0),
            "M0 100V51H500V2H1000V100Z"
        );
    }

    proptest! {
        #[test]
        fn areas_hold_nothing_but_numbers_within_the_box(low: f64, high: f64, counts: Vec<u64>, height: f64, a: f64, b: f64) {
            if let Some(axis) = Scale::over([a, b]) {
                let path = area(&Histogram { low, high, counts }, axis, height);
                for number in path.split(['M', 'V', 'H', 'Z', ' ']).filter(|t| !t.is_empty()) {
                    prop_assert!((0.0..=BOX).contains(&number.parse::<f64>().unwrap()), "{}", number);
                }
            }
        }
    }
}
