//! Edits of a checkpoint with a right checksum: refused, or a training that comes to its end.
//! `fuzz/run checkpoint -max_total_time=300`

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use lapwing_fuzz::{TABLE, edited, file};
use lapwing_run::{Checkpoints, Job, Prepared, Settings};
use lapwing_train::CheckpointDir;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const NAME: &str = "checkpoint.safetensors";
const DIGEST: usize = 32;

struct Valid {
    _directory: TempDir,
    settings: Settings,
    prepared: Prepared,
    /// Without its checksum.
    checkpoint: Vec<u8>,
}

fn at(path: PathBuf) -> Checkpoints {
    let directory = CheckpointDir::new(path);
    Checkpoints { directory, interval: Duration::ZERO, resume: true, last: false }
}

fn valid() -> &'static Valid {
    static VALID: OnceLock<Valid> = OnceLock::new();
    VALID.get_or_init(|| {
        let (directory, path) = file("table.csv", TABLE.as_bytes()).expect("a file");
        let settings = Settings {
            data: Some(path),
            target: Some("ill".to_owned()),
            source: Some("ward".to_owned()),
            epochs: Some(3),
            batch_size: Some(4),
            history: Some(1),
            hidden: Some(vec![2]),
            ..Settings::default()
        };
        let prepared = Prepared::read(&settings).expect("a table");
        let place = directory.path().join("checkpoint");
        {
            let job = Job::new(&prepared.dataset, &prepared.split, &settings).expect("a job");
            job.run(Some(&at(place.clone())), &mut ()).expect("a training");
        }
        let mut checkpoint = std::fs::read(place.join(NAME)).expect("a checkpoint");
        checkpoint.truncate(checkpoint.len() - DIGEST);
        Valid { _directory: directory, settings, prepared, checkpoint }
    })
}

fuzz_target!(|edits: &[u8]| {
    let valid = valid();
    let mut checkpoint = edited(&valid.checkpoint, edits);
    let digest = blake3::hash(&checkpoint);
    checkpoint.extend(digest.as_bytes());
    let Some((directory, _)) = file(NAME, &checkpoint) else { return };
    let prepared = &valid.prepared;
    let Ok(job) = Job::new(&prepared.dataset, &prepared.split, &valid.settings) else { return };
    let _ = job.run(Some(&at(directory.path().to_owned())), &mut ());
});
