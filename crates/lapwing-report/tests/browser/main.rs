//! The page in a real browser.
//!
//! Needs Chromium (Debian: `apt-get install chromium`); LAPWING_SKIP_BROWSER=1 leaves these tests out, and
//! LAPWING_SCREENSHOTS=FOLDER keeps pictures to look at.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../cases/mod.rs"]
mod cases;
mod chromium;
#[path = "../../examples/sample.rs"]
#[allow(dead_code)]
mod sample;

use std::fs;

use cases::{HOSTILE, crowd, hostile, nonsense, pictures, regression};
use chromium::{Chromium, Complaints, skipped};
use lapwing_report::{Report, render};
use serde_json::{Value, json};
use tempfile::TempDir;

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
    assert!(complaints.console.iter().any(|c| c.contains("NaN")), "{complaints:?}");
    assert!(complaints.console.iter().any(|c| c.contains('x')), "{complaints:?}");
    assert_eq!(complaints.requests.len(), 1, "{complaints:?}");
    assert_eq!(complaints.dialogs, ["\"1\""]);
}

#[test]
fn the_page_is_quiet_and_loads_nothing() {
    if skipped() {
        return;
    }
    for (name, report) in
        [("sample", sample::report()), ("regression", regression()), ("empty", Report::default())]
    {
        let (mut browser, _folder) = opened(&report);
        browser.picture(&format!("{name}.png"));
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
        browser.eval(&format!("document.querySelector('{weight}').getAttribute('aria-sort')")),
        "ascending"
    );
    browser.click(&format!("{weight} button"));
    let descending = keys(&mut browser, 5);
    assert!(sorted(&descending, false) && descending.first() > descending.last(), "{descending:?}");
    assert_eq!(
        browser.eval(&format!("document.querySelector('{weight}').getAttribute('aria-sort')")),
        "descending"
    );
    assert_ne!(shown(&mut browser), before);

    // The first departure has rows without a value: they stay last both ways.
    browser.click("#more");
    browser.eval("document.querySelector('#sources-table thead th:nth-child(12) button').focus()");
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
    assert_eq!(browser.eval("document.querySelectorAll('[aria-sort]').length"), 1);

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
        assert!(names.iter().any(|shown| shown == name), "{name} is not among {names:?}");
    }
    let text = browser.eval("document.querySelector('main').textContent");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("{{7*7}}")
            && text.contains("⟨U+202E⟩")
            && text.contains("⟨U+200B⟩")
            && text.contains("⟨U+0000⟩")
    );
    assert_eq!(browser.eval("document.title"), format!("{} · lapwing report", HOSTILE[0]));
    browser.resize(1200, 800);
    assert_eq!(sideways(&mut browser), 0);
    browser.resize(390, 800);
    assert_eq!(sideways(&mut browser), 0);
}

#[test]
fn pictures_are_shown_and_others_cannot_be_loaded() {
    if skipped() {
        return;
    }
    let (folder, file) = page(&pictures());
    // As if a mistake of ours had let it through.
    let forged =
        r#"<img id="foreign" src="other.png"><img id="far" src="https://localhost:1/x.png">"#;
    fs::write(folder.path().join("other.png"), b"x").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let mut browser = Chromium::start();
    browser.open(&file);
    browser.picture("pictures.png");
    assert_eq!(browser.complaints(), Complaints::default());
    let sizes = "Array.from(document.images).map(i => [i.naturalWidth, i.naturalHeight])";
    // Ten of the flagged source, and one among the rows to check.
    assert_eq!(browser.eval(sizes), json!(vec![[2, 2]; 11]));
    browser.resize(390, 844);
    assert_eq!(sideways(&mut browser), 0);

    fs::write(&file, text.replace("<main>", &format!("<main>{forged}"))).unwrap();
    browser.open(&file);
    let blocked = browser.complaints();
    assert_eq!(blocked.console.len(), 2, "{blocked:?}");
    assert!(blocked.console.iter().all(|c| c.contains("img-src")), "{blocked:?}");
    assert_eq!(
        browser.eval("[foreign.naturalWidth, far.naturalWidth, document.images.length]"),
        json!([0, 0, 13])
    );
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
    let wide = "(() => { const t = document.querySelector('#sources .scroll'); return t.scrollWidth - t.clientWidth; })()";
    assert_eq!(browser.eval(wide), 0, "the table of sources fits a screen");
    let light = browser.eval("getComputedStyle(document.body).backgroundColor");
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", dark);
    browser.picture("dark.png");
    assert_ne!(browser.eval("getComputedStyle(document.body).backgroundColor"), light);
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
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.open(&file);
    assert_eq!(shown(&mut browser).len(), 5);
    assert_eq!(browser.eval("document.querySelectorAll('button').length"), 0);
    assert_eq!(browser.eval("document.querySelectorAll('figure').length"), 7);
}

#[test]
fn ten_thousand_sources_stay_usable() {
    if skipped() {
        return;
    }
    let report = crowd(10_000);
    let (mut browser, folder) = opened(&report);
    let size = fs::metadata(folder.path().join("report.html")).unwrap().len();
    assert!(size < 16 << 20, "{size} bytes");
    assert_eq!(shown(&mut browser).len(), 50);
    browser.picture("crowd.png");

    browser.click("#sources-table thead th:nth-child(3) button");
    assert!(sorted(&keys(&mut browser, 2), false));
    assert_eq!(shown(&mut browser).len(), 50);

    browser.click("#filter input");
    browser.call("Input.insertText", json!({ "text": "annotator 500" }));
    let found = shown(&mut browser);
    assert!(found.contains(&"annotator 500".to_owned()) && found.len() < 12, "{found:?}");
    assert!(found.iter().all(|name| name.contains("annotator 500")), "{found:?}");

    browser.eval("document.querySelector('#filter input').select()");
    browser.call("Input.insertText", json!({ "text": "annotator" }));
    browser.click("#all");
    // The worst and an even choice of the others: the page stays small.
    assert_eq!(shown(&mut browser).len(), 2_000);
    let lines = browser.eval("document.querySelectorAll('#weights .line').length");
    assert!(lines.as_u64().unwrap() <= 70, "{lines}");
    assert_eq!(browser.complaints(), Complaints::default());
}
