//! The figures, drawn from records.

use lapwing_core::DISCRETE_AMOUNT;

use crate::axes::{Panel, marks, number, range};
use crate::demonstration::BINS;
use crate::picture::{Anchor, Colour, FAINT, INK, Picture, Point};
use crate::recipe::{FigureKind, MethodRecipe, Recipe, Rule};
use crate::record::Record;
use crate::table::{Statistics, five_numbers, metric_name};

/// Colours that can be told apart by everybody (Okabe and Ito).
const COLOURS: [Colour; 5] =
    [[0, 158, 115], [86, 180, 233], [0, 114, 178], [230, 159, 0], [213, 94, 0]];

/// A figure with the name of its file.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) picture: Picture,
}

/// The figure of an experiment, if it has one and there are records for it.
pub(crate) fn figure(recipe: &Recipe, records: &[Record]) -> Option<Figure> {
    if records.is_empty() {
        return None;
    }
    let picture = match recipe.figure? {
        FigureKind::Weights => weights(recipe, records),
        FigureKind::Boxes => boxes(recipe, records),
        FigureKind::Curve => curve(recipe, records),
        FigureKind::Gains => gains(recipe, records),
        FigureKind::Histograms => histograms(recipe, records),
        FigureKind::Epochs => epochs(recipe, records),
        FigureKind::Sizes => sizes(recipe, records),
    };
    Some(Figure { name: recipe.id.clone(), picture })
}

