//! Every fault of labels, targets and inputs in sources that are made to have it, beside sources that are alike in all else;
//! and how often sources without a fault are found to have one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod world;

use std::collections::BTreeMap;

use lapwing_judge::{Fault, Finding, Verdict, Word};
use rand::RngExt;
use world::{World, normal, words};

/// What merely describes a source, and is there with every verdict that calls for an explanation.
const DESCRIPTIONS: [&str; 8] = [
    "disagreement",
    "frequent-disagreement",
    "residual-spread",
    "scattered-disagreements",
    "one-pair",
    "one-class",
    "sure-rows",
    "wide-residuals",
];

/// The faults found on the first source, descriptions aside; those of the others must be none.
fn faults(world: &World, verdict: Verdict) -> Vec<Finding> {
    let mut findings = world.findings(verdict);
    for (at, found) in findings.iter().enumerate().skip(1) {
        assert!(found.is_empty(), "source {at}: {found:?}");
    }
    let mut own = findings.remove(0);
    own.retain(|finding| !DESCRIPTIONS.contains(&finding.fault.word()));
    for finding in &own {
        assert!(!finding.rows.is_empty() && finding.rows.len() <= 5, "{finding:?}");
        assert!((0.0..=1.0).contains(&finding.strength), "{finding:?}");
        let last = finding.words().pop();
        assert!(matches!(last, Some(Word::Text(text)) if text.ends_with('.')), "{finding:?}");
        let value = serde_json::to_value(finding).unwrap();
        assert_eq!(serde_json::from_value::<Finding>(value).unwrap(), *finding);
        // Rows are numbered from 1, and six sources take turns.
        assert!(finding.rows.iter().all(|row| (row - 1) % 6 == 0), "{finding:?}");
    }
    own
}

fn only(world: &World, verdict: Verdict, word: &str) -> Finding {
    let mut found = faults(world, verdict);
    assert_eq!(words(&found), [word], "{found:?}");
    found.remove(0)
}

fn classes() -> World {
    World::classes(1, 6, 200)
}

fn values() -> World {
    World::values(2, 6, 200)
}

#[test]
fn a_sound_source_has_no_fault_whatever_its_verdict() {
    for world in [classes(), values()] {
        for verdict in [Verdict::Reliable, Verdict::Suspect, Verdict::Unreliable] {
            assert!(faults(&world, verdict).is_empty());
        }
    }
}

#[test]
fn labels_drawn_evenly_are_random_and_labels_that_changed_places_are_shuffled() {
    let mut world = classes();
    world.relabel(0, |_, draws| draws.random_range(0..4));
    assert!(only(&world, Verdict::Unreliable, "random-labels").strength > 0.75);
    let mut world = classes();
    let rows = world.rows_of(0);
    let own: Vec<u32> = rows.iter().map(|&row| world.labels[row]).collect();
    for (at, &row) in rows.iter().enumerate() {
        world.labels[row] = own[(at * 77 + 13) % own.len()];
    }
    assert!(only(&world, Verdict::Unreliable, "shuffled-rows").strength > 0.75);
    let mut world = values();
    let own: Vec<f64> = rows.iter().map(|&row| world.targets[row]).collect();
    for (at, &row) in rows.iter().enumerate() {
        world.targets[row] = own[(at * 77 + 13) % own.len()];
    }
    only(&world, Verdict::Unreliable, "shuffled-rows");
    let mut world = values();
    world.retarget(0, |_, draws| draws.random_range(-9.0..9.0));
    only(&world, Verdict::Unreliable, "random-targets");
}

#[test]
fn labels_that_slipped_by_a_row_are_told_from_those_that_were_shuffled() {
    for by in [1, -1, 2] {
        let slipped = |at: usize, rows: usize| (at as i64 + by).rem_euclid(rows as i64) as usize;
        let mut world = classes();
        let rows = world.rows_of(0);
        let own: Vec<u32> = rows.iter().map(|&row| world.labels[row]).collect();
        for (at, &row) in rows.iter().enumerate() {
            world.labels[row] = own[slipped(at, rows.len())];
        }
        let found = only(&world, Verdict::Unreliable, "moved-rows");
        let Fault::MovedRows(moved) = found.fault else { panic!("{found:?}") };
        assert!(moved.by == by && moved.there > 0.7 && moved.here < 0.3, "{moved:?}");
        let mut world = values();
        let own: Vec<f64> = rows.iter().map(|&row| world.targets[row]).collect();
        for (at, &row) in rows.iter().enumerate() {
            world.targets[row] = own[slipped(at, rows.len())];
        }
        let found = only(&world, Verdict::Unreliable, "moved-rows");
        assert!(matches!(found.fault, Fault::MovedRows(moved) if moved.by == by));
    }
}

