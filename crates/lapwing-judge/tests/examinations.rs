//! Every examination on sources that were made to have the fault, and on others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lapwing_judge::{
    Answered, Answers, Case, Column, DefaultLabel, Departure, EXAMINATIONS, Examination,
    ExchangedClasses, Fault, Features, Finding, Offset, OneLabel, RenumberedClasses, Rows,
    SourceRow, Subject, Times, Unit, Verdict, Word, examine,
};

fn source(name: &str, verdict: Verdict) -> SourceRow {
    SourceRow { source: name.into(), verdict, ..SourceRow::default() }
}

/// The findings on source 1 of two: source 0 is reliable, gives every class 50 rows, and the model agrees with it.
fn confused(verdict: Verdict, counts: &[&[u32]]) -> Vec<Finding> {
    let names: Vec<String> = ["A", "B", "C", "D"].map(str::to_owned)[..counts.len()].to_vec();
    let mut rows: Vec<(u32, u32, u32)> = Vec::new();
    for class in 0..counts.len() as u32 {
        rows.extend((0..50).map(|_| (0, class, class)));
    }
    for (given, row) in counts.iter().enumerate() {
        for (said, &n) in row.iter().enumerate() {
            rows.extend((0..n).map(|_| (1, given as u32, said as u32)));
        }
    }
    let sources: Vec<u32> = rows.iter().map(|row| row.0).collect();
    let given: Vec<u32> = rows.iter().map(|row| row.1).collect();
    let classes = counts.len() as u32;
    let probabilities: Vec<f32> = rows
        .iter()
        .flat_map(|row| (0..classes).map(move |class| if class == row.2 { 0.9 } else { 0.01 }))
        .collect();
    let numbers: Vec<u64> = (1..=rows.len() as u64).collect();
    let answers = Answers::Classes { names: &names, given: &given, probabilities: &probabilities };
    let judged = [source("sound", Verdict::Reliable), source("odd", verdict)];
    let rows = Rows::new(Answered { sources: &sources, answers }, &numbers);
    examine(&Case::new(&judged, Some(rows)).unwrap()).remove(1)
}

fn words(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.fault.word()).collect()
}

fn only<'a>(findings: &'a [Finding], word: &str) -> &'a Finding {
    findings
        .iter()
        .find(|f| f.fault.word() == word)
        .unwrap_or_else(|| panic!("{word}: {findings:?}"))
}

#[test]
fn agreement_is_compared_with_reliable_sources_and_the_main_disagreement_named() {
    let found = confused(Verdict::Unreliable, &[&[5, 45, 0], &[20, 20, 0], &[0, 5, 5]]);
    let Fault::Disagreement(disagreement) = &found[0].fault else { panic!("{found:?}") };
    assert_eq!((disagreement.agreement, disagreement.of), (0.3, 100));
    assert_eq!(disagreement.reliable, Some(1.0));
    assert!((found[0].strength - 0.7).abs() < 1e-12);
    let Fault::FrequentDisagreement(main) = &only(&found, "frequent-disagreement").fault else {
        panic!("{found:?}")
    };
    assert_eq!((main.given.as_str(), main.predicted.as_str()), ("A", "B"));
    assert_eq!((main.count, main.of), (45, 70));
}

#[test]
fn two_exchanged_classes_are_recognised_and_shown() {
    let found = confused(Verdict::Unreliable, &[&[5, 45, 0], &[40, 5, 5], &[0, 0, 50]]);
    let finding = only(&found, "exchanged-classes");
    let expected = ExchangedClasses { first: "A".into(), second: "B".into(), share: 0.85 };
    assert_eq!(finding.fault, Fault::ExchangedClasses(expected));
    // 150 rows of the other source come first, then five of A that are A.
    assert_eq!(finding.rows, [156, 157, 158, 159, 160]);
    assert_eq!(finding.strength, 0.85);
}

#[test]
fn renumbered_classes_are_recognised() {
    let found = confused(Verdict::Suspect, &[&[0, 30, 0], &[0, 1, 29], &[30, 0, 0]]);
    let Fault::RenumberedClasses(RenumberedClasses { moves }) =
        &only(&found, "renumbered-classes").fault
    else {
        panic!("{found:?}")
    };
    let moves: Vec<String> = moves.iter().map(|(from, to)| format!("{from}{to}")).collect();
    assert_eq!(moves, ["AB", "BC", "CA"]);
}

#[test]
fn random_labels_are_recognised_and_need_no_other_explanation() {
    for counts in [[&[26, 24], &[25, 25]], [&[24, 26], &[26, 24]]] {
        let found = confused(Verdict::Unreliable, &[counts[0], counts[1]]);
        assert_eq!(words(&found), ["disagreement", "random-labels", "frequent-disagreement"]);
        assert!(found[1].strength > 0.9, "{found:?}");
    }
}