/// A parameter of the rule that is varied, its sign, and the settings in order of its value.
type Row<'a> = (&'static str, Vec<(f64, &'a str)>);

/// The settings of an experiment by the parameter that they vary; the setting that varies none is in every row.
fn rows(recipe: &Recipe) -> [Row<'_>; 3] {
    let row = |sign, value: fn(&Rule) -> Option<f64>| {
        let mut settings: Vec<(f64, &str)> = recipe
            .conditions
            .iter()
            .filter_map(|condition| {
                let Rule { history, strength, leniency, .. } = condition.lap;
                let base = history.is_none() && strength.is_none() && leniency.is_none();
                let value =
                    value(&condition.lap).or_else(|| value(&recipe.lap).filter(|_| base))?;
                Some((value, condition.id.as_str()))
            })
            .collect();
        settings.sort_by(|a, b| a.0.total_cmp(&b.0));
        (sign, settings)
    };
    [
        row("δ", |rule| rule.strength),
        row("H", |rule| rule.history.map(|history| history as f64)),
        row("λ", |rule| rule.leniency),
    ]
}

/// Figure 4: weight against step, a line for each source, a panel for each setting.
fn weights(recipe: &Recipe, records: &[Record]) -> Picture {
    let rows = rows(recipe);
    let columns = rows.iter().map(|(_, settings)| settings.len()).max().unwrap_or(0);
    let (wide, high) = (140.0, 105.0);
    let mut picture =
        Picture::new(60.0 + columns as f64 * (wide + 14.0), 3.0 * (high + 45.0) + 50.0);
    for (line, (sign, settings)) in rows.iter().enumerate() {
        for (column, (value, id)) in settings.iter().enumerate() {
            let (left, top) =
                (45.0 + column as f64 * (wide + 14.0), 25.0 + line as f64 * (high + 45.0));
            let record = records
                .iter()
                .filter(|record| record.cell.condition == *id && !record.unreliability.is_empty())
                .min_by_key(|record| record.cell.run);
            let steps = record.map_or(1, |record| record.unreliability[0].len());
            let panel =
                Panel { frame: [left, top, wide, high], x: (0.0, steps as f64), y: (-0.02, 1.02) };
            panel.frame(&mut picture, &format!("{sign} = {}", number(*value)));
            if column == 0 {
                panel.marks_up(&mut picture, &[0.0, 0.5, 1.0]);
                picture.text_upwards((left - 28.0, top + high / 2.0), 9.0, "weight");
            }
            let steps: Vec<(f64, String)> =
                marks(panel.x, 3).into_iter().map(|step| (step, number(step))).collect();
            panel.marks_across(&mut picture, &steps);
            let Some(record) = record else { continue };
            let Some(condition) = recipe.condition(id) else { continue };
            let Some(method) = recipe.method(&record.cell.method) else { continue };
            let rule = recipe.rule(condition, method);
            for (order, &source) in by_level(record).iter().enumerate() {
                let depression = DISCRETE_AMOUNT * rule.depression_strength;
                let weight = |&c: &u64| rule.weighting.weight(depression * c as f64);
                let values: Vec<(f64, f64)> = record.unreliability[source]
                    .iter()
                    .enumerate()
                    .map(|(step, c)| (step as f64, weight(c)))
                    .collect();
                panel.line(&mut picture, &values, COLOURS[order % COLOURS.len()]);
            }
        }
    }
    let shares = ["0 %", "2.5 %", "5 %", "25 %", "100 %"].map(|share| format!("{share} flipped"));
    let bottom = 3.0 * (high + 45.0) + 35.0;
    legend(&mut picture, (45.0, bottom), shares.iter().map(String::as_str).zip(COLOURS));
    picture
}

/// Sources from the cleanest to the noisiest: those that are not noisy, then the noisy ones by their level.
fn by_level(record: &Record) -> Vec<usize> {
    let noisy = &record.noisy_sources;
    let clean = (0..record.unreliability.len()).filter(|&s| !noisy.contains(&(s as u32)));
    let noisy = noisy.iter().map(|&source| source as usize);
    clean.chain(noisy).filter(|&source| source < record.unreliability.len()).collect()
}

fn legend<'a>(
    picture: &mut Picture,
    (mut x, y): (f64, f64),
    entries: impl Iterator<Item = (&'a str, Colour)>,
) {
    for (name, colour) in entries {
        picture.line(vec![(x, y - 3.0), (x + 18.0, y - 3.0)], colour, 2.0);
        picture.text((x + 22.0, y), 9.0, Anchor::Start, name);
        x += 40.0 + 6.0 * name.chars().count() as f64;
    }
}

/// The box plots: what the paper plots in the first row, the loss after the last epoch in the second; the paper's boxes
/// beside ours.
fn boxes(recipe: &Recipe, records: &[Record]) -> Picture {
    let (wide, high) = (260.0, 170.0);
    let mut picture = Picture::new(60.0 + 3.0 * (wide + 30.0), 2.0 * (high + 55.0) + 45.0);
    let metrics = [
        ("max-loss", "greatest test loss of 25 epochs"),
        ("final-loss", "test loss after the last epoch"),
    ];
    for (line, (metric, title)) in metrics.into_iter().enumerate() {
        for (column, (sign, settings)) in rows(recipe).iter().enumerate() {
            let (left, top) =
                (50.0 + column as f64 * (wide + 30.0), 30.0 + line as f64 * (high + 55.0));
            let panel = Panel {
                frame: [left, top, wide, high],
                x: (-0.6, settings.len() as f64 - 0.4),
                y: (0.0, 0.85),
            };
            panel.frame(&mut picture, title);
            panel.marks_up(&mut picture, &marks(panel.y, 5));
            let names: Vec<(f64, String)> = settings
                .iter()
                .enumerate()
                .map(|(at, (value, _))| (at as f64, number(*value)))
                .collect();
            panel.marks_across(&mut picture, &names);
            picture.text((left + wide / 2.0, top + high + 26.0), 10.0, Anchor::Middle, *sign);
            for (at, (_, id)) in settings.iter().enumerate() {
                let paper = recipe.number(id, "lap", metric).and_then(|number| number.five);
                let ours: Vec<f64> = records
                    .iter()
                    .filter(|record| record.cell.condition == *id)
                    .filter_map(|record| record.metric(metric))
                    .collect();
                if let Some(five) = paper {
                    draw_box(&mut picture, &panel, at as f64 + 0.2, five, FAINT);
                }
                if let Some(five) = five_numbers(&ours) {
                    draw_box(&mut picture, &panel, at as f64 - 0.2, five, COLOURS[2]);
                }
            }
        }
    }
    let entries = [("ours", COLOURS[2]), ("the paper's", FAINT)];
    legend(&mut picture, (50.0, 2.0 * (high + 55.0) + 35.0), entries.into_iter());
    picture
}

fn draw_box(picture: &mut Picture, panel: &Panel, x: f64, five: [f64; 5], colour: Colour) {
    let [least, lower, median, upper, greatest] = five;
    let at = |dx: f64, y: f64| panel.place(x + dx, y);
    picture.line(vec![at(0.0, least), at(0.0, greatest)], colour, 1.0);
    let corners = vec![at(-0.16, lower), at(0.16, lower), at(0.16, upper), at(-0.16, upper)];
    picture.area(corners.clone(), colour, 0.45);
    picture.line([&corners[..], &corners[..1]].concat(), colour, 1.0);
    picture.line(vec![at(-0.16, median), at(0.16, median)], INK, 1.5);
}

/// A line of a figure over conditions: its name, what was found in each of them, and the paper's.
struct Line<'a> {
    name: &'a str,
    ours: Vec<Option<Statistics>>,
    paper: Vec<(usize, f64)>,
}