#[test]
fn other_faults_of_labels_are_told_apart_in_noise_as_well() {
    let faulty = |with: fn(u32, &mut rand_chacha::ChaCha8Rng) -> u32| {
        let mut world = classes();
        world.relabel(0, with);
        words(&faults(&world, Verdict::Unreliable))
    };
    assert_eq!(faulty(|_, _| 2), ["default-label"]);
    assert_eq!(faulty(|label, _| [1, 0, 2, 3][label as usize]), ["exchanged-classes"]);
    // In other proportions as well, as classes are of different size.
    assert_eq!(faulty(|label, _| (label + 1) % 4), ["renumbered-classes"]);
    // A third of the rows of one class: nothing but a pair.
    assert!(faulty(|label, d| if label == 0 && d.random_bool(0.3) { 1 } else { label }).is_empty());
}

#[test]
fn faults_of_targets_are_told_apart() {
    let faulty = |with: fn(f64, &mut rand_chacha::ChaCha8Rng) -> f64| {
        let mut world = values();
        world.retarget(0, with);
        words(&faults(&world, Verdict::Unreliable))
    };
    assert_eq!(faulty(|target, _| -target), ["flipped-sign"]);
    assert_eq!(faulty(|target, _| 2.54 * target), ["unit"]);
    assert_eq!(faulty(|target, _| target + 1.0), ["offset"]);
    assert_eq!(faulty(|target, _| target.min(1.5)), ["clipped-range"]);
    assert_eq!(faulty(|target, _| target.max(-1.5)), ["clipped-range"]);
    assert_eq!(
        faulty(|target, draws| if draws.random_bool(0.4) { 0.25 } else { target }),
        ["stuck-value"]
    );
    assert_eq!(faulty(|_, _| 0.25), ["constant-column"]);
    assert!(faulty(|target, draws| target + 0.2 * normal(draws)).is_empty());
}

#[test]
fn a_value_that_is_stuck_or_a_range_that_is_clipped_comes_with_its_numbers_and_rows() {
    let mut world = values();
    world.retarget(0, |target, _| target.min(1.5));
    let found = only(&world, Verdict::Reliable, "clipped-range");
    let Fault::ClippedRange(clipped) = &found.fault else { panic!("{found:?}") };
    assert!(clipped.upper && clipped.limit == 1.5 && clipped.column.is_none(), "{clipped:?}");
    assert!((clipped.share - clipped.beyond).abs() < 0.1, "{clipped:?}");
    assert!(found.rows.iter().all(|row| world.targets[*row as usize - 1] == 1.5));
    let mut world = classes();
    world.change(0, "pulse", |value, draws| if draws.random_bool(0.3) { 65.0 } else { value });
    let found = only(&world, Verdict::Reliable, "stuck-value");
    let Fault::StuckValue(stuck) = &found.fault else { panic!("{found:?}") };
    assert_eq!((stuck.column.as_deref(), stuck.value), (Some("pulse"), 65.0));
    // The column is no whole number elsewhere, so that nobody else has the value.
    assert!((stuck.share - 0.3).abs() < 0.1 && stuck.others == 0.0, "{stuck:?}");
    world.change(0, "pulse", |value, _| value.max(65.0));
    let found = only(&world, Verdict::Reliable, "clipped-range");
    assert!(matches!(found.fault, Fault::ClippedRange(clipped) if !clipped.upper));
}

#[test]
fn a_column_that_is_missing_or_constant_only_here_is_found() {
    for share in [0.5, 1.0] {
        let mut world = classes();
        world.change(0, "age", |age, draws| if draws.random_bool(share) { f64::NAN } else { age });
        let found = only(&world, Verdict::Reliable, "missing-column");
        let Fault::MissingColumn(missing) = &found.fault else { panic!("{found:?}") };
        assert_eq!(missing.columns, ["age"]);
        assert!((missing.missing - share).abs() < 0.1 && missing.others == 0.0);
    }
    let mut world = classes();
    world.change(0, "age", |_, _| 40.0);
    let found = only(&world, Verdict::Reliable, "constant-column");
    let Fault::ConstantColumn(constant) = &found.fault else { panic!("{found:?}") };
    assert_eq!((constant.column.as_deref(), constant.value.as_str()), (Some("age"), "40"));
    let mut world = classes();
    for row in world.rows_of(0) {
        world.levels[row] = 2;
    }
    let found = only(&world, Verdict::Reliable, "constant-column");
    assert!(matches!(&found.fault, Fault::ConstantColumn(constant) if constant.value == "high"));
}

