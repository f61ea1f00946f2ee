//! Line pictures: weight and loss per source over the steps, metrics over the epochs.

use serde::Serialize;

use crate::scale::{BOX, Scale, Tick, at};

/// Points per line: about one per three pixels of a wide page.
const POINTS: usize = 240;
/// Least distance between two labels at the end of lines, as a share of the height (17 of 280 pixels).
const LABEL_GAP: f64 = 0.06;

/// A line before it is drawn.
pub(crate) struct Line {
    /// Class that gives it its colour and dashes; empty for the grey crowd.
    pub(crate) class: String,
    /// Name beside the line and in the legend.
    pub(crate) label: String,
    /// Text shown when the line is pointed at.
    pub(crate) title: String,
    /// Places and values; a value that is missing or not finite leaves a gap.
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// How neighbouring points become one where there are more than can be seen.
#[derive(Clone, Copy)]
pub(crate) enum Thin {
    /// Their mean: noise is smoothed.
    Mean,
    /// The last of them: the end of the line is exact.
    Last,
}

/// The vertical axis.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    /// From 0 to 1.
    Share,
    /// What the values need, without the highest hundredth where that would flatten all else.
    Values,
}

/// A picture as the template draws it.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    pub(crate) description: String,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    pub(crate) lines: Vec<Drawn>,
    /// Where a vertical rule stands, and what it says.
    pub(crate) rule: Option<Tick>,
    /// Whether values above the axis were drawn at its edge, and where that is.
    pub(crate) clipped_at: Option<f64>,
    #[serde(skip)]
    x: Scale,
}

#[derive(Debug, Serialize)]
pub(crate) struct Drawn {
    class: String,
    label: String,
    title: String,
    path: String,
    label_at: Option<String>,
}

/// Draws lines, first on top; `None` when no point is finite.
pub(crate) fn draw(
    description: String,
    titles: (&str, &str),
    lines: Vec<Line>,
    thin: Thin,
    range: Range,
) -> Option<Picture> {
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|line| Line { points: thinned(&line.points, thin), ..line })
        .collect();
    lines.retain(|line| line.points.iter().any(|(_, y)| y.is_some()));
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale::over(points().map(|(x, _)| *x))?.begun_at_zero();
    let (y, clipped_at) = match range {
        Range::Share => (Scale::new(0.0, 1.0), None),
        Range::Values => value_axis(points().filter_map(|(_, y)| *y).collect())?,
    };

    let end = |line: &Line| {
        let last = line.points.iter().rev().find_map(|(_, y)| *y)?;
        (!line.class.is_empty()).then(|| 1.0 - y.share(last))
    };
    let labels = spread(&lines.iter().map(end).collect::<Vec<_>>());
    let drawn = lines.into_iter().zip(labels).map(|(line, label)| Drawn {
        path: path(&line.points, x, y),
        class: line.class,
        label: line.label,
        title: line.title,
        label_at: label.map(at),
    });
    Some(Picture {
        description,
        x_title: titles.0.to_owned(),
        y_title: titles.1.to_owned(),
        x_ticks: x.ticks_across(5),
        y_ticks: y.ticks_up(5),
        lines: drawn.collect(),
        rule: None,
        clipped_at,
        x,
    })
}

impl Picture {
    /// Adds a vertical rule with a word to it, where the horizontal axis reaches that far.
    pub(crate) fn with_rule(mut self, place: Option<f64>, text: &str) -> Self {
        self.rule = place
            .filter(|place| self.x.holds(*place))
            .map(|place| Tick { at: at(self.x.share(place)), text: text.to_owned() });
        self
    }
}

/// The axis for measured values, and where it cuts them off, if it does.
fn value_axis(mut values: Vec<f64>) -> Option<(Scale, Option<f64>)> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let most = values[(values.len() - 1) * 99 / 100];
    // Losses near zero are read against zero.
    let low = if low > 0.0 && low < 0.5 * most { 0.0 } else { low };
    if high - low > 3.0 * (most - low) && most > low {
        let scale = Scale::new(low, most).rounded(5);
        return Some((scale, Some(scale.high())));
    }
    Some((Scale::new(low, high).rounded(5), None))
}

/// At most [`POINTS`] points, with values that are finite or missing.
fn thinned(points: &[(f64, Option<f64>)], thin: Thin) -> Vec<(f64, Option<f64>)> {
    let finite = |y: Option<f64>| y.filter(|y| y.is_finite());
    if points.len() <= POINTS {
        return points.iter().map(|(x, y)| (*x, finite(*y))).collect();
    }
    let size = points.len().div_ceil(POINTS);
    points
        .chunks(size)
        .filter_map(|chunk| {
            let (last, _) = chunk.last()?;
            let known: Vec<(f64, f64)> =
                chunk.iter().filter_map(|(x, y)| Some((*x, finite(*y)?))).collect();
            let n = known.len() as f64;
            Some(match (thin, known.last()) {
                (_, None) => (*last, None),
                (Thin::Last, Some((x, y))) => (*x, Some(*y)),
                // Divided before it is summed, because losses may be huge.
                (Thin::Mean, _) => {
                    (known.iter().map(|p| p.0 / n).sum(), Some(known.iter().map(|p| p.1 / n).sum()))
                }
            })
        })
        .collect()
}