#[test]
fn a_default_label_is_recognised_by_the_model() {
    let found = confused(Verdict::Unreliable, &[&[50, 50], &[0, 0]]);
    let finding = only(&found, "default-label");
    let expected = DefaultLabel { label: "A".into(), seen: 0.5 };
    assert_eq!((&finding.fault, finding.strength), (&Fault::DefaultLabel(expected), 0.5));
    assert_eq!(finding.rows, [151, 152, 153, 154, 155]);
}

#[test]
fn one_label_for_all_is_recognised_whatever_the_verdict_and_the_model() {
    for verdict in [Verdict::Reliable, Verdict::Insufficient] {
        let found = confused(verdict, &[&[30, 0], &[0, 0]]);
        assert_eq!(words(&found), ["one-label"]);
        let expected = OneLabel { label: "A".into(), of: 30, others: 0.5 };
        assert_eq!(found[0].fault, Fault::OneLabel(expected));
        assert_eq!((found[0].strength, found[0].rows.len()), (0.5, 5));
    }
}

#[test]
fn one_label_for_all_is_no_fault_where_it_may_be_chance_or_where_others_do_the_same() {
    // 19 rows are too few; 20 of two equally frequent classes are not: 2⁻²⁰ is less than one in a million.
    assert!(confused(Verdict::Reliable, &[&[19, 0], &[0, 0]]).is_empty());
    assert_eq!(words(&confused(Verdict::Reliable, &[&[20, 0], &[0, 0]])), ["one-label"]);
    assert_eq!(words(&confused(Verdict::Reliable, &[&[30, 0], &[1, 0]])), ["class-mix"]);
    assert!(confused(Verdict::Reliable, &[&[500]]).is_empty());
}

#[test]
fn one_bad_pair_or_class_among_sound_labels_is_recognised() {
    let pair = confused(Verdict::Suspect, &[&[80, 20, 0], &[1, 99, 0], &[0, 1, 99]]);
    let Fault::OnePair(found) = &only(&pair, "one-pair").fault else { panic!("{pair:?}") };
    assert_eq!((found.given.as_str(), found.predicted.as_str()), ("A", "B"));
    assert!((found.share - 20.0 / 22.0).abs() < 1e-12);
    let class = confused(
        Verdict::Suspect,
        &[&[60, 14, 13, 13], &[4, 96, 0, 0], &[0, 0, 99, 1], &[0, 0, 0, 99]],
    );
    let Fault::OneClass(found) = &only(&class, "one-class").fault else { panic!("{class:?}") };
    assert!((found.share - 40.0 / 45.0).abs() < 1e-12 && found.label == "A");
}

#[test]
fn disagreements_without_a_pattern_are_said_to_have_none() {
    let found = confused(Verdict::Suspect, &[&[80, 10, 10], &[10, 80, 10], &[10, 10, 80]]);
    assert_eq!(only(&found, "scattered-disagreements").strength, 0.2);
}

#[test]
fn few_rows_claim_no_pattern() {
    let found = confused(Verdict::Unreliable, &[&[0, 3], &[3, 0]]);
    assert_eq!(words(&found), ["disagreement", "frequent-disagreement"]);
}

#[test]
fn a_source_that_is_not_flagged_is_not_explained() {
    assert!(confused(Verdict::Reliable, &[&[5, 45], &[45, 5]]).is_empty());
}

fn regressed(given: impl Fn(f64) -> f64) -> Vec<Finding> {
    // A fixed zigzag stands for noise.
    let noise = |i: i32| f64::from(i % 5 - 2) * 0.1;
    let at = |i: i32| f64::from(i) / 10.0;
    let mut targets: Vec<f64> = (0..100).map(|i| at(i) + noise(i)).collect();
    targets.extend((0..100).map(|i| given(at(i)) + noise(i)));
    let predicted: Vec<f64> = (0..100).chain(0..100).map(at).collect();
    let sources: Vec<u32> = (0..200).map(|row| row / 100).collect();
    let numbers: Vec<u64> = (1..=200).collect();
    let answers = Answers::Values { given: &targets, predicted: &predicted };
    let judged = [source("sound", Verdict::Reliable), source("odd", Verdict::Unreliable)];
    let rows = Rows::new(Answered { sources: &sources, answers }, &numbers);
    examine(&Case::new(&judged, Some(rows)).unwrap()).remove(1)
}

