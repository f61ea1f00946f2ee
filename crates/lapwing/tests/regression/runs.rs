//! Run directories.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::tables::{Place, WARDS, killed, start, wards};

const TRAIN: &str = "train wards.csv --target ill --source ward --model mlp --epochs 3 -q";
/// Goes on until somebody ends it.
const LONG: &str =
    "train wards.csv --target ill --source ward --model mlp --epochs 100000 --patience 100000 -q";

fn place() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place
}

/// All files of a run.
fn files(place: &Place, run: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(place.path(run))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .filter(|(name, _)| name != ".lapwing-lock")
        .collect();
    files.sort();
    files
}

/// Waits until there is a file, written by a process that goes on.
fn wait_for(place: &Place, file: &str, child: &mut Child) {
    let started = Instant::now();
    while !place.path(file).exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before there was {file}");
        assert!(started.elapsed() < Duration::from_secs(120), "no {file}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn force_deleted_the_table_it_was_to_train_on() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("checkpoint")).unwrap();
    for name in ["sources.csv", "metrics.csv"] {
        place.write(name, &wards(300, &WARDS, 1));
    }
    place.write("checkpoint/my_model.pt", "mine");
    place.write("config.toml", "");
    for name in ["sources.csv", "metrics.csv"] {
        let words = format!("train {name} --target ill --source ward --epochs 2 --out . --force");
        place.refuses(&words, &["holds no run", "--out"]);
        place.refuses(&words.replace(" --force", ""), &["exists and is not empty"]);
    }
    assert_eq!(place.text("checkpoint/my_model.pt"), "mine");
    assert_eq!(place.text("config.toml"), "");
    assert_eq!(place.text("sources.csv"), wards(300, &WARDS, 1));
}

#[test]
fn force_replaced_a_table_that_lay_in_the_run() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out run")).assert().success();
    place.write("run/sources.csv", &wards(300, &WARDS, 2));
    for data in ["run/sources.csv", "./run/../run/sources.csv"] {
        let words = format!("{TRAIN} --out run --force").replace("wards.csv", data);
        place.refuses(&words, &["sources.csv is a file of the run"]);
    }
    let words = format!("{TRAIN} --out run --force --test run/sources.csv");
    place.refuses(&words, &["sources.csv is a file of the run"]);
}

#[test]
fn files_of_others_in_a_run_went_with_it() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out run")).assert().success();
    std::fs::create_dir(place.path("run/checkpoint")).unwrap();
    place.write("run/checkpoint/my_model.pt", "mine");
    place.write("run/notes.txt", "mine");
    place.lapwing(&format!("{TRAIN} --out run --force --seed 2")).assert().success();
    assert_eq!(place.text("run/checkpoint/my_model.pt"), "mine");
    assert_eq!(place.text("run/notes.txt"), "mine");
    assert!(place.text("run/config.toml").contains("seed = 2"));
}

#[test]
fn a_directory_that_is_no_run_was_said_to_be_one() {
    let place = place();
    std::fs::create_dir(place.path("etc")).unwrap();
    place.write("etc/passwd", "");
    let refused = place.refuses("train --resume etc", &["etc: there is no such run"]);
    assert!(!String::from_utf8_lossy(&refused.get_output().stderr).contains("--force"));
    place.write("etc/run.json", "{\"format\": 1}");
    place.refuses("train --resume etc", &["there is no such run"]);
    place.refuses(&format!("{TRAIN} --out etc --force"), &["holds no run"]);
}

#[test]
fn a_run_that_diverged_took_the_finished_one_with_it() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out keep")).assert().success();
    let before = files(&place, "keep");
    place.refuses(
        &format!("{TRAIN} --out keep --force --learning-rate 1e30")
            .replace("--epochs 3", "--epochs 50"),
        &["diverged"],
    );
    assert_eq!(files(&place, "keep"), before);
}

#[test]
fn a_run_that_was_killed_took_the_finished_one_with_it() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out keep")).assert().success();
    let before = files(&place, "keep");
    let words = format!("{LONG} --out keep --force --seed 2 --checkpoint-every 0");
    let mut child = start(&place, &words).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&place, "keep/.lapwing-next/checkpoint/checkpoint.safetensors", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(files(&place, "keep"), before);
    place.lapwing("sources keep").assert().success();
    place.lapwing("predict keep wards.csv").assert().success();
    // It is the new one that goes on, and it takes the place of the old one when it is finished.
    place.write("keep/.lapwing-next/config.toml", "epochs = \"all\"");
    place.refuses("train --resume keep", &["config.toml", "epochs"]);
    place.lapwing(&format!("{TRAIN} --out keep --force --seed 2")).assert().success();
    assert!(place.text("keep/config.toml").contains("seed = 2"));
    assert!(!place.path("keep/.lapwing-next").exists());
    place.lapwing(&format!("{TRAIN} --out fresh --seed 2")).assert().success();
    assert_eq!(files(&place, "keep"), files(&place, "fresh"));
}

