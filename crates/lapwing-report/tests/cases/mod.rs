//! Reports that are hard to render.
#![allow(dead_code)]

use lapwing_judge::{
    Comparison, Confusion, Evidence, ExchangedClasses, Finding, Histogram, Interval, Phase,
    RenumberedClasses, ResidualSpread, SourceLosses, SourceNoise, SourceRow, Unit, Verdict,
    WideResiduals, WorstRow,
};
use lapwing_report::{
    Column, DoubtfulRow, Dropped, EpochMetric, Importance, Outcome, Point, Report, Setting,
    Summary, Task, Trajectory, Warning,
};

/// Names as an enemy would choose them.
pub(crate) const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "</style></title></svg><svg onload=alert(3)>",
    "' onmouseover='alert(4)",
    "{{7*7}}{% raw %}{# gone #}",
    "javascript:alert(5)",
    "]]><!--",
    "&lt;b&gt;&amp;",
];

fn exchanged(first: String, second: String) -> Finding {
    Finding::new(ExchangedClasses { first, second, share: 0.9 }.into(), 0.9)
}

/// A report on rows that are pictures of 2 × 2 pixels.
pub(crate) fn pictures() -> Report {
    // lapwing_sample::png(2, 2, …) in base64: black, white, red and blue.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR42mNgYGD4//8/w38GEAMAIewE/FQ/Gr8AAAAASUVORK5CYII=";
    let row = |row: u64| WorstRow {
        row,
        given: "3".into(),
        predicted: "<b>8".into(),
        probability: Some(0.99),
        picture: Some(PNG.into()),
        ..Default::default()
    };
    let evidence = Evidence {
        source: "scanner".into(),
        worst_rows: (1..=10).map(row).collect(),
        ..Default::default()
    };
    let source =
        SourceRow { source: "scanner".into(), verdict: Verdict::Unreliable, ..Default::default() };
    let rows = vec![DoubtfulRow {
        row: 3,
        source: "scanner".into(),
        file: Some("scans/<b>.png".into()),
        picture: Some(PNG.into()),
        ..Default::default()
    }];
    // Rows to check are shown where networks judged labels.
    let summary = Summary { folds: 3, ..Default::default() };
    Report { summary, rows, sources: vec![source], evidence: vec![evidence], ..Default::default() }
}