#[test]
fn a_sound_source_was_said_to_scatter_beside_rows_learnt_by_heart() {
    let noise = |i: i32, size: f64| f64::from(i % 5 - 2) * size;
    let values = |size: f64| (0..100).map(move |i| f64::from(i) / 10.0 + noise(i, size));
    let targets: Vec<f64> = values(0.1).chain(values(0.3)).collect();
    let predicted: Vec<f64> = (0..100).chain(0..100).map(|i| f64::from(i) / 10.0).collect();
    let sources: Vec<u32> = (0..200).map(|row| row / 100).collect();
    let numbers: Vec<u64> = (1..=200).collect();
    let answers = Answers::Values { given: &targets, predicted: &predicted };
    let judged = [source("sound", Verdict::Reliable), source("odd", Verdict::Suspect)];
    let training = Rows::new(Answered { sources: &sources, answers }, &numbers);
    let unlearnt: Vec<f64> = values(0.3).collect();
    let answers = Answers::Values { given: &unlearnt, predicted: &predicted[..100] };
    let held_out = Some(Answered { sources: &[0; 100], answers });
    let wide = |rows| {
        words(&examine(&Case::new(&judged, Some(rows)).unwrap()).remove(1))
            .contains(&"wide-residuals")
    };
    assert!(wide(training));
    assert!(!wide(Rows { held_out, ..training }));
    // Of few rows nothing can be said.
    let few = Answers::Values { given: &unlearnt[..40], predicted: &predicted[..40] };
    assert!(wide(Rows {
        held_out: Some(Answered { sources: &[0; 40], answers: few }),
        ..training
    }));
}

#[test]
fn regression_targets_that_are_shifted_scaled_flipped_random_or_wide_are_recognised() {
    let pattern = |given: fn(f64) -> f64| {
        let mut found = regressed(given);
        assert_eq!(found[0].fault.word(), "residual-spread");
        assert_eq!(found.len(), 2, "one pattern explains the others: {found:?}");
        found.remove(1)
    };
    let shifted = pattern(|x| x + 3.0);
    assert!(matches!(shifted.fault, Fault::Offset(Offset { shift }) if (shift - 3.0).abs() < 1e-6));
    let scaled = pattern(|x| 2.54 * x);
    assert!(matches!(scaled.fault, Fault::Unit(Unit { slope, .. }) if (slope - 2.54).abs() < 0.01));
    assert_eq!(scaled.rows[0], 200, "the largest value is furthest off");
    assert_eq!(pattern(|x| -x).fault.word(), "flipped-sign");
    assert_eq!(pattern(|x| (x * 1000.0).sin() * 5.0).fault.word(), "random-targets");
    assert_eq!(pattern(|x| x + (x * 1000.0).sin()).fault.word(), "wide-residuals");
}

#[test]
fn rows_the_model_is_sure_of_come_with_their_numbers_worst_first() {
    let names = ["A".to_owned(), "B".to_owned()];
    let probabilities = [0.01, 0.99, 0.04, 0.96, 0.4, 0.6, 0.99, 0.01];
    let answers = Answers::Classes { names: &names, given: &[0; 4], probabilities: &probabilities };
    let judged = [source("odd", Verdict::Unreliable)];
    let answered = Answered { sources: &[0; 4], answers };
    let rows_of = |worst: &[Vec<u32>]| {
        let rows = Rows { worst, ..Rows::new(answered, &[17, 1203, 5, 6]) };
        let found = examine(&Case::new(&judged, Some(rows)).unwrap()).remove(0);
        only(&found, "sure-rows").rows.clone()
    };
    assert_eq!(rows_of(&[]), [17, 1203]);
    assert_eq!(rows_of(&[vec![1, 0, 2]]), [1203, 17], "the losses decide where they are known");
}

#[test]
fn the_course_of_training_is_a_finding_without_rows() {
    let row = SourceRow {
        judged: 100,
        above: 96,
        first_departure_step: Some(120),
        nonfinite: 3,
        ..source("odd", Verdict::Suspect)
    };
    let found = examine(&Case::new(&[row], None).unwrap()).remove(0);
    assert_eq!(words(&found), ["departure", "nonfinite-losses"]);
    let expected = Departure { step: Some(120), share_above: Some(0.96) };
    assert_eq!((&found[0].fault, found[0].strength), (&Fault::Departure(expected), 0.96));
}

#[test]
fn a_source_that_never_departed_is_not_said_to_have() {
    let row = SourceRow { judged: 100, above: 0, ..source("odd", Verdict::Unreliable) };
    assert!(words(&examine(&Case::new(&[row], None).unwrap()).remove(0)).is_empty());
}

