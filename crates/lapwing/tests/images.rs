//! `train --image`: pictures in files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use tables::{Numbers, Place, killed, start};

const TRAIN: &str =
    "train photos.csv --target stripes --source camera --image file --image-size 16 --epochs 12 -q";

/// A picture of 12 × 12 with stripes that lie or stand, in any two colours, and the word for them.
fn stripes(numbers: &mut Numbers) -> (Vec<u8>, &'static str) {
    let lying = numbers.next() < 0.5;
    let start = (4.0 * numbers.next()) as usize;
    let mut colour = || [0; 3].map(|_: u8| (255.0 * numbers.next()) as u8);
    let (dark, light) = (colour().map(|c| c / 2), colour().map(|c| 128 + c / 2));
    let pixel = |row: usize, column: usize| {
        let across = if lying { row } else { column };
        if (across + start) % 4 < 2 { dark } else { light }
    };
    let places = (0..12).flat_map(|row| (0..12).map(move |column| (row, column)));
    let rgb: Vec<u8> = places.flat_map(|(row, column)| pixel(row, column)).collect();
    let word = if lying { "lying" } else { "standing" };
    (lapwing_sample::png(12, 12, &rgb).unwrap(), word)
}

/// Photos of cameras `a` to `e`, the last of which has any word at all; and photos with right words.
fn photos() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("photos")).unwrap();
    let mut numbers = Numbers::new(1);
    for (table, cameras) in [("photos.csv", "abcde"), ("checked.csv", "a")] {
        let mut text = String::from("file,temperature,camera,stripes\n");
        for camera in cameras.chars() {
            for at in 0..60 {
                let (png, mut word) = stripes(&mut numbers);
                let file = format!("photos/{camera}{at}-{}.png", cameras.len());
                std::fs::write(place.path(&file), png).unwrap();
                if camera == 'e' {
                    word = if numbers.next() < 0.5 { "lying" } else { "standing" };
                }
                text.push_str(&format!("{file},{},{camera},{word}\n", at % 7));
            }
        }
        place.write(table, &text);
    }
    place
}

#[test]
fn pictures_are_learnt_from_judged_shown_and_predicted() {
    let place = photos();
    let output =
        place.lapwing(&format!("{} --out run", TRAIN.replace(" -q", ""))).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("pictures are learnt from alone"), "{said}");
    assert!(said.contains("network small-cnn"), "{said}");
    assert!(said.contains("pictures of 16 × 16 pixels, 1 MB in memory"), "{said}");
    let sources = place.text("run/sources.csv");
    let verdict = |camera: &str| {
        let line = sources.lines().find(|line| line.starts_with(&format!("{camera},"))).unwrap();
        line.split(',').any(|cell| cell == "unreliable")
    };
    assert!(verdict("e") && !["a", "b", "c", "d"].into_iter().any(verdict), "{sources}");
    assert!(place.text("run/report.html").contains("data:image/png;base64,"));
    let rows = place.text("run/rows.csv");
    assert!(rows.lines().next().unwrap().ends_with(",file"), "{rows}");
    assert!(rows.lines().skip(1).all(|line| line.ends_with("-5.png")), "{rows}");
    let output = place.lapwing("rows run --top 3 --source e").assert().success();
    let shown = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(shown.lines().nth(1).unwrap().contains("photos/e"), "{shown}");
    let config = place.text("run/config.toml");
    assert!(config.contains("file = \"image\""), "{config}");

    let output = place.lapwing("predict run checked.csv").assert().success();
    let predicted = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let truth = place.text("checked.csv");
    let right = truth.lines().skip(1).zip(predicted.lines().skip(1)).filter(|(row, predicted)| {
        let word = row.rsplit(',').next().unwrap();
        predicted.split(',').any(|cell| cell == word)
    });
    assert!(right.count() >= 55, "{predicted}");
    place.lapwing("evaluate run checked.csv --by camera").assert().success();
}

#[test]
fn a_killed_training_on_pictures_goes_on_to_the_same_bytes() {
    let place = photos();
    let train = format!("{TRAIN} --no-folds");
    place.lapwing(&format!("{train} --out whole --threads 1")).assert().success();
    killed(&place, &train, "cut");
    place.lapwing("train --resume cut -q --threads 2").assert().success();
    for name in ["model.safetensors", "sources.csv", "report.html"] {
        assert!(
            place.read(&format!("whole/{name}")) == place.read(&format!("cut/{name}")),
            "{name}"
        );
    }
}

