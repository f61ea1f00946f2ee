//! The page as text: what must hold without a browser.
#![allow(clippy::unwrap_used)]

mod cases;

use cases::{HOSTILE, crowd, hostile, nonsense, pictures, regression};
use lapwing_judge::{Evidence, SourceRow, Verdict, WorstRow};
use lapwing_report::{EpochMetric, Report, ReportError, Summary, Trajectory, render};

/// All that stands between `<` and `>`.
fn tags(page: &str) -> Vec<&str> {
    let (_, body) = page.split_once("</style>").unwrap();
    let (body, _) = body.split_once("<script>").unwrap();
    body.split('<').skip(1).map(|part| part.split_once('>').unwrap().0).collect()
}

#[test]
fn no_name_becomes_a_tag_or_an_attribute() {
    let page = render(&hostile()).unwrap();
    for tag in tags(&page) {
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap_or_default();
        assert!(!["script", "img", "style", "iframe"].contains(&name), "<{tag}>");
        // Every other piece is a quoted value, in which quotation marks are escaped.
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains(" on"), "<{tag}>");
    }
    for name in HOSTILE.iter().filter(|name| name.contains(['<', '"', '&'])) {
        assert!(!page.contains(name), "{name}");
    }
    assert!(page.contains("{{7*7}}"));
}

#[test]
fn numbers_that_are_none_reach_no_attribute() {
    for tag in tags(&render(&nonsense()).unwrap()) {
        assert!(
            !tag.contains("NaN") && !tag.contains("inf\"") && !tag.contains("\"inf"),
            "<{tag}>"
        );
    }
}

#[test]
fn a_hundred_thousand_sources_were_a_page_that_no_browser_opens() {
    let source = |n: usize| SourceRow {
        source: format!("{n} {}", "long".repeat(400)),
        verdict: if n.is_multiple_of(10) { Verdict::Suspect } else { Verdict::Reliable },
        ..Default::default()
    };
    let report = Report { sources: (0..100_000).map(source).collect(), ..Default::default() };
    let page = render(&report).unwrap();
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(
        page.contains("Of 100,000 sources the table has the 1,500 worst, and 500 of the others")
    );
    assert!(page.contains("<b>10,000</b> suspect") && page.contains("<b>90,000</b> reliable"));
    assert_eq!(page.matches("<th scope=\"row\" class=\"text\" title=").count(), 2000);
    let few = Report { sources: (0..2000).map(source).collect(), ..Default::default() };
    assert!(!render(&few).unwrap().contains("evenly chosen"));
}

#[test]
fn an_infinite_leniency_was_not_finite_standard_deviations() {
    let page = |leniency| {
        let summary = Summary { leniency, ..Default::default() };
        let sources = vec![SourceRow::default()];
        render(&Report { summary, sources, ..Default::default() }).unwrap()
    };
    assert!(page(0.8).contains("plus 0.8 standard deviations"));
    assert!(page(f64::INFINITY).contains("no loss counts as too high"));
    assert!(!page(f64::INFINITY).contains("not finite"));
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    for report in [Report::default(), regression(), hostile()] {
        let page = render(&report).unwrap();
        assert!(
            !page.contains("http:") && !page.contains("https:") && !page.contains("//www"),
            "an address in the page"
        );
        let mut links =
            tags(&page).into_iter().filter_map(|tag| tag.split_once("href=").map(|(_, link)| link));
        assert!(links.all(|link| link.starts_with("\"#")));
    }
}

