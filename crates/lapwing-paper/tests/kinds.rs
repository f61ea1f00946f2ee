//! Texts and electrocardiograms from end to end: made-up files in the official layouts, the paper's networks, one record each.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Mutex;

use lapwing_paper::{
    DataDir, Form, Record, Records, Request, Results, Selection, Version, Watch, recipe, run,
    write_figures,
};

#[derive(Default)]
struct Finished(Mutex<Vec<Record>>);

impl Watch for Finished {
    fn finished(&self, record: &Record) {
        self.0.lock().unwrap().push(record.clone());
    }
}

/// Runs one cell of an experiment on files below `root`.
fn cell(id: &str, condition: &str, form: Form, root: &Path) -> Record {
    let request = Request {
        selection: Selection {
            runs: Some(1),
            conditions: vec![condition.to_owned()],
            methods: vec!["lap".to_owned()],
            shard: None,
        },
        form,
        version: Version::Code,
        jobs: Some(1),
    };
    let data = DataDir::of_other_files(root.to_owned());
    let finished = Finished::default();
    run(&recipe(id, Version::Code).unwrap(), &request, &data, root, &finished).unwrap();
    let mut records = finished.0.into_inner().unwrap();
    let record = records.pop().unwrap();
    assert_eq!((records.len(), &record.failure), (0, &None));
    record
}

fn write(root: &Path, place: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(place);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Twelve leads of ten seconds in WFDB's format 16: slow waves, or fast ones.
fn electrocardiogram(root: &Path, name: &str, fast: bool) {
    let wave = |moment: usize, lead: usize| {
        let speed = if fast { 0.9 } else { 0.2 };
        (400.0 * (speed * moment as f64 + lead as f64).sin()) as i16
    };
    let mut header = format!("{name} 12 100 1000\n");
    for lead in 0..12 {
        let sum = (0..1000).fold(0_i16, |sum, moment| sum.wrapping_add(wave(moment, lead)));
        let first = wave(0, lead);
        header += &format!("{name}.dat 16 1000.0(0)/mV 16 0 {first} {sum} 0 L{lead}\n");
    }
    let samples = (0..1000).flat_map(|moment| (0..12).map(move |lead| (moment, lead)));
    let bytes: Vec<u8> = samples.flat_map(|(m, l)| wave(m, l).to_le_bytes()).collect();
    write(root, &format!("records100/{name}.hea"), header);
    write(root, &format!("records100/{name}.dat"), bytes);
}

#[test]
fn electrocardiograms_of_twelve_nurses_are_trained_on_and_measured() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let mut table = "ecg_id,nurse,scp_codes,strat_fold,filename_lr\n".to_owned();
    for at in 0..60 {
        let (nurse, fold, fast) =
            (at % 12, if at < 48 { 1 + at % 9 } else { 10 }, at / 12 % 2 == 0);
        let code = if fast { "IMI" } else { "NORM" };
        table += &format!("{at},{nurse}.0,\"{{'{code}': 100.0}}\",{fold},records100/{at:05}_lr\n");
        electrocardiogram(root, &format!("{at:05}_lr"), fast);
    }
    // Both kinds are tested.
    table = table.replace("59,11.0,\"{'IMI'", "59,11.0,\"{'NORM'");
    write(root, "ptbxl_database.csv", table);
    let statements = ",diagnostic,diagnostic_class\nNORM,1.0,NORM\nIMI,1.0,MI\n";
    write(root, "scp_statements.csv", statements);
    let record = cell("ptb-xl", "noisy-2", Form { epochs: Some(2), ..Form::FULL }, root);
    assert_eq!((record.rows, record.noisy_sources.len()), ([48, 12], 2));
    let areas = &record.series["auc-pr"];
    assert!(areas.len() == 2 && areas.iter().all(|area| (0.0..=1.0).contains(area)), "{areas:?}");
}

#[test]
fn reviews_are_read_word_by_word() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..6 {
        for (class, words) in [("pos", "a good film"), ("neg", "a bad film")] {
            for part in ["train", "test"] {
                let place = format!("aclImdb/{part}/{class}/{at}_5.txt");
                if part == "train" || at == 0 {
                    write(dir.path(), &place, words);
                }
            }
        }
    }
    let form = Form {
        limit_train: Some(6),
        epochs: Some(1),
        length: Some(4),
        excerpt: true,
        ..Form::FULL
    };
    assert_eq!(form.to_string(), "excerpt-limit-6-epochs-1-length-4");
    let record = cell("imdb", "random-label", form, dir.path());
    assert_eq!((record.rows, record.series["top-1"].len()), ([6, 2], 1));
    assert_eq!(record.noisy_sources.len(), 4);
}

#[test]
fn comments_keep_their_raters_whose_sizes_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let emotions = "admiration,amusement,anger,annoyance,approval,caring,confusion,curiosity,desire,disappointment,disapproval,disgust,embarrassment,excitement,fear,gratitude,grief,joy,love,nervousness,optimism,pride,realization,relief,remorse,sadness,surprise,neutral";
    for part in 1..=3 {
        let mut table = format!("text,id,rater_id,{emotions}\n");
        for rater in [0, 0, 0, 81] {
            let class = (rater + part) % 28;
            let cells: Vec<&str> = (0..28).map(|c| if c == class { "1" } else { "0" }).collect();
            table += &format!("words of a kind,x,{rater},{}\n", cells.join(","));
        }
        write(dir.path(), &format!("goemotions/goemotions_{part}.csv"), table);
    }
    let form = Form { epochs: Some(1), length: Some(8), ..Form::FULL };
    let record = cell("goemotions", "token-replacement", form, dir.path());
    assert_eq!(record.noisy_sources.len(), 30);
    let sizes = &record.histogram[0];
    assert_eq!(sizes.iter().sum::<u32>() as usize, record.rows[0]);
    let raters = sizes.iter().filter(|size| **size > 0).count();
    assert!(sizes[0] > 3 && raters <= 2, "{sizes:?}");
    let recipe = recipe("goemotions", Version::Code).unwrap();
    let records = Records::new(dir.path());
    let results = Results::gather(&recipe, Version::Code, form, &records).unwrap();
    assert_eq!(write_figures(&results, dir.path()).unwrap().len(), 2);
}