/// The points as SVG path data in the box; a gap begins a new stroke, and a lone point becomes a dot.
fn path(points: &[(f64, Option<f64>)], x: Scale, y: Scale) -> String {
    let mut out = String::new();
    let mut stroke = 0;
    for (place, value) in points {
        let Some(value) = value else {
            end(&mut out, &mut stroke);
            continue;
        };
        out.push(if stroke == 0 { 'M' } else { 'L' });
        out.push_str(&format!("{:.1} {:.1}", x.share(*place) * BOX, (1.0 - y.share(*value)) * BOX));
        stroke += 1;
    }
    end(&mut out, &mut stroke);
    out
}

/// A stroke of length nothing is drawn as a dot, because line ends are round.
fn end(out: &mut String, stroke: &mut usize) {
    if *stroke == 1 {
        out.push_str("h0");
    }
    *stroke = 0;
}

/// Moves labels apart so that none covers another, keeping their order.
fn spread(places: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        places.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut floor = 0.0_f64;
    for (_, place) in &mut order {
        *place = place.max(floor);
        floor = *place + LABEL_GAP;
    }
    let mut ceiling = 1.0_f64;
    for (_, place) in order.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - LABEL_GAP;
    }
    let mut out = vec![None; places.len()];
    for (i, place) in order {
        out[i] = Some(place.clamp(0.0, 1.0));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(points: Vec<(f64, Option<f64>)>) -> Line {
        Line { class: "s0".into(), label: "a".into(), title: String::new(), points }
    }

    fn drawn(points: Vec<(f64, Option<f64>)>) -> Option<Picture> {
        draw(String::new(), ("x", "y"), vec![line(points)], Thin::Mean, Range::Values)
    }

    #[test]
    fn a_line_runs_from_corner_to_corner() {
        let picture = drawn(vec![(0.0, Some(0.0)), (10.0, Some(1.0))]).unwrap();
        assert_eq!(picture.lines[0].path, "M0.0 1000.0L1000.0 0.0");
    }

    #[test]
    fn a_missing_value_leaves_a_gap_and_a_lone_point_is_a_dot() {
        let points = vec![
            (0.0, Some(0.0)),
            (1.0, None),
            (2.0, Some(1.0)),
            (3.0, Some(f64::NAN)),
            (4.0, Some(1.0)),
        ];
        let path = &drawn(points).unwrap().lines[0].path;
        assert_eq!(path, "M0.0 1000.0h0M500.0 0.0h0M1000.0 0.0h0");
    }

    #[test]
    fn nothing_finite_gives_no_picture() {
        assert!(drawn(vec![]).is_none());
        assert!(drawn(vec![(1.0, None), (2.0, Some(f64::INFINITY))]).is_none());
    }

    #[test]
    fn many_points_are_thinned_and_the_last_weight_is_kept() {
        let points: Vec<_> = (0..100_000).map(|i| (f64::from(i), Some(f64::from(i)))).collect();
        let last = thinned(&points, Thin::Last);
        assert!(last.len() <= POINTS);
        assert_eq!(last.last(), Some(&(99_999.0, Some(99_999.0))));
        assert_eq!(
            thinned(&points, Thin::Mean)[0].1,
            Some((points.len().div_ceil(POINTS) - 1) as f64 / 2.0)
        );
    }

    #[test]
    fn one_wild_loss_does_not_flatten_the_rest() {
        let points = (0..200)
            .map(|i| (f64::from(i), Some(if i == 7 { 1e12 } else { 1.0 + f64::from(i) / 100.0 })));
        let picture = drawn(points.collect()).unwrap();
        assert_eq!(picture.clipped_at, Some(3.0));
    }

    #[test]
    fn a_rule_stands_within_the_axis_or_not_at_all() {
        let picture = || drawn(vec![(1.0, Some(0.0)), (5.0, Some(1.0))]).unwrap();
        assert_eq!(picture().with_rule(Some(2.0), "kept").rule.unwrap().at, "25%");
        assert!(picture().with_rule(Some(6.0), "kept").rule.is_none());
    }

    #[test]
    fn labels_are_moved_apart_within_the_picture() {
        let spread: Vec<f64> = spread(&[Some(1.0), Some(1.0), None, Some(0.99), Some(0.0)])
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(spread.len(), 4);
        assert!(spread.iter().all(|p| (0.0..=1.0).contains(p)));
        let mut sorted = spread.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] > LABEL_GAP - 1e-9), "{sorted:?}");
        assert_eq!(spread[3], 0.0);
    }

    proptest! {
        #[test]
        fn paths_hold_nothing_but_numbers_within_the_box(points: Vec<(f64, Option<f64>)>) {
            if let Some(picture) = drawn(points) {
                for number in picture.lines[0].path.replace("h0", "").split(['M', 'L', ' ']).filter(|t| !t.is_empty()) {
                    prop_assert!((0.0..=BOX).contains(&number.parse::<f64>().unwrap()), "{}", number);
                }
            }
        }
    }
}