#[test]
fn a_change_of_places_that_was_cut_off_is_finished_by_whoever_comes_next() {
    let place = place();
    for (run, seed) in [("old", 1), ("new", 2)] {
        place.lapwing(&format!("{TRAIN} --out {run} --seed {seed}")).assert().success();
    }
    let new = files(&place, "new");
    for (words, moved) in [("sources run", 0), ("predict run wards.csv", 1), ("report run", 5)] {
        let place = Place::new();
        place.write("wards.csv", &wards(300, &WARDS, 1));
        place.lapwing(&format!("{TRAIN} --out run --seed 1")).assert().success();
        std::fs::create_dir(place.path("run/.lapwing-complete")).unwrap();
        for (at, (name, bytes)) in new.iter().enumerate() {
            let to = if at < moved { "run" } else { "run/.lapwing-complete" };
            std::fs::write(place.path(to).join(name), bytes).unwrap();
        }
        place.lapwing(words).assert().success();
        let there = files(&place, "run");
        assert!(there == new, "{words}");
    }
}

#[test]
fn the_gate_was_open_where_sources_csv_was_empty_or_cut_short() {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 1));
    place
        .lapwing(&format!("{TRAIN} --out run").replace("--epochs 3", "--epochs 40"))
        .assert()
        .success();
    place.lapwing("sources run --fail-on unreliable").assert().code(1);
    let whole = place.text("run/sources.csv");
    let lines: Vec<&str> = whole.lines().collect();
    let without_attic: String =
        lines.iter().filter(|l| !l.starts_with("attic")).map(|l| format!("{l}\n")).collect();
    let innocent = whole.replace("unreliable", "reliable");
    for changed in ["", lines[0], &(lines[..4].join("\n") + "\n"), &without_attic, &innocent] {
        place.write("run/sources.csv", changed);
        place.refuses(
            "sources run --fail-on unreliable",
            &["sources.csv", "not what the run wrote"],
        );
        place.refuses("sources run", &["sources.csv"]);
    }
    std::fs::remove_file(place.path("run/sources.csv")).unwrap();
    place.refuses("sources run --fail-on unreliable", &["sources.csv is not there"]);
    place.write("run/sources.csv", &whole);
    place.lapwing("sources run --fail-on unreliable").assert().code(1);
    // What the gate shows besides comes from the report.
    place.write("run/report.json", "{}");
    place.refuses("sources run --fail-on unreliable", &["report.json", "not what the run wrote"]);
}

#[test]
fn a_finished_run_was_trained_again_on_other_data() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out run")).assert().success();
    let before = files(&place, "run");
    place.write("wards.csv", &wards(300, &WARDS, 2));
    let done = place.lapwing("train --resume run").assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("run is finished: nothing to do"), "{said}");
    assert_eq!(files(&place, "run"), before);
    place.refuses("train --resume run --seed 9", &["seed = 0", "now it is 9"]);
    place.lapwing(&format!("{TRAIN} --resume --out run --strength auto")).assert().success();
    assert_eq!(files(&place, "run"), before);
}

#[test]
fn a_finished_run_with_a_list_of_columns_was_taken_for_another() {
    let place = place();
    let train = format!("{TRAIN} --features a,b --out run");
    place.lapwing(&train).assert().success();
    place.lapwing(&format!("{train} --resume")).assert().success();
    let other = train.replace("a,b", "b");
    place.refuses(&format!("{other} --resume"), &["features", "now it is [\"b\"]"]);
}

#[test]
fn a_run_without_checkpoint_went_on_with_other_data() {
    let place = place();
    killed(&place, LONG, "run");
    std::fs::remove_dir_all(place.path("run/checkpoint")).unwrap();
    // The same shape of everything, one other number.
    place.write("wards.csv", &wards(300, &WARDS, 1).replacen("0.", "0.0", 1));
    place.refuses("train --resume run", &["wards.csv", "other data"]);
}

