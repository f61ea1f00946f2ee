//! Edits of the files of a model: refused, or a model that predicts. `fuzz/run model -max_total_time=300`
//!
//! The first byte says how many of the edits are for `model.json`; the rest are for the parameters, whose digest in
//! `model.json` is then put right, as somebody who forges a model would.

#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use lapwing_fuzz::{TABLE, edited, file};
use lapwing_data::NewRows;
use lapwing_run::{Job, Predictor, Prepared, Results, RunDirectory, RunError, Settings};
use lapwing_train::DeviceName;
use libfuzzer_sys::fuzz_target;

struct Valid {
    description: Vec<u8>,
    weights: Vec<u8>,
}

fn valid() -> &'static Valid {
    static VALID: OnceLock<Valid> = OnceLock::new();
    VALID.get_or_init(|| {
        let (directory, path) = file("table.csv", TABLE.as_bytes()).expect("a file");
        let settings = Settings {
            data: Some(path),
            target: Some("ill".to_owned()),
            source: Some("ward".to_owned()),
            epochs: Some(1),
            hidden: Some(vec![2]),
            ..Settings::default()
        };
        let prepared = Prepared::read(&settings).expect("a table");
        let job = Job::new(&prepared.dataset, &prepared.split, &settings).expect("a job");
        let mut fit = job.run(None, &mut ()).expect("a training").expect("an end");
        let results = Results::new(&prepared, &job, &mut fit, None).expect("results");
        let run = RunDirectory::create(&directory.path().join("run"), false, &job.settings)
            .expect("a directory");
        run.write(&job, &fit, &results).expect("files");
        let read = |name: &str| std::fs::read(run.path().join(name)).expect("a file");
        Valid { description: read("model.json"), weights: read("model.safetensors") }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let valid = valid();
    let Some((&first, edits)) = bytes.split_first() else { return };
    let (description, weights) = edits.split_at(edits.len().min(5 * usize::from(first)));
    let weights = edited(&valid.weights, weights);
    let before = blake3::hash(&valid.weights).to_hex();
    let after = blake3::hash(&weights).to_hex();
    let description = edited(&valid.description, description);
    let description = String::from_utf8_lossy(&description).replace(&*before, &after);
    let Some((directory, table)) = file("table.csv", TABLE.as_bytes()) else { return };
    let written = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes);
    if written("model.json", description.as_bytes()).is_err()
        || written("model.safetensors", &weights).is_err()
    {
        return;
    }
    predict(directory.path(), &table);
});

fn predict(run: &Path, table: &Path) {
    let Ok(device) = "cpu".parse::<DeviceName>() else { return };
    if let Ok(predictor) = Predictor::load(run, device) {
        if let Ok(rows) = NewRows::open(table, predictor.schema()) {
            let _ = predictor.predict(rows, |_| Ok::<(), RunError>(()));
        }
        let _ = predictor.evaluate(table, Some("ward"));
    }
}
