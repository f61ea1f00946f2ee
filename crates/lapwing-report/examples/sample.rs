//! Renders a sample report, to look at: `cargo run -p lapwing-report --example sample -- report.html`.
//!
//! The data resembles the two moons of `lapwing demo`: five sources whose labels are wrong in 0, 2.5, 5, 25 and 100 %
//! of rows. The losses are drawn from a formula and weighted by the rule of the method; no network is trained.

use std::{env, error::Error, fs, process::ExitCode};

use lapwing_judge::{
    Comparison, Confusion, Departure, Disagreement, Evidence, Fault, Finding, FrequentDisagreement,
    Interval, Phase, PhaseLosses, ScatteredDisagreements, SourceRow, SureRows, Verdict, WorstRow,
};
use lapwing_report::{
    Column, Dropped, EpochMetric, Outcome, Point, Report, Setting, Summary, Task, Trajectory,
    Warning,
};

const STEPS: u64 = 1_600;
const EPOCHS: u64 = 40;
const LENIENCY: f64 = 0.8;
const STRENGTH: f64 = 1.0;
const HISTORY: usize = 25;
const SOURCES: [(&str, f64); 5] = [
    ("station 1 (clean)", 0.0),
    ("station 2 (2.5 %)", 0.025),
    ("station 3 (5 %)", 0.05),
    ("station 4 (25 %)", 0.25),
    ("station 5 (100 %)", 1.0),
];
const ROWS: u64 = 1_000;

fn main() -> ExitCode {
    let Some(path) = env::args().nth(1) else {
        eprintln!("usage: sample FILE.html");
        return ExitCode::from(2);
    };
    let write = || -> Result<(), Box<dyn Error>> {
        Ok(fs::write(&path, lapwing_report::render(&report())?)?)
    };
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

/// Pseudo-random numbers (SplitMix64): the same sample every time.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Roughly normal: a sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A source while it is simulated.
struct Course {
    points: Vec<Point>,
    unreliability: f64,
    above: u64,
    departed: Option<u64>,
}

fn weight(unreliability: f64) -> f64 {
    1.0 - (0.005 * STRENGTH * unreliability).tanh().powi(2)
}

fn simulate() -> Vec<Course> {
    let mut random = Random(7);
    let mut courses: Vec<Course> = SOURCES
        .iter()
        .map(|_| Course { points: Vec::new(), unreliability: 0.0, above: 0, departed: None })
        .collect();
    for step in 1..=STEPS {
        let progress = step as f64 / STEPS as f64;
        let clean = 0.06 + 0.62 * (-9.0 * progress).exp();
        let wrong = 2.9 - 2.2 * (-5.0 * progress).exp();
        for (course, (_, noise)) in courses.iter_mut().zip(SOURCES) {
            // Labels are flipped at random, so half of the noisy ones are right by chance.
            let spread = 0.05 + 0.25 * (noise * 0.5 * (1.0 - noise * 0.5)).sqrt();
            let loss = clean + 0.5 * noise * (wrong - clean) + spread * random.normal();
            course.points.push(Point {
                step,
                loss: Some(loss.max(0.004)),
                weight: weight(course.unreliability),
            });
        }
        if step as usize > HISTORY {
            let references: Vec<(f64, f64)> =
                (0..SOURCES.len()).map(|s| reference(&courses, Some(s), HISTORY)).collect();
            for (course, (mean, std)) in courses.iter_mut().zip(references) {
                let own = recent(course, HISTORY).iter().sum::<f64>() / HISTORY as f64;
                let above = own > mean + LENIENCY * std;
                course.unreliability = if above {
                    course.unreliability + 1.0
                } else {
                    (course.unreliability - 1.0).max(0.0)
                };
                course.above += u64::from(above);
                if above && course.unreliability > 20.0 {
                    course.departed.get_or_insert(step - 20);
                }
            }
        }
    }
    courses
}

fn recent(course: &Course, n: usize) -> Vec<f64> {
    course.points[course.points.len() - n..].iter().filter_map(|p| p.loss).collect()
}

/// Weighted mean and standard deviation of the recent losses of all sources but one.
fn reference(courses: &[Course], without: Option<usize>, n: usize) -> (f64, f64) {
    let losses: Vec<(f64, f64)> = courses
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != without)
        .flat_map(|(_, course)| {
            recent(course, n).into_iter().map(|loss| (weight(course.unreliability), loss))
        })
        .collect();
    weighted(&losses)
}

/// Mean and standard deviation of values that come with weights.
fn weighted(values: &[(f64, f64)]) -> (f64, f64) {
    let total: f64 = values.iter().map(|(w, _)| w).sum();
    let mean = values.iter().map(|(w, x)| w * x).sum::<f64>() / total;
    let variance = values.iter().map(|(w, x)| w * (x - mean).powi(2)).sum::<f64>() / total;
    (mean, variance.sqrt())
}