#[test]
fn a_run_was_resumed_with_a_table_of_the_same_name_elsewhere() {
    let place = place();
    killed(&place, LONG, "run");
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    place.write("elsewhere/wards.csv", &wards(300, &WARDS, 2));
    let run = place.path("run");
    let mut child = start(&place, "train -q")
        .current_dir(place.path("elsewhere"))
        .args(["--checkpoint-every", "0", "--resume"])
        .arg(&run)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::fs::remove_file(place.path("run/checkpoint/checkpoint.previous.safetensors")).unwrap();
    // It goes on, with the table it was started with.
    wait_for(&place, "run/checkpoint/checkpoint.previous.safetensors", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let config = place.text("run/config.toml");
    let data = std::path::absolute(place.path("wards.csv")).unwrap();
    assert!(config.contains(&format!("data = {:?}", data.to_str().unwrap())), "{config}");
}

#[test]
fn two_trainings_wrote_into_one_directory() {
    let place = place();
    let mut child = start(&place, &format!("{LONG} --out cc --checkpoint-every 0"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&place, "cc/checkpoint/checkpoint.safetensors", &mut child);
    let busy = ["cc: another training uses this directory", "--out"];
    for words in [&format!("{TRAIN} --out cc --force --seed 2"), "train --resume cc"] {
        let refused = place.lapwing(words).assert().code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(busy.iter().all(|part| said.contains(part)), "{said}");
    }
    let said = place.lapwing(&format!("{TRAIN} --out cc")).assert().code(2);
    assert!(!String::from_utf8_lossy(&said.get_output().stderr).contains("No such file"));
    child.kill().unwrap();
    child.wait().unwrap();
    // The lock ends with its process.
    place.lapwing(&format!("{TRAIN} --out cc --force --seed 2")).assert().success();
    assert!(place.text("cc/config.toml").contains("seed = 2"));
}

#[test]
fn two_trainings_into_one_new_directory_swept_each_others_files() {
    let place = place();
    let words = format!("{TRAIN} --out new");
    let children: Vec<Child> =
        (0..4).map(|_| start(&place, &words).stderr(Stdio::piped()).spawn().unwrap()).collect();
    let mut done = 0;
    for child in children {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        done += u32::from(ended.status.success());
        let refused = said.contains("another training uses") || said.contains("it holds a run");
        assert!(ended.status.success() || refused, "{said}");
    }
    assert_eq!(done, 1);
    place.lapwing("sources new").assert().success();
}

#[test]
fn a_run_that_is_not_there_was_said_to_miss_its_data() {
    let place = place();
    place.refuses("train --resume nonexist", &["nonexist: there is no such run"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refuses("train --resume empty", &["empty: there is no such run"]);
    // With a table it starts.
    place.lapwing(&format!("{TRAIN} --resume empty")).assert().success();
}

#[test]
fn two_damaged_checkpoints_left_no_way_on() {
    let place = place();
    killed(&place, LONG, "run");
    for name in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        place.write(&format!("run/checkpoint/{name}"), "damaged");
    }
    place.refuses(
        "train --resume run",
        &["damaged", "hint: remove run/checkpoint and resume again"],
    );
}

#[test]
fn a_checkpoint_without_end_was_read_to_the_end_of_memory() {
    let place = place();
    killed(&place, LONG, "run");
    let path = place.path("run/checkpoint/checkpoint.safetensors");
    std::fs::File::create(&path).unwrap().set_len(6 << 30).unwrap();
    place.refuses("train --resume run", &["checkpoint.safetensors", "larger than"]);
    #[cfg(unix)]
    {
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        place.refuses("train --resume run", &["checkpoint.safetensors", "found a device"]);
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|made| made.success()) {
            place.refuses("train --resume run", &["checkpoint.safetensors", "found a pipe"]);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_a_run_that_was_no_file_was_read_for_ever() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --out run")).assert().success();
    for (name, words) in [
        ("model.json", "predict run wards.csv"),
        ("model.safetensors", "predict run wards.csv"),
        ("sources.csv", "sources run"),
        ("rows.csv", "rows run"),
        ("report.json", "report run"),
        ("config.toml", "train --resume run"),
        ("run.json", "sources run"),
    ] {
        let (path, aside) = (place.path(&format!("run/{name}")), place.path("aside"));
        std::fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        place.refuses(words, &[name, "found a device"]);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_toml_cannot_hold_left_an_empty_directory() {
    use std::os::unix::ffi::OsStrExt;
    let place = place();
    let name = std::ffi::OsStr::from_bytes(b"w\xff.csv");
    std::fs::rename(place.path("wards.csv"), place.path("").join(name)).unwrap();
    let done =
        place.lapwing("train --target ill --source ward --out run -q").arg(name).assert().code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("UTF-8"), "{said}");
    assert!(!place.path("run").exists());
}

#[test]
fn a_run_was_resumed_with_kernels_that_round_differently() {
    let place = place();
    let words = format!("{LONG} --out run --checkpoint-every 0");
    let mut child = start(&place, &words)
        .env("LAPWING_KERNELS", "portable")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&place, "run/checkpoint/checkpoint.safetensors", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let kernels = place.text("run/run.json");
    if kernels.contains("\"portable on ") {
        place.refuses("train --resume run", &["kernels portable on", "LAPWING_KERNELS"]);
    }
    let done = place.lapwing("sources run").env("LAPWING_KERNELS", "sse9").assert().code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("LAPWING_KERNELS") && said.contains("portable"), "{said}");
}
