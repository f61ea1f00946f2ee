//! The page in a real browser.
//!
//! Needs Chromium (Debian: `apt-get install chromium`); LAPWING_SKIP_BROWSER=1 leaves these tests out, and
//! LAPWING_SCREENSHOTS=FOLDER keeps pictures to look at.

mod chromium;
#[path = "../../examples/sample.rs"]
#[allow(dead_code)]
mod sample;

use std::fs;

use chromium::{Chromium, Complaints, skipped};
use lapwing_report::{
    Column, Comparison, Confusion, Dropped, EpochMetric, Evidence, Histogram, Outcome, Phase,
    Point, Report, Residuals, Setting, SourceLosses, SourceRow, Summary, Trajectory, Verdict,
    Warning, WorstRow, render,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Names as an enemy would choose them.
const HOSTILE: [&str; 9] = [
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

fn page(report: &Report) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, render(report).unwrap()).unwrap();
    (folder, file)
}

fn opened(report: &Report) -> (Chromium, TempDir) {
    let (folder, file) = page(report);
    let mut browser = Chromium::start();
    browser.open(&file);
    (browser, folder)
}

/// Names of the sources in the order of the table, as far as they are shown.
fn shown(browser: &mut Chromium) -> Vec<String> {
    let rows = "Array.from(document.querySelectorAll('#sources-table tbody tr'))";
    let names = browser.eval(&format!(
        "{rows}.filter(r => r.getClientRects().length).map(r => r.cells[0].textContent)"
    ));
    serde_json::from_value(names).unwrap()
}

/// The keys of one column, top to bottom; `None` where there is no value.
fn keys(browser: &mut Chromium, column: usize) -> Vec<Option<f64>> {
    let rows = "Array.from(document.querySelectorAll('#sources-table tbody tr'))";
    let keys = browser.eval(&format!("{rows}.map(r => r.cells[{column}].dataset.key ?? null).map(k => k === null ? null : Number(k))"));
    serde_json::from_value(keys).unwrap()
}

fn sorted(keys: &[Option<f64>], ascending: bool) -> bool {
    let known = keys.iter().take_while(|k| k.is_some()).count();
    let in_order = |a: &Option<f64>, b: &Option<f64>| if ascending { a <= b } else { a >= b };
    keys[..known].is_sorted_by(in_order) && keys[known..].iter().all(Option::is_none)
}

/// A report in which every text is hostile.
fn hostile() -> Report {
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
    let losses = Histogram {
        low: 0.0,
        high: 1.0,
        counts: vec![1, 2, 3],
    };
    let source_losses = |name: &String| SourceLosses {
        source: name.clone(),
        weight: 0.5,
        losses: losses.clone(),
    };
    let points = |i: usize| {
        (0..50)
            .map(|step| Point {
                step,
                loss: Some(0.1 * i as f64),
                weight: 1.0 / (i + 1) as f64,
            })
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
            version: text(4),
            created: text(5),
            steps: 50,
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
                sources: names.clone(),
            },
            Warning::WindowsNeverFilled {
                sources: names.clone(),
                history_length: 25,
                most_batches: 3,
            },
        ],
        sources: names
            .iter()
            .map(|name| SourceRow {
                source: name.clone(),
                verdict: Verdict::Unreliable,
                weight: 0.5,
                ..Default::default()
            })
            .collect(),
        trajectories: names
            .iter()
            .enumerate()
            .map(|(i, name)| Trajectory {
                source: name.clone(),
                points: points(i),
            })
            .collect(),
        phases: vec![Phase {
            name: text(0),
            threshold: Some(0.5),
            sources: names.iter().map(source_losses).collect(),
            ..Default::default()
        }],
        evidence: names.iter().enumerate().map(evidence).collect(),
        epochs: (0..HOSTILE.len())
            .map(|i| EpochMetric {
                epoch: 1,
                split: text(i),
                metric: text(i + 1),
                value: Some(1.0),
            })
            .collect(),
        configuration: (0..HOSTILE.len())
            .map(|i| Setting {
                key: text(i),
                value: text(i + 1),
                chosen: true,
            })
            .collect(),
        dropped: (0..HOSTILE.len())
            .map(|i| Dropped {
                reason: text(i),
                rows: 1,
            })
            .collect(),
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
fn nonsense() -> Report {
    let bad = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e308,
        -1e308,
        5e-324,
    ];
    let sources: Vec<SourceRow> = bad
        .iter()
        .enumerate()
        .map(|(i, x)| SourceRow {
            source: format!("s{i}"),
            verdict: Verdict::Suspect,
            weight: *x,
            unreliability: *x,
            mean_loss: Some(*x),
            reference_loss: Some(*x),
            reference_std: Some(*x),
            share_above: Some(*x),
            label_error: Some(lapwing_report::Interval {
                estimate: *x,
                low: *x,
                high: *x,
            }),
            ..Default::default()
        })
        .collect();
    let histogram = |x: f64| Histogram {
        low: x,
        high: -x,
        counts: vec![1, u64::MAX],
    };
    let points = |x: f64| {
        vec![
            Point {
                step: 0,
                loss: Some(x),
                weight: x,
            },
            Point {
                step: u64::MAX,
                loss: Some(-x),
                weight: x,
            },
        ]
    };
    let residuals = |x: f64| Residuals {
        own: histogram(x),
        reliable: Some(histogram(-x)),
        mean: Some(x),
        std: Some(x),
        reliable_mean: Some(x),
        reliable_std: Some(x),
        correlation: Some(x),
        slope: Some(x),
    };
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
            ..Default::default()
        },
        trajectories: bad
            .iter()
            .enumerate()
            .map(|(i, x)| Trajectory {
                source: named(i),
                points: points(*x),
            })
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
                comparison: Some(Comparison::Targets(residuals(*x))),
                ..Default::default()
            })
            .collect(),
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

