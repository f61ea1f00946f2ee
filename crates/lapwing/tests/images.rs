//! `train --image`: pictures in files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use tables::{Numbers, Place, killed};

const TRAIN: &str = "train photos.csv --target stripes --source camera --image file --epochs 12 -q";

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
    assert!(said.contains("network conv3net"), "{said}");
    let sources = place.text("run/sources.csv");
    let verdict = |camera: &str| {
        let line = sources.lines().find(|line| line.starts_with(&format!("{camera},"))).unwrap();
        line.split(',').any(|cell| cell == "unreliable")
    };
    assert!(verdict("e") && !["a", "b", "c", "d"].into_iter().any(verdict), "{sources}");
    assert!(place.text("run/report.html").contains("data:image/png;base64,"));
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
    std::fs::remove_file(place.path("photos/b3-5.png")).unwrap();
    std::fs::create_dir(place.path("photos/b3-5.png")).unwrap();
    refused("not a file");

    place.refuses(&TRAIN.replace("--image file", "--image fil"), &["no column \"fil\""]);
    place.refuses(&TRAIN.replace("--image file", "--image stripes"), &["stripes"]);
    place.refuses(&format!("{TRAIN} --types temperature=image"), &["both columns of pictures"]);
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
    place.write("other.csv", "file,camera\nphotos/a1-1.png,a\n");
    place.lapwing("predict run other.csv").assert().success();
}