fn source_row(s: usize, courses: &[Course]) -> SourceRow {
    let (name, noise) = SOURCES[s];
    let course = &courses[s];
    let (mean, std) = reference(courses, Some(s), HISTORY);
    let error = noise * 0.5;
    let half = 1.96 * (error * (1.0 - error) / ROWS as f64).sqrt() + 0.002;
    SourceRow {
        source: name.to_owned(),
        verdict: match weight(course.unreliability) {
            w if w < 0.2 => Verdict::Unreliable,
            w if w < 0.9 => Verdict::Suspect,
            _ => Verdict::Reliable,
        },
        rows: ROWS,
        batches: STEPS,
        unreliability: course.unreliability as u64,
        weight: weight(course.unreliability),
        mean_loss: Some(recent(course, HISTORY).iter().sum::<f64>() / HISTORY as f64),
        reference_loss: Some(mean),
        reference_std: Some(std),
        judged: STEPS,
        above: course.above,
        label_error: Some(Interval {
            estimate: error,
            low: (error - half).max(0.0),
            high: error + half,
        }),
        first_departure_step: course.departed.map(|step| step as i64),
        ..SourceRow::default()
    }
}

fn phases(courses: &[Course]) -> Vec<Phase> {
    let third = (STEPS / 3) as usize;
    let phase = |(i, name): (usize, &str)| {
        let steps = i * third..(i + 1) * third;
        let sources: Vec<(String, f64, Vec<f64>)> = courses
            .iter()
            .zip(SOURCES)
            .map(|(course, (name, _))| {
                let points = &course.points[steps.clone()];
                let weight = points.last().map_or(1.0, |p| p.weight);
                (name.to_owned(), weight, points.iter().filter_map(|p| p.loss).collect())
            })
            .collect();
        let losses = sources
            .iter()
            .flat_map(|(_, weight, losses)| losses.iter().map(|loss| (*weight, *loss)));
        let (mean, std) = weighted(&losses.collect::<Vec<_>>());
        PhaseLosses {
            name: name.to_owned(),
            first_step: steps.start as u64 + 1,
            last_step: steps.end as u64,
            reference_mean: Some(mean),
            threshold: Some(mean + LENIENCY * std),
            sources,
        }
    };
    let phases: Vec<PhaseLosses> =
        ["early", "middle", "late"].into_iter().enumerate().map(phase).collect();
    Phase::count(&phases)
}

fn evidence(s: usize, random: &mut Random) -> Evidence {
    let (name, noise) = SOURCES[s];
    let wrong = (ROWS as f64 * noise * 0.5) as u64;
    let right = ROWS - wrong;
    let moons = ["upper".to_owned(), "lower".to_owned()];
    let counts = vec![
        vec![right / 2 - 3, wrong / 2 + 3],
        vec![wrong - wrong / 2 + 5, right - right / 2 - 5],
    ];
    let mut loss = 6.4;
    let worst_rows = (0..10).map(|_| {
        loss -= 0.25 * random.uniform();
        let given = usize::from(random.uniform() < 0.5);
        WorstRow {
            row: s as u64 * ROWS + (random.uniform() * ROWS as f64) as u64 + 1,
            given: moons[given].clone(),
            predicted: moons[1 - given].clone(),
            probability: Some(1.0 - f64::exp(-loss)),
            loss: Some(loss),
            features: vec![
                format!("{:.3}", 3.0 * random.uniform() - 1.0),
                format!("{:.3}", 1.5 * random.uniform() - 0.5),
            ],
            picture: None,
            text: None,
            ..Default::default()
        }
    });
    Evidence {
        source: name.to_owned(),
        features: vec!["x".to_owned(), "y".to_owned()],
        worst_rows: worst_rows.collect(),
        comparison: Some(Comparison::Labels(Confusion {
            classes: moons.to_vec(),
            counts,
            reliable_agreement: Some(0.981),
        })),
    }
}

/// What the examinations would find in such rows.
fn findings(row: &SourceRow, evidence: &Evidence) -> Vec<Finding> {
    let Some(Comparison::Labels(confusion)) = &evidence.comparison else { return Vec::new() };
    let counts = &confusion.counts;
    let wrong = counts[0][1] + counts[1][0];
    let given = usize::from(counts[1][0] > counts[0][1]);
    let found = |fault: Fault, rows: &[u64]| Finding { fault, strength: 0.5, rows: rows.to_vec() };
    let sure: Vec<u64> = evidence.worst_rows.iter().map(|row| row.row).take(5).collect();
    let disagreement = Disagreement {
        agreement: 1.0 - wrong as f64 / ROWS as f64,
        of: ROWS,
        reliable: confusion.reliable_agreement,
    };
    let frequent = FrequentDisagreement {
        given: confusion.classes[given].clone(),
        predicted: confusion.classes[1 - given].clone(),
        count: counts[given][1 - given],
        of: wrong,
    };
    let departure = Departure { step: row.first_departure_step, share_above: row.share_above() };
    vec![
        found(disagreement.into(), &sure),
        found(ScatteredDisagreements {}.into(), &sure),
        found(frequent.into(), &sure),
        found(SureRows { probability: 0.95 }.into(), &sure),
        found(departure.into(), &[]),
    ]
}

