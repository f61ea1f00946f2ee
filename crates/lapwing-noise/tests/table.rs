//! Noise in a table, from the library: what the program does, without it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use lapwing_data::{Compression, Form, TableFile, Task};
use lapwing_noise::{Level, NoiseKind, SourceCount, TableNoise, TableNoiseError, TargetIs};

/// 120 rows of the sources a, b and c, of the classes x, y and z.
fn table() -> String {
    let mut text = "width,site,class,price\n".to_owned();
    for row in 0..120_usize {
        let (site, class) = (["a", "b", "c"][row % 3], ["x", "y", "z"][row / 3 % 3]);
        text += &format!("{},{site},{class},{}.5\n", row % 7, row % 11);
    }
    text
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.csv");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn noise(kind: NoiseKind) -> TableNoise {
    TableNoise {
        kind,
        level: Level::FULL,
        seed: 0,
        target: "class".to_owned(),
        source: "site".to_owned(),
        sources: vec!["b".to_owned()],
        features: None,
        task: None,
        chunk: 128,
    }
}

/// The table with noise in it, and what became of the chosen sources.
fn corrupted(noise: &TableNoise) -> Result<(String, Vec<SourceCount>), TableNoiseError> {
    let (_directory, path) = written(&table());
    let file = TableFile::open(&path)?;
    let mut corruption = noise.plan(&file)?;
    let mut bytes = Vec::new();
    corruption.copy(&file, &mut bytes, Form::Text(Compression::None), |_| {})?;
    Ok((String::from_utf8(bytes).unwrap(), corruption.counts().to_vec()))
}

/// Site, class before and class after of each row.
fn classes(new: &str) -> Vec<(String, String, String)> {
    let cell = |line: &str, at: usize| line.split(',').nth(at).unwrap().to_owned();
    let pairs = table().lines().map(str::to_owned).zip(new.lines()).skip(1).collect::<Vec<_>>();
    pairs.iter().map(|(old, new)| (cell(old, 1), cell(old, 2), cell(new, 2))).collect()
}

