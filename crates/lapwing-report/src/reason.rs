//! Why a source has its verdict, in words.

use lapwing_judge::{Reason, SourceRow, Verdict};

use crate::number;

/// Why a source has its verdict: whole sentences that hold no name.
pub fn reason(row: &SourceRow) -> String {
    let said: Vec<String> = row.reasons.iter().map(|reason| clause(row, reason)).collect();
    match (row.verdict, &row.noise) {
        (Verdict::Reliable, Some(noise)) if noise.looks_noisy() => format!(
            "Networks that have not seen its labels contradict {} of them, no more than they are wrong elsewhere; a noise rate \
             of {} tells nothing beside that.",
            number::percent(noise.disagreement),
            number::percent_range(noise.noise_rate.low, noise.noise_rate.high)
        ),
        (Verdict::Reliable, Some(noise)) => format!(
            "Nothing speaks against its labels: the noise rate is {}.",
            number::percent_range(noise.noise_rate.low, noise.noise_rate.high)
        ),
        (Verdict::Reliable, None) => "Its loss stayed within the threshold.".to_owned(),
        (Verdict::Suspect, Some(_)) if row.reasons.contains(&Reason::OneLabel) => format!(
            "{}; whether it is wrong, or alone in knowing these rows, no method can tell.",
            capitalised(&said.join(", and "))
        ),
        (Verdict::Hard, Some(_)) => {
            format!(
                "{}: its rows are difficult, which is no fault of its labels.",
                capitalised(&said.join(", and "))
            )
        }
        (Verdict::Hard, None) => format!(
            "{}: its rows are difficult, and nothing says that its targets are wrong.",
            capitalised(&sentence(&said))
        ),
        (Verdict::Different, Some(_)) => {
            format!("{}; nothing speaks against its labels.", capitalised(&said.join(", and ")))
        }
        _ if said.is_empty() => String::new(),
        _ => format!("{}.", capitalised(&sentence(&said))),
    }
}

/// Clauses one after the other, with a “but” before the first that speaks for the source.
fn sentence(clauses: &[String]) -> String {
    let speaks_for = |clause: &str| {
        ["the model explains", "only ", "its inputs"].iter().any(|begin| clause.starts_with(begin))
    };
    let mut text = String::new();
    for (at, clause) in clauses.iter().enumerate() {
        let first_for = speaks_for(clause) && !clauses[..at].iter().any(|other| speaks_for(other));
        text += match at {
            0 => "",
            _ if first_for => ", but ",
            _ => ", and ",
        };
        text += clause;
    }
    text
}

fn clause(row: &SourceRow, reason: &Reason) -> String {
    let percent = number::percent;
    let explained = row.reasons.iter().any(|reason| matches!(reason, Reason::Explained { .. }));
    match *reason {
        Reason::FewRows { rows, least } => {
            format!("it has {}, and a verdict takes {}", counted(rows, "row"), number::count(least))
        }
        Reason::FewJudgements { judged, least } => format!(
            "it was compared with the others in {}, and a verdict takes {}",
            counted(judged, "step"),
            number::count(least)
        ),
        Reason::Above { share, .. } => {
            format!("its loss was above the threshold in {} of the comparisons", percent(share))
        }
        Reason::Lasting { .. } => "still was so at the end".to_owned(),
        Reason::Light { weight, .. } => {
            format!("the rule left it a weight of {}", number::fixed(weight, 2))
        }
        Reason::Noise { rate, low, high, .. } => format!(
            "networks that have not seen its labels take {} of them for noise (95\u{202F}% interval {})",
            percent(rate),
            number::percent_range(low, high)
        ),
        Reason::OneLabel => "it gives all its rows the same label".to_owned(),
        Reason::Wide { low, high, .. } => format!(
            "its noise rate may be anything from {} to {}: {} too few to tell, or networks know too little of such rows",
            percent(low),
            percent(high),
            match row.noise.map_or(row.rows, |noise| noise.rows) {
                1 => "1 row is".to_owned(),
                rows => format!("{} rows are", number::count(rows)),
            }
        ),
        Reason::Contradicted { share, others } => format!(
            "networks would have given another label to {} of its rows, and to {} elsewhere",
            percent(share),
            percent(others)
        ),
        Reason::Doubted { share, others } => format!(
            "expect that of themselves on {} of them, and on {} elsewhere",
            percent(share),
            percent(others)
        ),
        Reason::Undoubted { share } => {
            format!("expect that of themselves on no more than {} of them", percent(share))
        }
        Reason::Exchanged { rows, share } => format!(
            "{} of its {} of two classes have the label of the other one, by networks that have not seen them",
            percent(share),
            counted(rows, "row")
        ),
        Reason::OtherClasses { distance, .. } => format!(
            "the classes of its rows are not those of the others ({} of them would have to change)",
            percent(distance)
        ),
        Reason::Explained { share, .. } => {
            format!("the model explains {} of how its targets differ", percent(share))
        }
        Reason::Near { share, .. } if !explained => format!(
            "only {} of its targets are further from the model than is usual",
            percent(share)
        ),
        Reason::Near { share, .. } => {
            format!("only {} of them are further from it than is usual", percent(share))
        }
        Reason::OtherInputs { distance, .. } => format!(
            "its inputs are unlike those of all others ({distance:.2} apart on a scale from 0 to 1), and networks know nothing \
             of such: look at the inputs first"
        ),
    }
}