#[test]
fn every_finding_is_a_sentence_and_reads_back_as_it_was_written() {
    let mut all = confused(Verdict::Unreliable, &[&[50, 50], &[0, 0]]);
    all.extend(confused(Verdict::Unreliable, &[&[30, 0], &[0, 0]]));
    all.extend(confused(Verdict::Unreliable, &[&[26, 24], &[25, 25]]));
    all.extend(confused(Verdict::Unreliable, &[&[5, 45, 0], &[40, 5, 5], &[0, 0, 50]]));
    all.extend(confused(Verdict::Unreliable, &[&[0, 30, 0], &[0, 1, 29], &[30, 0, 0]]));
    all.extend(confused(Verdict::Unreliable, &[&[80, 20, 0], &[1, 99, 0], &[0, 1, 99]]));
    all.extend(confused(
        Verdict::Suspect,
        &[&[60, 14, 13, 13], &[4, 96, 0, 0], &[0, 0, 99, 1], &[0, 0, 0, 99]],
    ));
    all.extend(confused(Verdict::Suspect, &[&[80, 10, 10], &[10, 80, 10], &[10, 10, 80]]));
    let patterns: [fn(f64) -> f64; 5] = [
        |x| x + 3.0,
        |x| 2.54 * x,
        |x| -x,
        |x| (x * 1000.0).sin() * 5.0,
        |x| x + (x * 1000.0).sin(),
    ];
    for given in patterns {
        all.extend(regressed(given));
    }
    let row = SourceRow { judged: 10, above: 4, nonfinite: 3, ..source("odd", Verdict::Suspect) };
    all.extend(examine(&Case::new(&[row], None).unwrap()).remove(0));
    // Sources with these are in the tests of inputs and of shuffled labels, which look at the sentences as well.
    let rest = [
        "sure-rows",
        "moved-rows",
        "shuffled-rows",
        "class-mix",
        "missing-column",
        "constant-column",
        "stuck-value",
        "clipped-range",
        "column-unit",
        "replaced-inputs",
        "input-noise",
        "input-shift",
        "duplicated-rows",
        "since",
    ];
    for examination in EXAMINATIONS.iter().flat_map(|family| family.iter()) {
        let made = all.iter().any(|finding| finding.fault.word() == examination.fault);
        assert!(made || rest.contains(&examination.fault), "{} is not covered", examination.fault);
    }
    for finding in &all {
        assert!((0.0..=1.0).contains(&finding.strength), "{finding:?}");
        let last = finding.words().pop();
        assert!(matches!(last, Some(Word::Text(text)) if text.ends_with('.')), "{finding:?}");
        let value = serde_json::to_value(finding).unwrap();
        assert_eq!(value["fault"], finding.fault.word());
        assert_eq!(serde_json::from_value::<Finding>(value).unwrap(), *finding);
    }
}

/// The door for examinations that come: given labels, out-of-sample probabilities, features by name, time.
struct StuckLate {
    column: String,
}

struct Sensor(Vec<f64>);

impl Features for Sensor {
    fn names(&self) -> Vec<String> {
        vec!["heat".to_owned()]
    }
    fn column(&self, name: &str) -> Option<Column<'_>> {
        (name == "heat").then_some(Column::Numbers(self.0.as_slice().into()))
    }
}

impl Examination for StuckLate {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let rows = subject.rows()?;
        let (features, times, unseen) = (rows.features?, rows.times?.values, rows.out_of_sample?);
        for column in features.names() {
            let Some(Column::Numbers(values)) = features.column(&column) else { continue };
            let late = subject.places().iter().filter(|place| times[**place as usize] > 5.0);
            let late: Vec<u32> = late.copied().collect();
            let stuck =
                late.windows(2).all(|pair| values[pair[0] as usize] == values[pair[1] as usize]);
            if stuck && late.len() > 1 {
                let sure = unseen[late[0] as usize];
                let rows = subject.numbered(&late);
                return Some(Finding::new(Self { column }, sure).shown_by(rows));
            }
        }
        None
    }
    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![Word::Name(&self.column), Word::Text(" is stuck.")]
    }
}

#[test]
fn an_examination_has_access_to_features_time_and_out_of_sample_predictions() {
    let sensor = Sensor((0..10).map(|row| f64::from(row.min(6))).collect());
    let times: Vec<f64> = (0..10).map(f64::from).collect();
    let (given, predicted, unseen) = ([1.0; 10], [1.0; 10], [0.5; 10]);
    let numbers: Vec<u64> = (100..110).collect();
    let answers = Answers::Values { given: &given, predicted: &predicted };
    let rows = Rows {
        features: Some(&sensor),
        times: Some(Times { values: &times, text: &|time| time.to_string() }),
        out_of_sample: Some(&unseen),
        ..Rows::new(Answered { sources: &[0; 10], answers }, &numbers)
    };
    let judged = [source("odd", Verdict::Unreliable)];
    let case = Case::new(&judged, Some(rows)).unwrap();
    let found = StuckLate::examine(&case.subject(0)).unwrap();
    assert_eq!((found.fault.column.as_str(), found.strength), ("heat", 0.5));
    assert_eq!(found.rows, [106, 107, 108, 109]);
}
