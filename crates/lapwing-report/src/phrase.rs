//! Findings in words.

use lapwing_judge::{Finding, Word};

use crate::{name, number};

/// A finding as plain text of whole sentences. Names are in quotation marks and nothing in them is invisible, so that
/// it can be shown anywhere once it is escaped for the place.
pub fn phrase(finding: &Finding) -> String {
    finding.words().iter().map(word).collect()
}

fn word(word: &Word<'_>) -> String {
    match *word {
        Word::Text(text) => text.to_owned(),
        Word::Name(name) => name::quoted(name),
        Word::Count(count) => number::count(count),
        Word::Step(step) => number::fixed(step as f64, 0),
        Word::Share(share) => number::percent(share),
        Word::Number(value) => number::value(value),
        Word::Fixed(value, decimals) => number::fixed(value, decimals),
        Word::Rows(rows) => name::join(&rows.iter().map(ToString::to_string).collect::<Vec<_>>()),
    }
}

/// The sentences on one source. Never empty.
pub(crate) fn phrases(findings: &[Finding]) -> Vec<String> {
    if findings.is_empty() {
        let advice =
            "No single pattern stands out: read the worst rows and ask where they came from.";
        return vec![advice.to_owned()];
    }
    findings.iter().map(phrase).collect()
}

#[cfg(test)]
mod tests {
    use lapwing_judge::*;

    use super::*;

    fn said(fault: impl Into<Fault>, rows: &[u64]) -> String {
        phrase(&Finding { fault: fault.into(), strength: 1.0, rows: rows.to_vec() })
    }

    #[test]
    fn labels_are_spoken_of() {
        let fault = Disagreement { agreement: 0.3, of: 1100, reliable: Some(0.91) };
        assert_eq!(
            said(fault, &[]),
            "Its labels agree with the model in 30\u{202F}% of 1,100 rows, against 91\u{202F}% on reliable sources."
        );
        let fault = Disagreement { agreement: 0.3, of: 100, reliable: None };
        assert_eq!(said(fault, &[]), "Its labels agree with the model in 30\u{202F}% of 100 rows.");
        let fault = ExchangedClasses { first: "A".into(), second: "<b>\0".into(), share: 0.85 };
        assert_eq!(
            said(fault, &[]),
            "“A” and “\u{2068}<b>⟨U+0000⟩\u{2069}” look exchanged: 85\u{202F}% of the rows given as one of them are the \
             other to the model. Check how the labels of this source were coded."
        );
        let moves = |n: usize| (0..n).map(|i| (i.to_string(), (i + 1).to_string())).collect();
        let renumbered = said(RenumberedClasses { moves: moves(3) }, &[]);
        assert!(
            renumbered.contains("(it gives “0” for “1”, “1” for “2”, “2” for “3”)"),
            "{renumbered}"
        );
        let renumbered = said(RenumberedClasses { moves: moves(5) }, &[]);
        assert!(renumbered.contains("“3” for “4”, …)"), "{renumbered}");
    }

    #[test]
    fn numbers_are_spoken_of() {
        let fault = ResidualSpread { mean: 1e-6, std: 0.25, of: 100, reliable: Some((-3.0, 0.5)) };
        assert_eq!(
            said(fault, &[]),
            "Its targets differ from the model's predictions by 0 ± 0.250 (mean and standard deviation over 100 rows), \
             against −3.000 ± 0.500 on reliable sources."
        );
        assert!(
            said(Offset { shift: -3.0 }, &[])
                .starts_with("On average its targets lie 3.000 below what")
        );
        assert!(
            said(Unit { correlation: 0.987, slope: 2.54 }, &[]).contains("0.99), but 2.540 times")
        );
    }

    #[test]
    fn rows_and_steps_are_spoken_of() {
        let sure = SureRows { probability: 0.95 };
        assert_eq!(
            said(sure.clone(), &[17, 1203]),
            "Check rows 17 and 1203 by hand: the model is at least 95\u{202F}% sure of another label there."
        );
        assert!(said(sure, &[17]).starts_with("Check row 17 by hand"));
        let departed = |step, share_above| said(Departure { step, share_above }, &[]);
        assert_eq!(
            departed(Some(1120), Some(0.96)),
            "It first departed from the others at step 1,120; its loss was above the threshold in 96\u{202F}% of its \
             steps."
        );
        assert_eq!(departed(Some(-2), None), "It first departed from the others at step −2.");
        assert_eq!(
            departed(None, Some(0.5)),
            "Its loss was above the threshold in 50\u{202F}% of its steps."
        );
    }

    #[test]
    fn without_findings_there_is_still_advice() {
        assert_eq!(phrases(&[]).len(), 1);
    }
}