/// A small PNG that says of itself that it has so many pixels a side.
fn forged(side: u32) -> Vec<u8> {
    let mut png = lapwing_sample::png(1, 1, &[0; 3]).unwrap();
    // Behind eight bytes of signature and four of length: the name, width and height, five bytes more, and their checksum.
    png[16..20].copy_from_slice(&side.to_be_bytes());
    png[20..24].copy_from_slice(&side.to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&png[12..29]);
    png[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    png
}

#[test]
fn rrl_learns_from_pictures_alone_with_its_own_network_and_goes_on_to_the_same_bytes() {
    let place = photos();
    let train = TRAIN.replace("--epochs 12", "--epochs 2 --no-folds --hidden 2 --clean-from 1");
    let whole = format!("{train} --method rrl-lap");
    killed(&place, &whole, "cut");
    place.lapwing("train --resume cut -q --threads 2").assert().success();
    for method in ["rrl", "rrl-lap"] {
        let train = format!("{train} --method {method}");
        place.lapwing(&format!("{train} --out {method} --threads 1")).assert().success();
        let config = place.text(&format!("{method}/config.toml"));
        for line in ["model = \"preact-resnet18\"", "clean-from = 1.0", "neighbours = 200.0"] {
            assert!(config.contains(line), "{config}");
        }
        place.refuses(
            &format!("{train} --model small-cnn --out other").replace("--hidden 2 ", ""),
            &[method, "needs the network preact-resnet18", "small-cnn"],
        );
        let table = "train photos.csv --target stripes --source camera --ignore file --epochs 1";
        place.refuses(
            &format!("{table} --method {method} --out table"),
            &[method, "learns from pictures"],
        );
    }
    for name in ["model.safetensors", "sources.csv"] {
        assert!(place.read(&format!("rrl-lap/{name}")) == place.read(&format!("cut/{name}")));
    }
}

#[test]
fn a_picture_that_cannot_be_had_is_named_with_its_line() {
    let place = photos();
    let whole = place.read("photos/b3-5.png");
    let train = format!("{TRAIN} --out run");
    let name = &["photos.csv, line 65", "file", "photos/b3-5.png"];
    let refused = |what: &str| {
        place.refuses(&train, &[name, &[what][..]].concat());
    };
    std::fs::remove_file(place.path("photos/b3-5.png")).unwrap();
    refused("cannot read");
    place.write("photos/b3-5.png", "<html>gone</html>");
    refused("not a PNG, JPEG, GIF or WebP");
    std::fs::write(place.path("photos/b3-5.png"), &whole[..whole.len() / 2]).unwrap();
    refused("damaged");
    // A JPEG that ends in its first lines, and a picture of 14 GB whose file has a few bytes.
    std::fs::write(place.path("photos/b3-5.png"), b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01").unwrap();
    refused("damaged");
    std::fs::write(place.path("photos/b3-5.png"), forged(60_000)).unwrap();
    refused("60000 × 60000 pixels; at most 16384 × 16384");
    std::fs::remove_file(place.path("photos/b3-5.png")).unwrap();
    std::fs::create_dir(place.path("photos/b3-5.png")).unwrap();
    refused("not a file");

    place.refuses(&TRAIN.replace("--image file", "--image fil"), &["no column \"fil\""]);
    place.refuses(&TRAIN.replace("--image file", "--image stripes"), &["stripes"]);
    place.refuses(&format!("{TRAIN} --types temperature=image"), &["both columns of pictures"]);
    place.refuses(&format!("{TRAIN} --text file"), &["\"file\" cannot be both image and text"]);
    place.refuses(&format!("{TRAIN} --text temperature"), &["pictures and texts cannot be learnt"]);
    place.refuses(&format!("{TRAIN} --series temp*"), &["pictures and series cannot be"]);
    let table = place.text("photos.csv").replace("photos/c9-5.png", "");
    place.write("photos.csv", &table.replace("photos/b3-5.png", "photos/b4-5.png"));
    place.refuses(&train, &["line 131", "there is no path"]);
}

#[test]
fn a_picture_that_is_gone_when_predicting_leaves_no_file() {
    let place = photos();
    place
        .lapwing(&format!("{TRAIN} --no-folds --epochs 1 --out run").replace("--epochs 12 ", ""))
        .assert()
        .success();
    std::fs::remove_file(place.path("photos/a7-1.png")).unwrap();
    place.refuses(
        "predict run checked.csv --out predictions.csv",
        &["checked.csv, line 9", "a7-1.png"],
    );
    place.refuses("evaluate run checked.csv", &["checked.csv, line 9", "a7-1.png"]);
    // One that was replaced since is another picture, if it is one.
    place.write("photos/a7-1.png", "<html>gone</html>");
    place.refuses(
        "predict run checked.csv --out predictions.csv",
        &["checked.csv, line 9", "a7-1.png", "not a PNG, JPEG, GIF or WebP"],
    );
    std::fs::write(place.path("photos/a7-1.png"), place.read("photos/a8-1.png")).unwrap();
    let done = place.lapwing("predict run checked.csv --no-probabilities").assert().success();
    let said = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let of = |row: usize| said.lines().nth(row).unwrap().split_once(',').unwrap().1.to_owned();
    assert_eq!(of(8), of(9), "{said}");
    place.write("other.csv", "file,camera\nphotos/a1-1.png,a\n");
    place.lapwing("predict run other.csv").assert().success();
}

/// Trains for two epochs, without judging labels.
fn short(flags: &str) -> String {
    format!("{TRAIN} --no-folds {flags}").replace("--epochs 12", "--epochs 2")
}

#[test]
fn pictures_that_are_read_batch_by_batch_give_the_same_bytes_as_those_in_memory() {
    let place = photos();
    place.lapwing(&short("--augment --out held")).assert().success();
    let loud = short("--augment --out read --image-memory 0").replace(" -q", "");
    let output = place.lapwing(&loud).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("batch by batch"), "{said}");
    for name in ["model.safetensors", "model.json", "sources.csv"] {
        assert!(
            place.read(&format!("held/{name}")) == place.read(&format!("read/{name}")),
            "{name}"
        );
    }
    place.lapwing(&short("--out plain")).assert().success();
    assert!(place.read("plain/model.safetensors") != place.read("held/model.safetensors"));
    assert!(place.text("held/config.toml").contains("augment = [\"flip\", \"crop\"]"));
    place.refuses(&short("--augment turn --out none"), &["turn", "flip or crop"]);
}

#[test]
fn a_killed_training_on_changed_pictures_goes_on_to_the_same_bytes() {
    let place = photos();
    let train = format!("{TRAIN} --no-folds --augment flip");
    place.lapwing(&format!("{train} --out whole")).assert().success();
    killed(&place, &train, "cut");
    place.lapwing("train --resume cut -q").assert().success();
    assert!(place.read("whole/model.safetensors") == place.read("cut/model.safetensors"));
}

#[test]
fn a_picture_that_was_replaced_or_has_gone_since_a_run_began_is_not_trained_on() {
    let place = photos();
    let train = format!("{TRAIN} --no-folds --image-memory 0");
    killed(&place, &train, "cut");
    // Several, as one of them may be a row that is tested on.
    let names: Vec<String> = (0..10).map(|at| format!("photos/b{at}-5.png")).collect();
    let whole: Vec<Vec<u8>> = names.iter().map(|name| place.read(name)).collect();
    let (other, write) = (place.read("photos/c1-5.png"), |name: &String, bytes: &[u8]| {
        std::fs::write(place.path(name), bytes).unwrap();
    });
    names.iter().for_each(|name| write(name, &other));
    place.refuses("train --resume cut -q", &[]);
    names.iter().zip(&whole).for_each(|(name, bytes)| write(name, bytes));
    std::fs::remove_file(place.path("photos/b3-5.png")).unwrap();
    place.refuses("train --resume cut -q", &["photos.csv, line 65", "photos/b3-5.png"]);
    write(&names[3], &whole[3]);
    place.lapwing("train --resume cut -q").assert().success();
}

#[test]
fn a_picture_that_vanishes_in_the_middle_of_training_is_named_and_leaves_no_model() {
    let place = photos();
    let words = format!("{TRAIN} --no-folds --image-memory 0 --out run --checkpoint-every 0")
        .replace("--epochs 12", "--epochs 1000 --patience 1000");
    let mut child = start(&place, &words).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !place.path("run/checkpoint/checkpoint.safetensors").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its first checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    std::fs::remove_dir_all(place.path("photos")).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("photos.csv, row") && said.contains("cannot read photos/"), "{said}");
    assert!(!place.path("run/model.json").exists() && !place.path("run/report.html").exists());
}