fn crowd(n: usize) -> Report {
    let source = |i: usize| SourceRow {
        source: format!("annotator {i}"),
        verdict: if i.is_multiple_of(500) {
            Verdict::Unreliable
        } else {
            Verdict::Reliable
        },
        rows: (i * 7919 % 1000) as u64,
        weight: if i.is_multiple_of(500) { 0.1 } else { 1.0 },
        ..Default::default()
    };
    let points = |i: usize| {
        (0..400)
            .map(|step| Point {
                step,
                loss: Some((i % 17) as f64),
                weight: 1.0,
            })
            .collect()
    };
    Report {
        sources: (0..n).map(source).collect(),
        trajectories: (0..n)
            .map(|i| Trajectory {
                source: format!("annotator {i}"),
                points: points(i),
            })
            .collect(),
        ..Default::default()
    }
}

/// Proves that the other tests would notice.
#[test]
fn a_page_that_misbehaves_is_noticed() {
    if skipped() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bad.html");
    fs::write(&file, "<img src='missing.png'><svg><path d='MNaN 0'/></svg><script>console.error('x'); alert(1)</script>").unwrap();
    let mut browser = Chromium::start();
    browser.open(&file);
    let complaints = browser.complaints();
    assert!(
        complaints.console.iter().any(|c| c.contains("NaN")),
        "{complaints:?}"
    );
    assert!(
        complaints.console.iter().any(|c| c.contains('x')),
        "{complaints:?}"
    );
    assert_eq!(complaints.requests.len(), 1, "{complaints:?}");
    assert_eq!(complaints.dialogs, ["\"1\""]);
}

#[test]
fn the_page_is_quiet_and_loads_nothing() {
    if skipped() {
        return;
    }
    for report in [sample::report(), Report::default()] {
        let (mut browser, _folder) = opened(&report);
        assert_eq!(browser.complaints(), Complaints::default());
    }
}

#[test]
fn the_table_sorts_by_click_and_by_key_both_ways() {
    if skipped() {
        return;
    }
    let (mut browser, _folder) = opened(&sample::report());
    let before = shown(&mut browser);
    let weight = "#sources-table thead th:nth-child(6)";
    browser.click(&format!("{weight} button"));
    assert!(sorted(&keys(&mut browser, 5), true));
    assert_eq!(
        browser.eval(&format!(
            "document.querySelector('{weight}').getAttribute('aria-sort')"
        )),
        "ascending"
    );
    browser.click(&format!("{weight} button"));
    let descending = keys(&mut browser, 5);
    assert!(
        sorted(&descending, false) && descending.first() > descending.last(),
        "{descending:?}"
    );
    assert_eq!(
        browser.eval(&format!(
            "document.querySelector('{weight}').getAttribute('aria-sort')"
        )),
        "descending"
    );
    assert_ne!(shown(&mut browser), before);

    // The last column has rows without a value: they stay last both ways.
    browser.eval("document.querySelector('#sources-table thead th:last-child button').focus()");
    browser.enter();
    let departures = keys(&mut browser, 11);
    assert!(
        sorted(&departures, true)
            && departures.contains(&None)
            && departures.iter().flatten().count() > 1,
        "{departures:?}"
    );
    browser.enter();
    assert!(sorted(&keys(&mut browser, 11), false));
    assert_eq!(
        browser.eval("document.querySelectorAll('[aria-sort]').length"),
        1
    );

    browser.click("#sources-table thead th:first-child button");
    let names = shown(&mut browser);
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(browser.complaints(), Complaints::default());
}