#[test]
fn a_column_that_says_which_source_it_is_is_no_fault() {
    let mut world = classes();
    for source in 0..6 {
        world.change(source, "age", |_, _| f64::from(source));
    }
    assert!(faults(&world, Verdict::Reliable).is_empty());
}

#[test]
fn a_column_in_another_unit_is_told_from_one_that_is_merely_shifted() {
    let mut world = classes();
    world.change(0, "pulse", |pulse, _| pulse / 60.0);
    let found = only(&world, Verdict::Reliable, "column-unit");
    let Fault::ColumnUnit(unit) = &found.fault else { panic!("{found:?}") };
    assert!(unit.column == "pulse" && (unit.factor * 60.0 - 1.0).abs() < 0.05, "{unit:?}");
    let mut world = classes();
    world.change(0, "age", |age, _| age + 15.0);
    let found = only(&world, Verdict::Reliable, "input-shift");
    let Fault::InputShift(shift) = &found.fault else { panic!("{found:?}") };
    assert!(shift.columns == ["age"] && shift.distance > 0.35, "{shift:?}");
    let (own, others) = shift.medians.unwrap();
    assert!((own - others - 15.0).abs() < 5.0, "{shift:?}");
    // Smaller than what sources are allowed to differ by.
    let mut world = classes();
    world.change(0, "age", |age, _| age + 2.0);
    assert!(faults(&world, Verdict::Reliable).is_empty());
    let mut world = classes();
    for row in world.rows_of(0) {
        if world.draws.random_bool(0.5) {
            world.levels[row] = 0;
        }
    }
    let found = only(&world, Verdict::Reliable, "input-shift");
    assert!(matches!(&found.fault, Fault::InputShift(shift) if shift.columns == ["grade"]));
}

#[test]
fn where_all_sources_differ_none_of_them_is_called_shifted() {
    let mut world = classes();
    for source in 0..6 {
        world.change(source, "age", |age, _| age + 8.0 * f64::from(source));
        world.change(source, "pulse", |pulse, _| pulse - 5.0 * f64::from(source));
    }
    let shifted = world.findings(Verdict::Reliable);
    let shifted = shifted.iter().filter(|found| !found.is_empty()).count();
    assert!(shifted <= 2, "{shifted}");
}

#[test]
fn noise_that_is_added_to_inputs_is_told_from_inputs_that_were_replaced() {
    let mut world = World::classes(1, 6, 400);
    world.change(0, "weight", |weight, draws| weight + normal(draws));
    let found = only(&world, Verdict::Reliable, "input-noise");
    let Fault::InputNoise(noise) = &found.fault else { panic!("{found:?}") };
    assert!(noise.columns[0] == "weight" && noise.ratio > 1.5, "{noise:?}");
    let mut world = World::classes(1, 6, 400);
    // Each column by itself stays as it is.
    for (column, step) in [("height", 77), ("weight", 91), ("income", 133)] {
        let rows = world.rows_of(0);
        let (_, values) = world.columns.iter_mut().find(|(name, _)| name == column).unwrap();
        let own: Vec<f64> = rows.iter().map(|&row| values[row]).collect();
        for (at, &row) in rows.iter().enumerate() {
            values[row] = own[(at * step + 13) % own.len()];
        }
    }
    let found = only(&world, Verdict::Reliable, "replaced-inputs");
    assert!(found.strength > 0.8, "{found:?}");
    let mut world = World::classes(1, 6, 400);
    for column in ["height", "weight", "income", "age", "pulse"] {
        world.change(0, column, |_, draws| normal(draws));
    }
    assert!(words(&faults(&world, Verdict::Reliable)).contains(&"replaced-inputs"));
}

#[test]
fn rows_that_are_there_twice_are_found_with_their_twins() {
    let mut world = classes();
    let rows = world.rows_of(0);
    for pair in rows[..60].chunks(2) {
        for (_, values) in &mut world.columns {
            values[pair[1]] = values[pair[0]];
        }
        world.levels[pair[1]] = world.levels[pair[0]];
        world.labels[pair[1]] = world.labels[pair[0]];
    }
    let found = only(&world, Verdict::Reliable, "duplicated-rows");
    let Fault::DuplicatedRows(rows) = &found.fault else { panic!("{found:?}") };
    // A gap is a value like any other: it has the same bits here.
    assert_eq!((rows.count, rows.of, rows.others), (30, 200, 0.0));
    assert_eq!(found.rows[1], found.rows[0] + 6, "{found:?}");
}