/// Accuracy over conditions, a line for each method; the paper's dashed.
fn curve(recipe: &Recipe, records: &[Record]) -> Picture {
    let paper = recipe.paper.numbers.iter().filter(|number| number.metric.is_none());
    let paper = paper.flat_map(|number| {
        let std = number.std.unwrap_or(0.0);
        [number.mean - std, number.mean + std]
    });
    let ours = records.iter().filter_map(|record| record.metric(&recipe.metric));
    let y = range(paper.chain(ours));
    let lines = recipe.methods.iter().map(|method| {
        let of = |condition: &str| {
            let runs: Vec<f64> = records
                .iter()
                .filter(|r| r.cell.condition == condition && r.cell.method == method.id)
                .filter_map(|record| record.metric(&recipe.metric))
                .collect();
            Statistics::of(&runs)
        };
        let ours = recipe.conditions.iter().map(|condition| of(&condition.id)).collect();
        let paper = recipe.conditions.iter().enumerate().filter_map(|(at, condition)| {
            Some((at, recipe.number(&condition.id, &method.id, &recipe.metric)?.mean))
        });
        Line { name: &method.name, ours, paper: paper.collect() }
    });
    let lines: Vec<Line> = lines.collect();
    over_conditions(recipe, 420.0, y, &metric_name(&recipe.metric), &lines)
}

/// What the last method gains over the first in each condition, pair by pair, a line for each metric.
fn gains(recipe: &Recipe, records: &[Record]) -> Picture {
    let value = |condition: &str, method: &str, run: usize, metric: &str| {
        let is_it = |record: &&Record| {
            let cell = &record.cell;
            cell.condition == condition && cell.method == method && cell.run == run
        };
        records.iter().find(is_it)?.metric(metric)
    };
    let ends = [recipe.methods.first(), recipe.methods.last()];
    let [first, last] = ends.map(|method| method.map_or("", |method| method.id.as_str()));
    let [less, more] = ends.map(|method| method.map_or("", |method| method.name.as_str()));
    let runs = records.iter().map(|record| record.cell.run + 1).max().unwrap_or(0);
    let names: Vec<String> = recipe.metrics().map(metric_name).collect();
    let lines = recipe.metrics().zip(&names).map(|(metric, name)| {
        let of = |condition: &str| {
            let gain = |run| {
                let better = value(condition, last, run, metric)?;
                Some(better - value(condition, first, run, metric)?)
            };
            Statistics::of(&(0..runs).filter_map(gain).collect::<Vec<f64>>())
        };
        let ours = recipe.conditions.iter().map(|condition| of(&condition.id)).collect();
        Line { name, ours, paper: Vec::new() }
    });
    let lines: Vec<Line> = lines.collect();
    let bars = lines.iter().flat_map(|line| line.ours.iter().flatten()).flat_map(|found| {
        let std = found.std.unwrap_or(0.0);
        [found.mean - std, found.mean + std]
    });
    let y = range(bars.chain([0.0]));
    let wide = 95.0 * recipe.conditions.len() as f64;
    let title = format!("gain of {more} over {less}, points");
    over_conditions(recipe, wide, y, &title, &lines)
}