#[test]
fn hostile_names_are_text() {
    if skipped() {
        return;
    }
    let report = hostile();
    let (mut browser, _folder) = opened(&report);
    // Point at everything once, in case a name became a handler.
    browser.eval("document.querySelectorAll('*').forEach(e => { for (const kind of ['mouseover', 'focus', 'toggle']) e.dispatchEvent(new Event(kind)); })");
    browser.click("#sources-table thead th:first-child button");
    browser.picture("hostile.png");
    assert_eq!(browser.complaints(), Complaints::default());
    assert_eq!(
        browser
            .eval("[document.scripts.length, document.images.length, document.styleSheets.length]"),
        json!([1, 0, 1])
    );
    let handlers = browser.eval("Array.from(document.querySelectorAll('*')).flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))");
    assert_eq!(handlers, json!([]));
    let names = shown(&mut browser);
    for name in HOSTILE {
        assert!(
            names.iter().any(|shown| shown == name),
            "{name} is not among {names:?}"
        );
    }
    let text = browser.eval("document.querySelector('main').textContent");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("{{7*7}}")
            && text.contains("⟨U+202E⟩")
            && text.contains("⟨U+200B⟩")
            && text.contains("⟨U+0000⟩")
    );
    assert_eq!(
        browser.eval("document.title"),
        format!("{} · lapwing report", HOSTILE[0])
    );
    browser.resize(1200, 800);
    assert_eq!(sideways(&mut browser), 0);
    browser.resize(390, 800);
    assert_eq!(sideways(&mut browser), 0);
}

/// By how many pixels the page as a whole can be scrolled sideways.
fn sideways(browser: &mut Chromium) -> Value {
    browser.eval("Math.max(0, document.documentElement.scrollWidth - window.innerWidth)")
}

#[test]
fn numbers_that_are_none_draw_nothing_invalid() {
    if skipped() {
        return;
    }
    let (mut browser, _folder) = opened(&nonsense());
    browser.picture("nonsense.png");
    assert_eq!(browser.complaints(), Complaints::default());
}

#[test]
fn the_page_fits_a_phone_and_follows_a_dark_screen() {
    if skipped() {
        return;
    }
    let (mut browser, _folder) = opened(&sample::report());
    browser.resize(1280, 900);
    browser.picture("desk.png");
    let light = browser.eval("getComputedStyle(document.body).backgroundColor");
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", dark);
    browser.picture("dark.png");
    assert_ne!(
        browser.eval("getComputedStyle(document.body).backgroundColor"),
        light
    );
    browser.resize(390, 844);
    browser.picture("phone-dark.png");
    browser.call("Emulation.setEmulatedMedia", json!({ "features": [] }));
    browser.picture("phone.png");
    assert_eq!(sideways(&mut browser), 0);
    let pdf = browser.print("print.pdf");
    assert!(pdf.starts_with(b"%PDF"));
}

#[test]
fn without_script_everything_but_sorting_is_there() {
    if skipped() {
        return;
    }
    let (_folder, file) = page(&sample::report());
    let mut browser = Chromium::start();
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({ "value": true }),
    );
    browser.open(&file);
    assert_eq!(shown(&mut browser).len(), 5);
    assert_eq!(
        browser.eval("document.querySelectorAll('button').length"),
        0
    );
    assert_eq!(
        browser.eval("document.querySelectorAll('figure').length"),
        7
    );
}

#[test]
fn ten_thousand_sources_stay_usable() {
    if skipped() {
        return;
    }
    let report = crowd(10_000);
    let (mut browser, folder) = opened(&report);
    let size = fs::metadata(folder.path().join("report.html"))
        .unwrap()
        .len();
    assert!(size < 16 << 20, "{size} bytes");
    assert_eq!(shown(&mut browser).len(), 50);
    browser.picture("crowd.png");

    browser.click("#sources-table thead th:nth-child(3) button");
    assert!(sorted(&keys(&mut browser, 2), false));
    assert_eq!(shown(&mut browser).len(), 50);

    browser.click("#filter input");
    browser.call("Input.insertText", json!({ "text": "annotator 999" }));
    assert_eq!(shown(&mut browser).len(), 11);

    browser.eval("document.querySelector('#filter input').select()");
    browser.call("Input.insertText", json!({ "text": "annotator" }));
    browser.click("#all");
    assert_eq!(shown(&mut browser).len(), 10_000);
    let lines = browser.eval("document.querySelectorAll('#weights .line').length");
    assert!(lines.as_u64().unwrap() <= 70, "{lines}");
    assert_eq!(browser.complaints(), Complaints::default());
}
