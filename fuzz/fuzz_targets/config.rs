//! Any bytes as a file of settings: refused, or settings that can be written down and read again.
//! `fuzz/run config -max_total_time=300`

#![no_main]

use lapwing_fuzz::file;
use lapwing_run::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((directory, path)) = file("config.toml", bytes) else { return };
    let Ok(settings) = Settings::read(&path) else { return };
    let _ = settings.split();
    let _ = settings.read_options();
    let _ = settings.rule();
    let Ok(text) = settings.to_toml() else { return };
    let again = directory.path().join("again.toml");
    if std::fs::write(&again, &text).is_ok() {
        match Settings::read(&again).and_then(|again| again.to_toml()) {
            Ok(same) => assert_eq!(text, same, "settings change when they are written down"),
            Err(error) => panic!("what was written down cannot be read: {error}\n{text}"),
        }
    }
});