#[test]
fn rows_with_bad_pictures_are_left_out_counted_and_reported_where_asked() {
    let place = photos();
    place.write("photos/b3-5.png", "<html>gone</html>");
    std::fs::remove_file(place.path("photos/c1-5.png")).unwrap();
    let loud = short("--on-bad-row skip --out run").replace(" -q", "");
    let output = place.lapwing(&loud).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("2 rows dropped: 2 with a picture that cannot be read"), "{said}");
    assert!(said.contains("line 65") && said.contains("b3-5.png is not a PNG"), "{said}");
    assert!(place.text("run/report.html").contains("b3-5.png"));
    let hint = "--on-bad-row skip leaves such rows out";
    place.refuses(&short("--on-bad-row fail --out other"), &["photos.csv, line 65", hint]);
    let files = "file,camera,stripes\nnone.png,a,lying\nnone.png,b,standing\n";
    place.write("none.csv", files);
    let none = short("--on-bad-row skip --out other").replace("photos.csv", "none.csv");
    place.refuses(&none, &["every row was dropped", "cannot be read"]);
}

#[test]
fn pictures_have_the_size_that_is_asked_for() {
    let place = photos();
    let train = short("--out run").replace("--image-size 16", "--image-size 48").replace(" -q", "");
    let output = place.lapwing(&train).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("pictures of 48 × 48 pixels"), "{said}");
    place.lapwing("predict run checked.csv").assert().success();
    let tiny = short("--out none").replace("--image-size 16", "--image-size 4");
    place.refuses(&tiny, &["4 × 4", "8 to 512"]);
}

