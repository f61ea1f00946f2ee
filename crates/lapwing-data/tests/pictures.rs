//! Pictures of a table: how they are held, and what is said when one goes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;

use lapwing_data::{DataError, Dataset, InputKind, Kind, PictureOptions, ReadOptions, Warning};
use lapwing_sample::{InputSpec, View};

/// Twenty pictures of `side` pixels and a table of them, the third of which has no class.
fn photos(side: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("file,class,source\n");
    for at in 0..20_u32 {
        let rgb: Vec<u8> = (0..side * side * 3).map(|i| (i * 7 + at * 13) as u8).collect();
        let png = lapwing_sample::png(side, side, &rgb).unwrap();
        std::fs::write(folder.path().join(format!("{at}.png")), png).unwrap();
        let class = if at == 2 {
            ""
        } else if at % 2 == 0 {
            "even"
        } else {
            "odd"
        };
        writeln!(text, "{at}.png,{class},s{}", at % 3).unwrap();
    }
    std::fs::write(folder.path().join("photos.csv"), text).unwrap();
    folder
}

fn read(folder: &tempfile::TempDir, pictures: PictureOptions) -> Dataset {
    let mut options = ReadOptions::new("class", "source");
    options.types = [("file".to_owned(), Kind::Image)].into();
    options.pictures = pictures;
    Dataset::read(folder.path().join("photos.csv"), &options).unwrap()
}

#[test]
fn a_picture_that_goes_while_it_is_trained_on_is_named_with_its_row() {
    let folder = photos(40);
    let (held, unheld) = (
        read(&folder, PictureOptions::default()),
        read(&folder, PictureOptions { most_held: Some(10_000), ..PictureOptions::default() }),
    );
    let size = |dataset: &Dataset| dataset.table.columns()[0].pictures().unwrap();
    assert_eq!((size(&held), size(&unheld)), ((32, 19 * 3072, true), (32, 19 * 3072, false)));
    let rows: Vec<u32> = (0..19).collect();
    let inputs = [&held, &unheld].map(|dataset| InputKind::Image.fit(dataset, &rows).unwrap());
    let bound = inputs[0].bind(&held.table).unwrap().gather(&rows, View::Plain).unwrap();
    let samples = inputs[1].bind(&unheld.table).unwrap();
    assert_eq!(samples.gather(&rows, View::Plain).unwrap(), bound);
    std::fs::remove_file(folder.path().join("7.png")).unwrap();
    assert!(samples.gather(&[0, 1, 2, 3], View::Plain).is_ok());
    let error = samples.gather(&rows, View::Plain).unwrap_err();
    // The third row of the file was dropped.
    let said = error.to_string();
    assert!(said.contains("photos.csv, row 8") && said.contains("7.png"), "{said}");
    assert!(samples.exhibit(6).is_err() && samples.exhibit(5).is_ok());
}

#[test]
fn a_picture_that_is_replaced_while_it_is_trained_on_is_named_with_its_row() {
    let folder = photos(40);
    let unheld =
        read(&folder, PictureOptions { most_held: Some(10_000), ..PictureOptions::default() });
    let rows: Vec<u32> = (0..19).collect();
    let input = InputKind::Image.fit(&unheld, &rows).unwrap();
    let samples = input.bind(&unheld.table).unwrap();
    // The same picture in other bytes is no other picture.
    let at = |name: &str| folder.path().join(name);
    let again = [std::fs::read(at("8.png")).unwrap(), b"behind its end".to_vec()].concat();
    std::fs::write(at("8.png"), again).unwrap();
    assert!(samples.gather(&rows, View::Plain).is_ok());
    std::fs::copy(at("3.png"), at("7.png")).unwrap();
    let said = samples.gather(&rows, View::Plain).unwrap_err().to_string();
    assert!(said.contains("photos.csv, row 8") && said.contains("7.png"), "{said}");
    assert!(said.contains("replaced"), "{said}");
}

#[test]
fn sources_of_which_no_picture_is_left_are_named() {
    let folder = photos(40);
    for at in (1..20).step_by(3) {
        std::fs::write(folder.path().join(format!("{at}.png")), "gone").unwrap();
    }
    let skip = PictureOptions { skip_unreadable: true, ..PictureOptions::default() };
    let warnings = read(&folder, skip).warnings;
    let said = warnings.iter().find(|told| matches!(told, Warning::PicturesSkipped { .. }));
    let said = said.unwrap().to_string();
    assert!(said.contains(": 7 (the first") && said.contains("left of source \"s1\""), "{said}");
}

#[test]
fn features_that_were_asked_for_are_not_left_out_in_silence() {
    let folder = photos(40);
    let refused = |change: fn(&mut ReadOptions)| {
        let mut options = ReadOptions::new("class", "source");
        options.types = [("file".to_owned(), Kind::Image)].into();
        change(&mut options);
        Dataset::read(folder.path().join("photos.csv"), &options).unwrap_err()
    };
    let both = |options: &mut ReadOptions| {
        options.features = Some(vec!["file".to_owned(), "source".to_owned()]);
    };
    assert!(matches!(refused(both), DataError::FeatureBeside { kind: "pictures", .. }));
    let as_text = |options: &mut ReadOptions| options.text = vec!["file".to_owned()];
    let said = refused(as_text).to_string();
    assert!(said.contains("both image and text"), "{said}");
}

#[test]
fn the_size_is_that_of_the_pictures_unless_it_is_asked_for() {
    let spec = |side: u32, wanted: Option<usize>| {
        let dataset =
            read(&photos(side), PictureOptions { side: wanted, ..PictureOptions::default() });
        InputKind::Image.fit(&dataset, &[0, 1]).unwrap().spec()
    };
    let square = |side| InputSpec::Image { height: side, width: side, channels: 3 };
    assert_eq!(spec(12, None), square(32));
    assert_eq!(spec(63, None), square(32));
    assert_eq!(spec(64, None), square(64));
    assert_eq!(spec(200, None), square(64));
    assert_eq!(spec(200, Some(128)), square(128));
}
