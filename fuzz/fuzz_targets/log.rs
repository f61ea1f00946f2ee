//! Any bytes as a log of losses, from a file (all formats) and from a stream, through the rule:
//! an answer or an error, never a panic. `fuzz/run log -max_total_time=300`

#![no_main]

use std::io::{Cursor, Write};

use lapwing_core::{BatchSums, Lap, LapConfig};
use lapwing_data::{DataError, LogColumns, LossLog};
use libfuzzer_sys::fuzz_target;

fn replay(log: Result<LossLog, DataError>) -> Result<u64, DataError> {
    let config = LapConfig { history_length: 2, ..LapConfig::default() };
    let Ok(mut lap) = Lap::<String>::new(config) else { unreachable!("the parameters are fine") };
    let mut sums = BatchSums::new();
    let mut last = None;
    log?.each_row(|row| {
        if last.is_some_and(|step| step != row.step) {
            let _ = lap.update(&sums);
            sums.clear();
        }
        last = Some(row.step);
        sums.add(row.source, row.loss);
        Ok::<(), DataError>(())
    })?;
    let _ = lap.update(&sums);
    for source in lap.sources() {
        assert!(source.weight > 0.0 && source.weight <= 1.0);
        assert!(source.mean_loss.is_none_or(f64::is_finite));
        assert!(source.reference.is_none_or(|r| r.mean.is_finite() && r.std >= 0.0));
    }
    Ok(lap.step())
}

fuzz_target!(|bytes: &[u8]| {
    let columns = LogColumns::default();
    let streamed = replay(LossLog::from_reader("stream", Cursor::new(bytes.to_vec()), &columns));
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let read = replay(LossLog::open(file.path(), &columns));
    if let (Ok(streamed), Ok(read)) = (streamed, read) {
        assert_eq!(streamed, read, "a file and a stream of the same text differ");
    }
});