#[test]
fn a_folder_of_class_folders_with_a_list_of_sources_is_a_table() {
    let place = Place::new();
    let mut numbers = Numbers::new(3);
    let mut list = String::from("file,source\n");
    for (folder, sources) in [("photos", "abcd"), ("new", "a")] {
        for word in ["lying", "standing"] {
            std::fs::create_dir_all(place.path(&format!("{folder}/{word}"))).unwrap();
        }
        for source in sources.chars() {
            for at in 0..50 {
                let (png, mut word) = stripes(&mut numbers);
                if source == 'd' {
                    word = if numbers.next() < 0.5 { "lying" } else { "standing" };
                }
                let file = format!("{word}/{source}{at}.png");
                std::fs::write(place.path(&format!("{folder}/{file}")), png).unwrap();
                if folder == "photos" {
                    list.push_str(&format!("{file},{source}\n"));
                }
            }
        }
    }
    place.refuses(
        "train photos --out run -q",
        &["photos", "no column \"source\"", "hint: a sources.csv"],
    );
    place.write("photos/sources.csv", &list);
    place
        .lapwing("train photos --out run --epochs 12 --image-size 16 --no-folds -q")
        .assert()
        .success();
    let config = place.text("run/config.toml");
    assert!(
        config.contains("target = \"class\"") && config.contains("file = \"image\""),
        "{config}"
    );
    assert_eq!(place.text("run/sources.csv").lines().count(), 5);
    let output = place.lapwing("evaluate run new --json").assert().success();
    let found: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert!(found.to_string().contains("accuracy"), "{found}");
    let output = place.lapwing("predict run new").assert().success();
    let predicted = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert_eq!(predicted.lines().count(), 51);
    assert!(predicted.starts_with("row,file,prediction,p_"), "{predicted}");
    assert!(predicted.lines().nth(1).unwrap().starts_with("1,lying/"), "{predicted}");
    let lying = std::fs::read_dir(place.path("new/lying")).unwrap().count();
    let right = predicted.lines().skip(1).enumerate().filter(|(row, line)| {
        line.split(',').nth(2) == Some(if *row < lying { "lying" } else { "standing" })
    });
    assert!(right.count() >= 45, "{predicted}");
    place.refuses("train photos/lying --out none", &["source"]);
}