/// A report in which every text is hostile.
pub(crate) fn hostile() -> Report {
    let long = "x".repeat(10_000);
    let mut names: Vec<String> = HOSTILE.iter().map(|name| (*name).to_owned()).collect();
    names.extend([
        long,
        "\u{202E}drow\u{200B}".to_owned(),
        "שלום".to_owned(),
        String::new(),
        "a\0b".to_owned(),
    ]);
    let text = |i: usize| names[i % HOSTILE.len()].clone();
    let losses = Histogram { low: 0.0, high: 1.0, counts: vec![1, 2, 3] };
    let source_losses =
        |name: &String| SourceLosses { source: name.clone(), weight: 0.5, losses: losses.clone() };
    let points = |i: usize| {
        (0..50)
            .map(|step| Point { step, loss: Some(i as f64 / 8.0), weight: 1.0 - i as f64 / 16.0 })
            .collect()
    };
    let evidence = |(i, name): (usize, &String)| Evidence {
        source: name.clone(),
        features: vec![text(i), text(i + 1)],
        worst_rows: vec![WorstRow {
            row: 7,
            given: text(i),
            predicted: text(i + 1),
            probability: Some(0.99),
            loss: Some(3.0),
            features: vec![text(i), text(i + 2)],
            text: Some(text(i)),
            lines: vec![vec![f32::MAX, 0.0, f32::MIN], Vec::new()],
            typical: vec![vec![1.0, 2.0]],
            picture: None,
        }],
        comparison: Some(Comparison::Labels(Confusion {
            classes: names.clone(),
            counts: vec![vec![5; names.len()]; names.len()],
            reliable_agreement: Some(0.9),
        })),
    };
    Report {
        summary: Summary {
            title: text(0),
            target: text(1),
            source_column: text(2),
            method: text(3),
            model: text(4),
            model_reason: text(5),
            version: text(4),
            created: text(5),
            origin: text(6),
            steps: 50,
            folds: 3,
            judged_rows: 1234,
            outcome: Some(Outcome {
                metric: text(0),
                split: text(1),
                value: 0.5,
                standard: Some(0.4),
            }),
            ..Default::default()
        },
        warnings: vec![
            Warning::Other { text: text(0) },
            Warning::ClassWeightedDown {
                class: text(1),
                share: 0.9,
                sources: names.iter().cloned().collect(),
            },
            Warning::WindowsNeverFilled {
                sources: names.iter().cloned().collect(),
                history_length: 25,
                most_batches: 3,
            },
            Warning::TwoSources { sources: names.clone() },
            Warning::OneLabel { sources: names.clone(), count: 100 },
            Warning::ClassOfOneSource { classes: vec![(text(2), text(3))], count: 2 },
        ],
        rows: (0..names.len())
            .map(|i| DoubtfulRow {
                row: i as u64,
                source: names[i].clone(),
                label: text(i + 1),
                wrong: Some(0.9),
                label_probability: Some(0.1),
                suggestion: text(i + 2),
                suggestion_probability: 0.8,
                text: Some(text(i)),
                file: Some(text(i)),
                ..Default::default()
            })
            .collect(),
        sources: names
            .iter()
            .enumerate()
            .map(|(i, name)| SourceRow {
                source: name.clone(),
                verdict: Verdict::Unreliable,
                weight: 0.5,
                noise: Some(SourceNoise::default()),
                findings: vec![
                    exchanged(text(i), text(i + 1)),
                    Finding::new(
                        RenumberedClasses { moves: vec![(text(i), text(i + 1))] }.into(),
                        1.0,
                    ),
                ],
                ..Default::default()
            })
            .collect(),
        trajectories: names
            .iter()
            .enumerate()
            .map(|(i, name)| Trajectory { source: name.clone(), points: points(i) })
            .collect(),
        phases: vec![Phase {
            name: text(0),
            threshold: Some(0.5),
            sources: names.iter().map(source_losses).collect(),
            ..Default::default()
        }],
        evidence: names.iter().enumerate().map(evidence).collect(),
        importance: HOSTILE
            .iter()
            .map(|name| Importance { name: (*name).into(), share: 0.1 })
            .collect(),
        epochs: (0..HOSTILE.len())
            .map(|i| EpochMetric {
                epoch: 1,
                split: text(i),
                metric: text(i + 1),
                value: Some(1.0),
            })
            .collect(),
        configuration: (0..HOSTILE.len())
            .map(|i| Setting { key: text(i), value: text(i + 1), chosen: true })
            .collect(),
        dropped: (0..HOSTILE.len()).map(|i| Dropped { reason: text(i), rows: 1 }).collect(),
        schema: (0..HOSTILE.len())
            .map(|i| Column {
                name: text(i),
                kind: text(i + 1),
                role: text(i + 2),
                missing: 0,
                note: text(i + 3),
            })
            .collect(),
    }
}

/// A report in which no number is a number.
pub(crate) fn nonsense() -> Report {
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324];
    let sources: Vec<SourceRow> = bad
        .iter()
        .enumerate()
        .map(|(i, x)| SourceRow {
            source: format!("s{i}"),
            verdict: Verdict::Suspect,
            weight: *x,
            mean_loss: Some(*x),
            reference_loss: Some(*x),
            reference_std: Some(*x),
            label_error: Some(Interval { estimate: *x, low: *x, high: *x }),
            noise: Some(SourceNoise {
                noise_rate: Interval { estimate: *x, low: *x, high: *x },
                disagreement: *x,
                doubt: *x,
                class_mix: *x,
                ..SourceNoise::default()
            }),
            findings: vec![
                Finding::new(
                    ResidualSpread { mean: *x, std: *x, of: 1, reliable: Some((*x, *x)) }.into(),
                    *x,
                ),
                Finding::new(Unit { correlation: *x, slope: *x }.into(), *x),
                Finding::new(WideResiduals { ratio: *x }.into(), *x),
            ],
            ..Default::default()
        })
        .collect();
    let histogram = |x: f64| Histogram { low: x, high: -x, counts: vec![1, u64::MAX] };
    let points = |x: f64| {
        vec![
            Point { step: 0, loss: Some(x), weight: x },
            Point { step: u64::MAX, loss: Some(-x), weight: x },
        ]
    };
    let residuals =
        |x: f64| Comparison::Targets { own: histogram(x), reliable: Some(histogram(-x)) };
    let named = |i: usize| format!("s{i}");
    Report {
        summary: Summary {
            leniency: f64::NAN,
            outcome: Some(Outcome {
                value: f64::NAN,
                standard: Some(f64::INFINITY),
                ..Default::default()
            }),
            best_epoch: Some(u64::MAX),
            folds: u64::MAX,
            ..Default::default()
        },
        trajectories: bad
            .iter()
            .enumerate()
            .map(|(i, x)| Trajectory { source: named(i), points: points(*x) })
            .collect(),
        phases: bad
            .iter()
            .map(|x| Phase {
                reference_mean: Some(*x),
                threshold: Some(*x),
                sources: bad
                    .iter()
                    .enumerate()
                    .map(|(i, y)| SourceLosses {
                        source: named(i),
                        weight: *y,
                        losses: histogram(*y),
                    })
                    .collect(),
                ..Default::default()
            })
            .collect(),
        evidence: bad
            .iter()
            .enumerate()
            .map(|(i, x)| Evidence {
                source: named(i),
                comparison: Some(residuals(*x)),
                ..Default::default()
            })
            .collect(),
        importance: bad.iter().map(|&share| Importance { name: "a".into(), share }).collect(),
        epochs: bad
            .iter()
            .map(|x| EpochMetric {
                epoch: 3,
                split: "train".into(),
                metric: "loss".into(),
                value: Some(*x),
            })
            .collect(),
        sources,
        ..Default::default()
    }
}