#[test]
fn labels_in_other_proportions_are_said_to_be_no_fault_of_theirs() {
    let mut world = classes();
    for row in world.rows_of(0) {
        // What the network sees goes with it: the source sees other rows.
        let class = if world.draws.random_bool(0.8) { 3 } else { world.labels[row] };
        world.labels[row] = class;
        for c in 0..4 {
            world.probabilities[4 * row + c] = if c == class as usize { 0.85 } else { 0.05 };
        }
    }
    let found = only(&world, Verdict::Reliable, "class-mix");
    let Fault::ClassMix(mix) = &found.fault else { panic!("{found:?}") };
    assert!(mix.label == "oak" && mix.share > 0.7 && mix.others < 0.2, "{mix:?}");
}

#[test]
fn a_source_that_is_bad_from_some_time_on_is_told_since_when() {
    let timed = |mut world: World| {
        // Backwards: what counts is the time, not the order of the rows.
        world.times = Some((0..world.sources.len()).map(|row| 9000.0 - row as f64).collect());
        world
    };
    let mut world = timed(classes());
    let times = world.times.clone().unwrap();
    for row in world.rows_of(0) {
        if times[row] > 8500.0 {
            world.labels[row] = world.draws.random_range(0..4);
        }
    }
    let found = faults(&world, Verdict::Reliable);
    let Fault::Since(since) = &found[0].fault else { panic!("{found:?}") };
    let number = |text: &str| text.parse::<f64>().unwrap();
    let from = since.from.as_ref().unwrap();
    assert!(number(&from.low) <= 8500.0 && number(&from.high) >= 8500.0, "{from:?}");
    assert!(number(&from.high) - number(&from.low) < 150.0 && since.until.is_none(), "{since:?}");
    assert!(since.inside > 0.5 && since.outside < 0.2, "{since:?}");
    assert!(found[0].rows.iter().all(|row| times[*row as usize - 1] > 8400.0));
    let mut world = timed(values());
    for row in world.rows_of(0) {
        if (8200.0..8600.0).contains(&times[row]) {
            world.targets[row] += 3.0;
        }
    }
    let found = faults(&world, Verdict::Reliable);
    let Fault::Since(since) = &found[0].fault else { panic!("{found:?}") };
    let (from, until) = (since.from.as_ref().unwrap(), since.until.as_ref().unwrap());
    assert!((number(&from.time) - 8200.0).abs() < 60.0, "{from:?}");
    assert!((number(&until.time) - 8600.0).abs() < 60.0, "{until:?}");
    // As bad at all times is bad, and not since any time.
    let mut world = timed(classes());
    world.relabel(
        0,
        |label, draws| if draws.random_bool(0.4) { draws.random_range(0..4) } else { label },
    );
    assert!(faults(&world, Verdict::Reliable).is_empty());
}

/// The measured rates stand in docs/verdicts.md.
#[test]
fn sources_without_a_fault_are_rarely_found_to_have_one() {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    let mut sources = 0;
    for seed in 0..40 {
        for rows in [20, 60, 250] {
            for mut world in [World::classes(seed, 8, rows), World::values(seed, 8, rows)] {
                world.times = Some((0..world.sources.len()).map(|row| row as f64).collect());
                // Each examination, also those that are made where a verdict calls for an explanation.
                sources += 8;
                let all = world.findings(Verdict::Unreliable);
                for finding in all.iter().flatten() {
                    *found.entry(finding.fault.word()).or_default() += 1;
                }
            }
        }
    }
    found.retain(|word, _| !DESCRIPTIONS.contains(word));
    let rate = f64::from(found.values().sum::<u32>()) / f64::from(sources);
    println!("{sources} sources, a finding on {:.2} %: {found:?}", 100.0 * rate);
    assert!(rate <= 0.005, "{found:?}");
}

/// What the other sources say of a column was learnt from their own rows, which therefore looked closer to it.
#[test]
fn sound_sources_were_said_to_scatter_where_there_are_few_rows_to_a_column() {
    let noisy = |world: &World| -> Vec<bool> {
        let found = world.findings(Verdict::Reliable);
        found.iter().map(|found| words(found).contains(&"input-noise")).collect()
    };
    for (columns, sources, rows, seeds) in
        [(16, 5, 60, 100), (16, 2, 100, 100), (64, 6, 70, 10), (384, 10, 60, 5)]
    {
        let world = |seed| World::unrelated(seed, sources, rows, columns);
        let found = (0..seeds).filter(|&seed| noisy(&world(seed)).contains(&true)).count();
        println!("{columns} columns, {sources} sources of {rows} rows: {found} of {seeds} runs");
        assert!(100 * found as u64 <= seeds, "{found} of {seeds}");
        // A device that measures by far less exactly than the others.
        let mut world = world(0);
        world.change(0, "x0", |value, draws| value + 3.0 * normal(draws));
        let found = noisy(&world);
        assert!(found[0] && !found[1..].contains(&true), "{columns} columns: {found:?}");
    }
}