fn epochs(random: &mut Random) -> Vec<EpochMetric> {
    let mut lines = Vec::new();
    for epoch in 1..=EPOCHS {
        let fit = 1.0 - (-(epoch as f64) / 6.0).exp();
        for (split, loss, accuracy) in [
            ("train", 0.69 - 0.28 * fit, 0.5 + 0.36 * fit),
            ("validation", 0.69 - 0.55 * fit, 0.5 + 0.465 * fit),
            ("test", 0.69 - 0.59 * fit, 0.5 + 0.48 * fit),
        ] {
            let mut line = |metric: &str, value: f64| {
                lines.push(EpochMetric {
                    epoch,
                    split: split.into(),
                    metric: metric.into(),
                    value: Some(value),
                });
            };
            line("loss", loss + 0.01 * random.normal());
            line("accuracy", accuracy + 0.004 * random.normal());
        }
    }
    lines
}

/// The sample.
pub(crate) fn report() -> Report {
    let courses = simulate();
    let mut random = Random(11);
    let mut sources: Vec<SourceRow> = (0..SOURCES.len()).map(|s| source_row(s, &courses)).collect();
    let flagged = (0..SOURCES.len()).filter(|s| sources[*s].verdict.is_flagged());
    let evidence: Vec<Evidence> = flagged.map(|s| evidence(s, &mut random)).collect();
    for evidence in &evidence {
        if let Some(row) = sources.iter_mut().find(|row| row.source == evidence.source) {
            row.findings = findings(row, evidence);
        }
    }
    let setting =
        |key: &str, value: &str, chosen| Setting { key: key.into(), value: value.into(), chosen };
    let column = |name: &str, role: &str, kind: &str, missing, note: &str| Column {
        name: name.into(),
        role: role.into(),
        kind: kind.into(),
        missing,
        note: note.into(),
    };
    Report {
        summary: Summary {
            title: "two-moons.csv".into(),
            target: "moon".into(),
            source_column: "station".into(),
            task: Task::Classification,
            method: "lap".into(),
            model: "mlp".into(),
            model_reason: String::new(),
            rows: ROWS * SOURCES.len() as u64,
            steps: STEPS,
            epochs: EPOCHS,
            rounds: false,
            best_epoch: Some(34),
            history_length: HISTORY as u64,
            leniency: LENIENCY,
            depression_strength: STRENGTH,
            folds: 0,
            judged_rows: 0,
            outcome: Some(Outcome {
                metric: "accuracy".into(),
                split: "test".into(),
                value: 0.978,
                standard: Some(0.934),
            }),
            seed: Some(0),
            version: "0.1.0".into(),
            created: String::new(),
            origin: String::new(),
        },
        warnings: vec![Warning::ClassWeightedDown {
            class: "lower".into(),
            share: 0.62,
            sources: [4, 3].map(|place: usize| SOURCES[place].0.to_owned()).into_iter().collect(),
        }],
        trajectories: courses
            .iter()
            .zip(SOURCES)
            .map(|(c, (name, _))| Trajectory { source: name.into(), points: c.points.clone() })
            .collect(),
        phases: phases(&courses),
        rows: Vec::new(),
        evidence,
        sources,
        epochs: epochs(&mut random),
        importance: Vec::new(),
        configuration: vec![
            setting("method", "lap", false),
            setting("model", "mlp", false),
            setting("hidden", "[100, 100]", false),
            setting("epochs", "40", true),
            setting("batch_size", "125", false),
            setting("learning_rate", "0.001", false),
            setting("optimiser", "adam", false),
            setting("history_length", "25", false),
            setting("leniency", "0.8", false),
            setting("depression_strength", "1.0", true),
            setting("warm_up", "0", false),
            setting("test_fraction", "0.2", false),
            setting("seed", "0", false),
        ],
        dropped: vec![
            Dropped { reason: "target missing".into(), rows: 14 },
            Dropped { reason: "source missing".into(), rows: 3 },
        ],
        schema: vec![
            column("x", "feature", "numeric", 0, "standardised"),
            column(
                "y",
                "feature",
                "numeric",
                12,
                "standardised; missing values replaced by the mean, with an indicator",
            ),
            column("moon", "target", "categorical", 14, "2 classes: lower, upper"),
            column("station", "source", "text", 3, "5 sources; not a feature"),
            column("id", "ignored", "integer", 0, "different in every row"),
        ],
    }
}
