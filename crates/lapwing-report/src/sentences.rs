//! The summary in two sentences.

use lapwing_judge::{SourceRow, Verdict};

use crate::{Report, name, number};

/// What was found, and what it amounted to.
pub(crate) fn summary(report: &Report) -> [String; 2] {
    [found(report), amounted(report)]
}

fn found(report: &Report) -> String {
    let n = report.sources.len();
    let mut sentence = format!(
        "{} {} gave {} training rows",
        capitalised(&number::words(n)),
        if n == 1 { "source" } else { "sources" },
        number::count(report.summary.rows)
    );
    let unreliable = of(report, Verdict::Unreliable);
    let suspect = of(report, Verdict::Suspect);
    let insufficient = of(report, Verdict::Insufficient);
    let is = |names: &[&str]| if names.len() == 1 { "is" } else { "are" };
    if unreliable.is_empty() && suspect.is_empty() {
        sentence.push_str("; no source stands out as unreliable");
    } else {
        let mut parts = Vec::new();
        for (names, word) in [(&unreliable, "unreliable"), (&suspect, "suspect")] {
            if !names.is_empty() {
                parts.push(format!("{} {} {word}", name::list(names, 3), is(names)));
            }
        }
        sentence.push_str(&format!("; {}", name::join(&parts)));
    }
    let (hard, different) = (of(report, Verdict::Hard), of(report, Verdict::Different));
    let mut unlike = Vec::new();
    for (names, word) in [(&hard, "hard"), (&different, "different")] {
        if !names.is_empty() {
            unlike.push(format!("{} {} {word}", name::list(names, 3), is(names)));
        }
    }
    if !unlike.is_empty() {
        sentence
            .push_str(&format!(", {} (which says nothing against labels)", name::join(&unlike)));
    }
    if !insufficient.is_empty() {
        let too_little = if insufficient.len() == n && n > 1 {
            "none was".to_owned()
        } else {
            format!(
                "{} {}",
                number::words(insufficient.len()),
                if insufficient.len() == 1 { "was not" } else { "were not" }
            )
        };
        sentence.push_str(&format!(", and {too_little} seen often enough to be judged"));
    }
    sentence + "."
}

fn amounted(report: &Report) -> String {
    let flagged: Vec<&SourceRow> =
        report.sources.iter().filter(|s| s.verdict.is_flagged()).collect();
    let rows: f64 = report.sources.iter().map(|s| s.rows as f64).sum();
    let lost: f64 = report.sources.iter().map(|s| s.rows as f64 * (1.0 - s.weight)).sum();
    let weighted = if !lost.is_finite() || rows == 0.0 || lost / rows < 0.0005 {
        "Every row kept its full weight".to_owned()
    } else {
        let mut text = format!(
            "At the end of training, down-weighting took away {} of the weight of all rows",
            number::percent(lost / rows)
        );
        let flagged_rows: f64 = flagged.iter().map(|s| s.rows as f64).sum();
        if flagged_rows > 0.0 {
            let kept: f64 =
                flagged.iter().map(|s| s.rows as f64 * s.weight).sum::<f64>() / flagged_rows;
            text.push_str(&format!(
                " (a row of a flagged source counted {} on average)",
                number::fixed(kept, 2)
            ));
        }
        text
    };
    let Some(outcome) = &report.summary.outcome else {
        return weighted + ".";
    };
    let (metric, _) = number::metric_words(&outcome.metric);
    let article = if metric.starts_with(['a', 'e', 'i', 'o', 'u', 'R']) { "an" } else { "a" };
    let standard = outcome.standard.map(|v| {
        format!(", against {} with standard training", number::metric(&outcome.metric, v))
    });
    format!(
        "{weighted}, and the model reached {article} {} of {} on the {} rows{}.",
        name::short(metric),
        number::metric(&outcome.metric, outcome.value),
        name::short(&outcome.split),
        standard.unwrap_or_default()
    )
}

fn of(report: &Report, verdict: Verdict) -> Vec<&str> {
    let mut rows: Vec<&SourceRow> =
        report.sources.iter().filter(|s| s.verdict == verdict).collect();
    rows.sort_by(|a, b| a.worst_first(b));
    rows.into_iter().map(|s| s.source.as_str()).collect()
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Summary};

    fn source(name: &str, verdict: Verdict, weight: f64) -> SourceRow {
        SourceRow { source: name.into(), verdict, rows: 100, weight, ..Default::default() }
    }

    fn report(sources: Vec<SourceRow>) -> Report {
        let outcome = Outcome {
            metric: "accuracy".into(),
            split: "test".into(),
            value: 0.971,
            standard: Some(0.9),
        };
        let summary = Summary {
            rows: 100 * sources.len() as u64,
            outcome: Some(outcome),
            ..Default::default()
        };
        Report { summary, sources, ..Default::default() }
    }

    #[test]
    fn flagged_sources_are_named_worst_first() {
        let [found, amounted] = summary(&report(vec![
            source("fine", Verdict::Reliable, 1.0),
            source("bad", Verdict::Unreliable, 0.2),
            source("worse", Verdict::Unreliable, 0.1),
            source("odd", Verdict::Suspect, 0.7),
        ]));
        assert_eq!(
            found,
            "Four sources gave 400 training rows; “worse” and “bad” are unreliable and “odd” is suspect."
        );
        assert_eq!(
            amounted,
            "At the end of training, down-weighting took away 50\u{202F}% of the weight of all rows (a row of a flagged \
             source counted 0.33 on average), and the model reached an accuracy of 97.1\u{202F}% on the test rows, \
             against 90.0\u{202F}% with standard training."
        );
    }

    #[test]
    fn nothing_found_is_said_so() {
        let [found, amounted] = summary(&report(vec![source("fine", Verdict::Reliable, 1.0)]));
        assert_eq!(found, "One source gave 100 training rows; no source stands out as unreliable.");
        assert!(
            amounted.starts_with("Every row kept its full weight, and the model"),
            "{amounted}"
        );
    }

    #[test]
    fn an_empty_report_still_makes_sentences() {
        let [found, amounted] = summary(&Report::default());
        assert_eq!(found, "No sources gave 0 training rows; no source stands out as unreliable.");
        assert_eq!(amounted, "Every row kept its full weight.");
    }

    #[test]
    fn weights_that_are_not_numbers_do_not_reach_the_sentence() {
        let [_, amounted] = summary(&report(vec![source("a", Verdict::Unreliable, f64::NAN)]));
        assert!(!amounted.contains("NaN") && !amounted.contains("finite"), "{amounted}");
    }
}