#[test]
fn what_was_measured_once_is_a_number_and_not_a_picture() {
    let measured = |epoch, split: &str, metric: &str| EpochMetric {
        epoch,
        split: split.to_owned(),
        metric: metric.to_owned(),
        value: Some(0.25),
    };
    let epochs = vec![
        measured(1, "train", "loss"),
        measured(2, "train", "loss"),
        measured(2, "test", "accuracy"),
    ];
    let page = render(&Report { epochs, ..Report::default() }).unwrap();
    assert!(page.contains("loss per epoch") && !page.contains("accuracy per epoch"));
    let (_, scores) = page.split_once("The model that was kept").unwrap();
    let row = "<th scope=\"row\" class=\"text\"><bdi>test</bdi></th>\
               <td class=\"text\"><bdi>accuracy</bdi></td><td>25.0\u{202F}%</td>";
    assert!(scores.contains(row), "{scores}");
}

#[test]
fn equal_reports_give_equal_bytes() {
    assert_eq!(render(&crowd(300)).unwrap(), render(&crowd(300)).unwrap());
}

#[test]
fn a_report_survives_being_written_and_read() {
    let report = hostile();
    let text = serde_json::to_string(&report).unwrap();
    assert!(serde_json::from_str::<Report>(&text).unwrap() == report);
}

#[test]
fn a_report_from_an_older_version_lacks_what_it_lacks() {
    let report: Report =
        serde_json::from_str(r#"{"sources": [{"source": "a", "verdict": "suspect"}]}"#).unwrap();
    assert!(render(&report).unwrap().contains("suspect"));
}

#[test]
fn parts_that_name_unknown_or_repeated_sources_are_refused() {
    let unknown = Report {
        trajectories: vec![Trajectory { source: "b".into(), points: vec![] }],
        ..Default::default()
    };
    assert!(matches!(
        render(&unknown),
        Err(ReportError::UnknownSource { part: "trajectories", .. })
    ));
    let source = SourceRow { source: "a".into(), ..Default::default() };
    let twice = Report { sources: vec![source.clone(), source], ..Default::default() };
    assert!(matches!(render(&twice), Err(ReportError::DuplicateSource { .. })));
    let ragged = Evidence {
        source: "a".into(),
        worst_rows: vec![WorstRow { features: vec!["x".into()], ..Default::default() }],
        ..Default::default()
    };
    let report = Report {
        sources: vec![SourceRow { source: "a".into(), ..Default::default() }],
        evidence: vec![ragged],
        ..Default::default()
    };
    assert!(matches!(render(&report), Err(ReportError::Shape { expected: 0, found: 1, .. })));
}

#[test]
fn only_a_page_with_pictures_allows_pictures_and_only_its_own() {
    let policy = |page: &str| {
        let (_, rest) = page.split_once("Content-Security-Policy\" content=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert!(!policy(&render(&hostile()).unwrap()).contains("img-src"));
    let page = render(&pictures()).unwrap();
    assert!(policy(&page).contains("; img-src data:; base-uri 'none'"), "{}", policy(&page));
    for bad in ["iVBO\" onerror=alert(1)", "AA, url", "é"] {
        let mut report = pictures();
        report.evidence[0].worst_rows[1].picture = Some(bad.to_owned());
        assert!(matches!(render(&report), Err(ReportError::Picture { row: 2, .. })), "{bad}");
        let mut report = pictures();
        report.rows[0].picture = Some(bad.to_owned());
        assert!(matches!(render(&report), Err(ReportError::Picture { row: 3, .. })), "{bad}");
    }
    // A page without flagged sources may have rows to check.
    let page = render(&Report { evidence: Vec::new(), ..pictures() }).unwrap();
    assert!(policy(&page).contains("img-src data:"), "{}", policy(&page));
}

#[test]
fn nothing_is_said_of_where_data_comes_from_where_that_is_not_known() {
    let data = |origin: &str| {
        let summary = Summary { origin: origin.to_owned(), ..Default::default() };
        let page = render(&Report { summary, ..Default::default() }).unwrap();
        page.split_once("<h2>Data</h2>").unwrap().1.to_owned()
    };
    assert!(data("Ten hospitals").contains("<p class=\"note\">Ten hospitals</p>"));
    assert!(!data("").contains("(empty)"));
}