/// Lines through means, bars of a standard deviation; the paper's dashed.
fn over_conditions(
    recipe: &Recipe,
    wide: f64,
    y: (f64, f64),
    title: &str,
    lines: &[Line<'_>],
) -> Picture {
    let panel = Panel {
        frame: [60.0, 30.0, wide, 260.0],
        x: (-0.5, recipe.conditions.len() as f64 - 0.5),
        y,
    };
    // As many as fit into a line of the legend.
    let fit = if lines.len() > 3 { 2 } else { 4 };
    let legends = lines.len().div_ceil(fit);
    let mut picture = Picture::new(wide + 90.0, 335.0 + 15.0 * legends as f64);
    panel.frame(&mut picture, &recipe.title);
    panel.marks_up(&mut picture, &marks(y, 6));
    let names: Vec<(f64, String)> = recipe
        .conditions
        .iter()
        .enumerate()
        .map(|(at, condition)| (at as f64, condition.name.clone()))
        .collect();
    panel.marks_across(&mut picture, &names);
    picture.text_upwards((22.0, 160.0), 9.0, title);
    let mut entries = Vec::new();
    for (column, line) in lines.iter().enumerate() {
        let colour = match lines.len() {
            0..=3 => COLOURS[(4 - 2 * (column % 3)) % COLOURS.len()],
            _ => COLOURS[column % COLOURS.len()],
        };
        // Many lines stand side by side, since some of them may be one.
        let aside = match lines.len() {
            0..=3 => 0.0,
            all => 0.05 * (column as f64 - (all - 1) as f64 / 2.0),
        };
        // A stroke for each stretch of conditions that were run: what was not leaves a gap.
        let mut strokes = vec![Vec::new()];
        for (at, found) in line.ours.iter().enumerate() {
            let Some(statistics) = found else {
                strokes.push(Vec::new());
                continue;
            };
            let (x, mean) = (at as f64 + aside, statistics.mean);
            if let Some(stroke) = strokes.last_mut() {
                stroke.push(panel.place(x, mean));
            }
            let std = statistics.std.unwrap_or(0.0);
            let bar = vec![panel.place(x, mean - std), panel.place(x, mean + std)];
            picture.line(bar, colour, 1.0);
            let (cx, cy) = panel.place(x, mean);
            let dot = [(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)];
            picture.area(dot.map(|(dx, dy)| (cx + dx, cy + dy)).to_vec(), colour, 1.0);
        }
        let dashes = line.paper.iter().map(|&(at, mean)| panel.place(at as f64, mean));
        picture.dashes(dashes.collect(), colour, 1.2);
        // Between kinds of noise there is nothing to join.
        if recipe.figure == Some(FigureKind::Curve) {
            strokes.into_iter().for_each(|stroke| picture.line(stroke, colour, 1.8));
        }
        entries.push((line.name, colour));
    }
    if !recipe.paper.numbers.is_empty() {
        entries.push(("dashed: the paper's", FAINT));
    }
    for (row, entries) in entries.chunks(fit).enumerate() {
        let place = (60.0, 335.0 + 15.0 * row as f64);
        legend(&mut picture, place, entries.iter().copied());
    }
    picture
}

/// What is measured after each epoch, a panel for each series that there is: the mean over runs of each method, a band of a
/// standard deviation, and the paper's mean dashed.
fn epochs(recipe: &Recipe, records: &[Record]) -> Picture {
    let tested = recipe.metric.split_once('-').map_or("", |(_, series)| series);
    let panels = [
        ("train-loss".to_owned(), "train loss, weighed".to_owned()),
        (format!("valid-{tested}"), format!("validation {tested}, %")),
        (tested.to_owned(), format!("test {tested}, %")),
    ];
    let own: Vec<&Record> = records.iter().filter(|record| record.failure.is_none()).collect();
    let panels: Vec<(String, String)> = panels
        .into_iter()
        .filter(|(series, _)| own.iter().any(|record| record.series.contains_key(series)))
        .collect();
    let longest = own.iter().filter_map(|record| record.series.get(tested)).map(Vec::len).max();
    let longest = longest.unwrap_or(1);
    let run = |method: &&MethodRecipe| own.iter().any(|record| record.cell.method == method.id);
    let methods: Vec<(&MethodRecipe, Colour)> = recipe
        .methods
        .iter()
        .filter(run)
        .enumerate()
        .map(|(place, method)| (method, COLOURS[(4 - 2 * (place % 3)) % COLOURS.len()]))
        .collect();
    let (high, apart) = (180.0, 215.0);
    let bottom = 30.0 + apart * panels.len() as f64;
    let mut picture = Picture::new(510.0, bottom + 24.0);
    let mut is_compared = false;
    for (row, (series, name)) in panels.iter().enumerate() {
        let lines = methods.iter().map(|(method, _)| over_epochs(&own, &method.id, series));
        let lines: Vec<Vec<Statistics>> = lines.collect();
        let theirs = methods.iter().map(|(method, _)| {
            let mut curves = recipe.paper.curves.iter();
            let curve = curves.find(|c| c.method == method.id && c.series == *series);
            // A shorter run stands beside as many epochs of theirs.
            curve.map_or(&[][..], |curve| &curve.mean[..curve.mean.len().min(longest)])
        });
        let theirs: Vec<&[f64]> = theirs.collect();
        is_compared |= theirs.iter().any(|curve| !curve.is_empty());
        let bands = lines.iter().flatten().flat_map(|found| {
            let std = found.std.unwrap_or(0.0);
            [found.mean - std, found.mean + std]
        });
        let top = 30.0 + apart * row as f64;
        let panel = Panel {
            frame: [60.0, top, 420.0, high],
            x: (1.0, longest.max(2) as f64),
            y: range(bands.chain(theirs.iter().copied().flatten().copied())),
        };
        panel.frame(&mut picture, if row == 0 { &recipe.title } else { "" });
        panel.marks_up(&mut picture, &marks(panel.y, 5));
        let names: Vec<(f64, String)> =
            marks(panel.x, 6).into_iter().map(|epoch| (epoch, number(epoch))).collect();
        panel.marks_across(&mut picture, &names);
        picture.text_upwards((22.0, top + high / 2.0), 9.0, name.clone());
        for ((line, theirs), &(_, colour)) in lines.iter().zip(&theirs).zip(&methods) {
            let place = |(at, value): (usize, f64)| panel.place((at + 1) as f64, value);
            let along = |value: &dyn Fn(&Statistics) -> f64| -> Vec<Point> {
                line.iter().map(value).enumerate().map(place).collect()
            };
            let above = along(&|found| found.mean + found.std.unwrap_or(0.0));
            let mut below = along(&|found| found.mean - found.std.unwrap_or(0.0));
            below.reverse();
            picture.area([above, below].concat(), colour, 0.25);
            picture.line(along(&|found| found.mean), colour, 1.8);
            let dashes = theirs.iter().copied().enumerate().map(place).collect();
            picture.dashes(dashes, colour, 1.2);
        }
    }
    picture.text((270.0, bottom - 6.0), 9.0, Anchor::Middle, "epoch");
    let entries = methods.iter().map(|(method, colour)| (method.name.as_str(), *colour));
    let paper = is_compared.then_some(("dashed: the paper's", FAINT));
    legend(&mut picture, (60.0, bottom + 14.0), entries.chain(paper));
    picture
}

/// A series of a method after each epoch, over those of its runs that came so far.
fn over_epochs(records: &[&Record], method: &str, series: &str) -> Vec<Statistics> {
    let own = records.iter().filter(|record| record.cell.method == method);
    let runs: Vec<&Vec<f64>> = own.filter_map(|record| record.series.get(series)).collect();
    let after = |epoch: usize| -> Vec<f64> {
        runs.iter().filter_map(|run| run.get(epoch).copied()).collect()
    };
    (0..).map_while(|epoch| Statistics::of(&after(epoch))).collect()
}

/// How many samples sources have, in powers of ten, and how many classes, the sources with the most first.
fn sizes(recipe: &Recipe, records: &[Record]) -> Picture {
    let counted = |at: usize| {
        let found = records.iter().find_map(|record| record.histogram.get(at));
        let mut counts: Vec<u32> = found.cloned().unwrap_or_default();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    };
    let powers = |size: u32| f64::from(size.max(1)).log10();
    let panels = [
        (counted(0), &powers as &dyn Fn(u32) -> f64, "samples to train on, as a power of ten"),
        (counted(1), &|count| f64::from(count), "classes"),
    ];
    let mut picture = Picture::new(510.0, 620.0);
    for (at, (counts, height, what)) in panels.into_iter().enumerate() {
        let top = 30.0 + 290.0 * at as f64;
        let most = counts.first().map_or(1.0, |count| height(*count).ceil().max(1.0));
        let panel = Panel {
            frame: [60.0, top, 420.0, 230.0],
            x: (0.0, counts.len().max(1) as f64),
            y: (0.0, most),
        };
        panel.frame(&mut picture, if at == 0 { &recipe.title } else { "" });
        panel.marks_up(&mut picture, &marks(panel.y, 4));
        picture.text_upwards((22.0, top + 115.0), 9.0, what);
        for (place, &count) in counts.iter().enumerate() {
            let (left, right, height) = (place as f64, place as f64 + 0.8, height(count));
            let corners = [(left, 0.0), (right, 0.0), (right, height), (left, height)];
            picture.area(corners.map(|(x, y)| panel.place(x, y)).to_vec(), COLOURS[2], 0.8);
        }
    }
    picture.text((270.0, 605.0), 9.0, Anchor::Middle, "sources, those with the most first");
    picture
}

/// Figure 3: losses of the sources, the pooled mean, and the threshold.
fn histograms(recipe: &Recipe, records: &[Record]) -> Picture {
    let (wide, high) = (280.0, 170.0);
    let mut picture = Picture::new(40.0 + 3.0 * (wide + 30.0), high + 90.0);
    for (column, condition) in recipe.conditions.iter().enumerate() {
        let Some(record) = records.iter().find(|r| r.cell.condition == condition.id) else {
            continue;
        };
        let value = |name: &str| record.metric(name).unwrap_or(0.0);
        let (low, highest) = (value("lowest"), value("highest"));
        let most = record.histogram.iter().flatten().copied().max().unwrap_or(1);
        let left = 30.0 + column as f64 * (wide + 30.0);
        let panel = Panel {
            frame: [left, 30.0, wide, high],
            x: (low, highest),
            y: (0.0, 1.08 * f64::from(most)),
        };
        panel.frame(&mut picture, &condition.name);
        let names: Vec<(f64, String)> =
            marks(panel.x, 6).into_iter().map(|mark| (mark, number(mark))).collect();
        panel.marks_across(&mut picture, &names);
        picture.text((left + wide / 2.0, high + 58.0), 9.0, Anchor::Middle, "loss");
        let bin = (highest - low) / BINS as f64;
        for (source, counts) in record.histogram.iter().enumerate() {
            let mut corners = vec![panel.place(low, 0.0)];
            for (at, &count) in counts.iter().enumerate() {
                let start = low + at as f64 * bin;
                corners.push(panel.place(start, f64::from(count)));
                corners.push(panel.place(start + bin, f64::from(count)));
            }
            corners.push(panel.place(highest, 0.0));
            picture.area(corners, COLOURS[source % COLOURS.len()], 0.6);
        }
        for (name, dashed) in [("pooled-mean", true), ("threshold", false)] {
            let line = vec![panel.place(value(name), 0.0), panel.place(value(name), panel.y.1)];
            if dashed { picture.dashes(line, INK, 1.5) } else { picture.line(line, INK, 1.5) }
        }
    }
    let text = "colours: five sources; dashed: mean of all losses; line: threshold";
    picture.text((30.0, high + 80.0), 9.0, Anchor::Start, text);
    picture
}