fn counted(count: u64, word: &str) -> String {
    format!("{} {word}{}", number::count(count), if count == 1 { "" } else { "s" })
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use lapwing_judge::{Interval, SourceNoise};

    use super::*;

    fn said(verdict: Verdict, reasons: &[Reason]) -> String {
        let noise_rate = Interval { estimate: 0.05, low: 0.0, high: 0.13 };
        let noise = SourceNoise { rows: 12, noise_rate, ..SourceNoise::default() };
        let noise = Some(noise);
        reason(&SourceRow { verdict, reasons: reasons.to_vec(), noise, ..SourceRow::default() })
            .replace('\u{202F}', " ")
    }

    #[test]
    fn every_verdict_has_its_reason_in_plain_words() {
        let noise = Reason::Noise { rate: 0.87, low: 0.8, high: 0.93, least: 0.15 };
        assert_eq!(
            said(Verdict::Unreliable, &[noise]),
            "Networks that have not seen its labels take 87 % of them for noise (95 % interval 80–93 %)."
        );
        assert_eq!(
            said(Verdict::Suspect, &[Reason::OneLabel, noise]),
            "It gives all its rows the same label, and networks that have not seen its labels take 87 % of them for \
             noise (95 % interval 80–93 %); whether it is wrong, or alone in knowing these rows, no method can tell."
        );
        let contradicted = Reason::Contradicted { share: 0.4, others: 0.1 };
        let doubted = Reason::Doubted { share: 0.35, others: 0.11 };
        assert_eq!(
            said(Verdict::Hard, &[contradicted, doubted]),
            "Networks would have given another label to 40 % of its rows, and to 10 % elsewhere, and expect that of \
             themselves on 35 % of them, and on 11 % elsewhere: its rows are difficult, which is no fault of its labels."
        );
        assert_eq!(
            said(Verdict::Suspect, &[contradicted, Reason::Undoubted { share: 0.12 }]),
            "Networks would have given another label to 40 % of its rows, and to 10 % elsewhere, and expect that of \
             themselves on no more than 12 % of them."
        );
        assert_eq!(
            said(Verdict::Unreliable, &[Reason::Exchanged { rows: 40, share: 0.95 }]),
            "95 % of its 40 rows of two classes have the label of the other one, by networks that have not seen them."
        );
        assert_eq!(
            said(Verdict::Different, &[Reason::OtherClasses { distance: 0.8, least: 0.4 }]),
            "The classes of its rows are not those of the others (80 % of them would have to change); nothing speaks \
             against its labels."
        );
        assert_eq!(
            said(Verdict::Insufficient, &[Reason::Wide { low: 0.1, high: 0.7, most: 0.5 }]),
            "Its noise rate may be anything from 10 % to 70 %: 12 rows are too few to tell, or networks know too little of \
             such rows."
        );
        assert_eq!(
            said(Verdict::Reliable, &[]),
            "Nothing speaks against its labels: the noise rate is 0–13 %."
        );
        let noise_rate = Interval { estimate: 0.9, low: 0.9, high: 1.0 };
        let noise = SourceNoise { noise_rate, disagreement: 0.5, ..SourceNoise::default() };
        let row =
            SourceRow { verdict: Verdict::Reliable, noise: Some(noise), ..SourceRow::default() };
        assert_eq!(
            reason(&row).replace('\u{202F}', " "),
            "Networks that have not seen its labels contradict 50 % of them, no more than they are wrong elsewhere; a noise \
             rate of 90–100 % tells nothing beside that."
        );
    }

    #[test]
    fn verdicts_of_the_rule_have_reasons_as_well() {
        let row = |verdict, reasons| SourceRow { verdict, reasons, ..SourceRow::default() };
        let grounds = vec![
            Reason::Above { share: 0.65, least: 0.5 },
            Reason::Lasting { share: 0.3, least: 0.25 },
        ];
        assert_eq!(
            reason(&row(Verdict::Unreliable, grounds)).replace('\u{202F}', " "),
            "Its loss was above the threshold in 65 % of the comparisons, and still was so at the end."
        );
        let explained = Reason::Explained { share: 0.81, least: 0.5 };
        let near = Reason::Near { share: 0.07, low: 0.04, least: 0.12 };
        let said = |verdict, reasons: &[Reason]| {
            reason(&row(verdict, reasons.to_vec())).replace('\u{202F}', " ")
        };
        assert_eq!(
            said(Verdict::Hard, &[explained, near]),
            "The model explains 81 % of how its targets differ, and only 7.0 % of them are further from it than is usual: its \
             rows are difficult, and nothing says that its targets are wrong."
        );
        let noise = Reason::Noise { rate: 0.53, low: 0.49, high: 0.83, least: 0.12 };
        let unlike = Reason::OtherInputs { distance: 0.97, least: 0.9 };
        let both = said(Verdict::Suspect, &[noise, unlike]);
        let unknown = ", but its inputs are unlike those of all others (0.97 apart on a scale from 0 to 1), and networks know \
                       nothing of such: look at the inputs first.";
        assert!(both.ends_with(unknown), "{both}");
        let above = Reason::Above { share: 0.65, least: 0.5 };
        assert_eq!(
            said(Verdict::Suspect, &[above, near]),
            "Its loss was above the threshold in 65 % of the comparisons, but only 7.0 % of its targets are further from the \
             model than is usual."
        );
        assert!(said(Verdict::Hard, &[above, explained, near]).contains(
            "comparisons, but the model explains 81 % of how its targets differ, and only 7.0 % of them"
        ));
        assert_eq!(
            said(Verdict::Suspect, &[near]),
            "Only 7.0 % of its targets are further from the model than is usual."
        );
        let few = vec![Reason::FewRows { rows: 1, least: 10 }];
        assert_eq!(
            reason(&row(Verdict::Insufficient, few)),
            "It has 1 row, and a verdict takes 10."
        );
        assert!(!reason(&row(Verdict::Reliable, Vec::new())).is_empty());
    }
}