#[test]
fn swapped_classes_change_places_in_the_chosen_source_and_nowhere_else() {
    let (new, counts) = corrupted(&noise(NoiseKind::ClassSwap)).unwrap();
    let mut became = std::collections::BTreeMap::new();
    for (site, old, new) in classes(&new) {
        if site == "b" {
            assert_eq!(*became.entry(old).or_insert_with(|| new.clone()), new);
        } else {
            assert_eq!(old, new);
        }
    }
    let moved: Vec<_> = became.iter().filter(|(old, new)| old != new).collect();
    assert_eq!(moved.len(), 2, "{became:?}");
    assert_eq!((moved[0].0, moved[0].1), (moved[1].1, moved[1].0));
    let changed = classes(&new).iter().filter(|(_, old, new)| old != new).count() as u64;
    assert_eq!(counts, [SourceCount { name: "b".to_owned(), rows: 40, changed }]);
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_seed_others() {
    for kind in [NoiseKind::RandomLabelPerSample, NoiseKind::ExactFlip, NoiseKind::AddedNoise] {
        let of = |seed| corrupted(&TableNoise { seed, ..noise(kind) }).unwrap().0;
        assert_eq!(of(1), of(1), "{kind}");
        assert_ne!(of(1), of(2), "{kind}");
    }
    assert_eq!(corrupted(&noise(NoiseKind::Original)).unwrap().0, table());
}

#[test]
fn what_does_not_fit_the_table_is_refused_without_a_word_on_flags() {
    let refused = |noise: TableNoise| {
        let error = corrupted(&noise).unwrap_err();
        assert!(!error.to_string().contains("--"), "{error}");
        error
    };
    let price = |kind| TableNoise { target: "price".to_owned(), ..noise(kind) };
    assert!(matches!(
        refused(price(NoiseKind::ExactFlip)),
        TableNoiseError::Target { is: TargetIs::Number, .. }
    ));
    assert!(matches!(
        refused(noise(NoiseKind::UniformTarget)),
        TableNoiseError::Target { is: TargetIs::Class, .. }
    ));
    let task = Some(Task::Regression);
    assert!(matches!(
        refused(TableNoise { task, ..noise(NoiseKind::UniformTarget) }),
        TableNoiseError::NotANumber { row: 1, .. }
    ));
    assert!(matches!(refused(noise(NoiseKind::HumanLabels)), TableNoiseError::Unfit { .. }));
    let features = Some(vec!["width".to_owned()]);
    let of_width = |kind| TableNoise { features: features.clone(), ..noise(kind) };
    assert!(matches!(refused(of_width(NoiseKind::ExactFlip)), TableNoiseError::NotOfInputs { .. }));
    assert!(matches!(
        refused(of_width(NoiseKind::ChunkShuffle)),
        TableNoiseError::Columns { needed: 2, found: 1, .. }
    ));
    let absent = TableNoise { sources: vec!["B".to_owned()], ..noise(NoiseKind::ExactFlip) };
    let message = refused(absent).to_string();
    assert!(message.ends_with("the sources are \"b\", \"a\", \"c\""), "{message}");
}

#[test]
fn a_table_that_changed_since_it_was_planned_for_is_refused() {
    let (_directory, path) = written(&table());
    let file = TableFile::open(&path).unwrap();
    let mut corruption = noise(NoiseKind::ExactFlip).plan(&file).unwrap();
    std::fs::write(&path, table() + "1,b,x,2\n").unwrap();
    let copied =
        corruption.copy(&file, &mut std::io::sink(), Form::Text(Compression::None), |_| {});
    assert!(matches!(copied, Err(TableNoiseError::Changed(_))), "{copied:?}");
}

#[test]
fn words_of_texts_change_places_or_become_other_words_of_the_column() {
    let mut text = "review,site,class\n".to_owned();
    for row in 0..60_usize {
        let (site, class) = (["a", "b"][row % 2], ["x", "y"][row / 2 % 2]);
        let words: Vec<String> =
            (0..12).map(|at| format!("w{}", (row * 5 + at * 7) % 40)).collect();
        text += &format!("\"{}\",{site},{class}\n", words.join(" "));
    }
    let (_directory, path) = written(&text);
    let file = TableFile::open(&path).unwrap();
    let reviews = |text: &str| -> Vec<Vec<String>> {
        let words = |line: &str| {
            let review = line.trim_start_matches('"').split(['"', ',']).next().unwrap();
            review.split_whitespace().map(str::to_owned).collect()
        };
        text.lines().skip(1).map(words).collect()
    };
    let copy = |kind| {
        let features = Some(vec!["review".to_owned()]);
        let mut corruption = TableNoise { features, ..noise(kind) }.plan(&file).unwrap();
        let mut bytes = Vec::new();
        corruption.copy(&file, &mut bytes, Form::Text(Compression::None), |_| {}).unwrap();
        reviews(&String::from_utf8(bytes).unwrap())
    };
    let (old, permuted, replaced) =
        (reviews(&text), copy(NoiseKind::TokenPermutation), copy(NoiseKind::TokenReplacement));
    let sorted = |words: &[String]| {
        let mut words = words.to_vec();
        words.sort();
        words
    };
    let mut changed = 0;
    for (row, (old, (permuted, replaced))) in
        old.iter().zip(permuted.iter().zip(&replaced)).enumerate()
    {
        assert_eq!(sorted(old), sorted(permuted));
        assert_eq!(old.len(), replaced.len());
        assert_eq!(row % 2 == 1, old != permuted, "row {row}");
        let new = old.iter().zip(replaced).filter(|(old, new)| old != new).count();
        assert!(row % 2 == 1 || new == 0);
        changed += new;
    }
    // Half of 360 words, one in forty of which becomes itself: 175 of them, with a deviation of 9.5.
    assert!((130..=220).contains(&changed), "{changed}");
    let refused = corrupted(&noise(NoiseKind::TokenPermutation));
    assert!(matches!(refused, Err(TableNoiseError::NoText { .. })));
    assert!(
        noise(NoiseKind::PixelNoise)
            .plan(&file)
            .is_err_and(|error| error.to_string().contains("pictures"))
    );
}

/// Series of 20 moments at most, a column each: row `n` has `5 + n % 16` of them.
#[test]
fn what_is_missing_stays_where_it_is() {
    let mut text = (0..20).fold(String::new(), |text, at| format!("{text}e_{at},"));
    text += "site,class\n";
    for row in 0..90_usize {
        for at in 0..20 {
            let value = if at < 5 + row % 16 {
                format!("{}.5", (row * 7 + at * 3) % 50)
            } else {
                String::new()
            };
            text += &format!("{value},");
        }
        text += &format!("{},{}\n", ["a", "b", "c"][row % 3], ["x", "y"][row / 3 % 2]);
    }
    let (_directory, path) = written(&text);
    let file = TableFile::open(&path).unwrap();
    for kind in [NoiseKind::ReplaceWithNoise, NoiseKind::ChunkShuffle, NoiseKind::AddedNoise] {
        let mut corruption = noise(kind).plan(&file).unwrap();
        let mut bytes = Vec::new();
        corruption.copy(&file, &mut bytes, Form::Text(Compression::None), |_| {}).unwrap();
        let new = String::from_utf8(bytes).unwrap();
        for (row, (old, new)) in text.lines().zip(new.lines()).skip(1).enumerate() {
            let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
            let (mut old, mut new) = (cells(old), cells(new));
            assert_eq!(old != new, row % 3 == 1, "{kind}, row {row}");
            for (old, new) in old.iter().zip(&new) {
                assert_eq!(old.is_empty(), new.is_empty(), "{kind}, row {row}");
            }
            if kind == NoiseKind::ChunkShuffle {
                old.sort();
                new.sort();
                assert_eq!(old, new, "row {row}");
            }
        }
    }
}