/// Many sources, a few of them flagged.
pub(crate) fn crowd(n: usize) -> Report {
    let source = |i: usize| SourceRow {
        source: format!("annotator {i}"),
        verdict: if i.is_multiple_of(500) { Verdict::Unreliable } else { Verdict::Reliable },
        rows: (i * 7919 % 1000) as u64,
        weight: if i.is_multiple_of(500) { 0.1 } else { 1.0 },
        ..Default::default()
    };
    let points = |i: usize| {
        (0..400).map(|step| Point { step, loss: Some((i % 17) as f64), weight: 1.0 }).collect()
    };
    Report {
        sources: (0..n).map(source).collect(),
        trajectories: (0..n)
            .map(|i| Trajectory { source: format!("annotator {i}"), points: points(i) })
            .collect(),
        ..Default::default()
    }
}

/// A run on numbers: one source reports in another unit.
pub(crate) fn regression() -> Report {
    let noise = |i: i32| f64::from(i * 7919 % 101 - 50) / 100.0;
    let own: Vec<f64> = (0..400).map(|i| 1.2 * f64::from(i % 20) + noise(i)).collect();
    let reliable: Vec<f64> = (0..400).map(|i| 2.0 * noise(i) + noise(3 * i)).collect();
    let row = |source: &str, verdict, weight| SourceRow {
        source: source.into(),
        verdict,
        weight,
        rows: 400,
        ..Default::default()
    };
    let worst = |i: u64| WorstRow {
        row: 31 * i + 2,
        given: format!("{:.1}", 41.8 - i as f64 / 3.0),
        predicted: format!("{:.1}", 19.0 - i as f64 / 7.0),
        loss: Some(520.0 - 9.0 * i as f64),
        features: vec![format!("{}", 51 + i), "kitchen".into(), "2024-03-01".into()],
        ..Default::default()
    };
    Report {
        summary: Summary {
            title: "weights.parquet".into(),
            task: Task::Regression,
            rows: 1_200,
            outcome: Some(Outcome {
                metric: "mse".into(),
                split: "test".into(),
                value: 0.31,
                standard: Some(14.2),
            }),
            ..Default::default()
        },
        sources: vec![
            row("scale A", Verdict::Reliable, 1.0),
            row("scale B", Verdict::Reliable, 0.98),
            SourceRow {
                findings: vec![Finding::new(Unit { correlation: 1.0, slope: 2.2 }.into(), 1.0)],
                ..row("scale C", Verdict::Unreliable, 0.07)
            },
        ],
        evidence: vec![Evidence {
            source: "scale C".into(),
            features: vec!["age".into(), "room".into(), "day".into()],
            worst_rows: (0..6).map(worst).collect(),
            comparison: Some(Comparison::Targets {
                own: Histogram::of(&own, -1.5, 23.3),
                reliable: Some(Histogram::of(&reliable, -1.5, 23.3)),
            }),
        }],
        ..Default::default()
    }
}
