//! Tables that were read wrongly, without a word or with the wrong one.

use std::fmt::Write as _;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::tables::{Numbers, Place, WARDS, wards};

const TRAIN: &str = "--target ill --source ward --epochs 2 -q";

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

fn trained() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(400, &WARDS, 5));
    place.lapwing(&format!("train wards.csv {TRAIN} --out run")).assert().success();
    place
}

/// Each opening of a pipe took rows from it: predictions were misaligned, with exit code 0.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_by_every_command_that_reads_a_table_more_than_once() {
    let place = trained();
    let table = wards(20_000, &WARDS, 6);
    for words in [
        "predict run /dev/stdin",
        "evaluate run /dev/stdin",
        "train /dev/stdin --target ill --source ward --out other",
        "train wards.csv --test /dev/stdin --target ill --source ward --out other",
        "compare /dev/stdin --target ill --source ward",
        "corrupt /dev/stdin --target ill --source ward --noise random-label --sources north",
        "replay /dev/stdin --step a --source ward --loss b",
    ] {
        let refused = place.lapwing(words).write_stdin(table.clone()).assert().code(2);
        let message = stderr(&refused);
        assert!(message.contains("/dev/stdin is a pipe"), "{words}: {message}");
        assert!(message.contains("save it to a file first"), "{words}: {message}");
        assert!(refused.get_output().stdout.is_empty());
    }
    // A log may come through a pipe by its proper name.
    let log = "step,source,loss\n0,a,1\n0,b,2\n";
    let done = place.lapwing("replay -").write_stdin(log).assert().success();
    assert_eq!(String::from_utf8_lossy(&done.get_output().stdout).lines().count(), 3);
}

#[test]
fn one_stray_text_does_not_turn_the_numeric_columns_into_identifiers() {
    let place = Place::new();
    let table = wards(400, &WARDS, 5);
    let mut lines: Vec<&str> = table.lines().collect();
    let stray = lines[200].split_once(',').map(|(_, rest)| format!("oops,{rest}")).unwrap();
    lines[200] = &stray;
    place.write("stray.csv", &(lines.join("\n") + "\n"));
    place.refuses(
        &format!("train stray.csv {TRAIN} --out run"),
        &["stray.csv, line 201, column \"a\"", "\"oops\"", "399 of its 400", "--types", "--ignore"],
    );
    place
        .lapwing(&format!("train stray.csv {TRAIN} --types a=categorical --out run"))
        .assert()
        .success();
}

#[test]
fn a_header_repeated_by_joining_files_is_no_third_class_and_no_source() {
    let place = Place::new();
    place.write("joined.csv", &format!("{}{}", wards(300, &WARDS, 1), wards(300, &WARDS, 2)));
    for words in [
        format!("train joined.csv {TRAIN} --out run"),
        "corrupt joined.csv --target ill --source ward --noise random-label --sources north".into(),
    ] {
        place.refuses(&words, &["joined.csv, line 302", "the header stands here again"]);
    }
}

#[test]
fn decimal_commas_are_numbers() {
    let place = Place::new();
    let table = wards(400, &WARDS, 5);
    let table: String =
        table.lines().map(|line| line.replace(',', ";").replace('.', ",") + "\r\n").collect();
    place.write("comma.csv", &format!("\u{feff}{table}"));
    let done = place
        .lapwing("train comma.csv --target ill --source ward --epochs 2 --out run")
        .assert()
        .success();
    let said = stderr(&done);
    let numeric = said.lines().filter(|line| line.contains("numeric") && line.contains("feature"));
    assert_eq!(numeric.count(), 2, "{said}");
    place.write("point.csv", &wards(400, &WARDS, 5));
    place.lapwing(&format!("train point.csv {TRAIN} --out plain")).assert().success();
    assert_eq!(place.read("run/model.safetensors"), place.read("plain/model.safetensors"));
}

/// As pandas writes it: `True` and `3.0` in CSV, a boolean and a double in Parquet.
#[test]
fn the_same_rows_as_csv_and_as_parquet_are_evaluated_alike() {
    let place = Place::new();
    let mut numbers = Numbers::new(3);
    let (mut flags, mut codes, mut names, mut text) = (vec![], vec![], vec![], String::new());
    for row in 0..600 {
        let (flag, code) = (numbers.next() > 0.5, f64::from((numbers.next() * 4.0) as u32));
        let ill = flag != (code == 3.0);
        let python = |truth: bool| if truth { "True" } else { "False" };
        writeln!(text, "{},{code:.1},w{},{}", python(flag), row % 3, python(ill)).unwrap();
        flags.push((flag, ill));
        codes.push(code);
        names.push(format!("w{}", row % 3));
    }
    place.write("t.csv", &format!("flag,code_id,ward,ill\n{text}"));
    let truth = |of: fn(&(bool, bool)) -> bool| -> ArrayRef {
        Arc::new(flags.iter().map(|pair| Some(of(pair))).collect::<BooleanArray>())
    };
    let batch = RecordBatch::try_from_iter([
        ("flag", truth(|pair| pair.0)),
        ("code_id", Arc::new(Float64Array::from(codes)) as ArrayRef),
        ("ward", Arc::new(StringArray::from(names)) as ArrayRef),
        ("ill", truth(|pair| pair.1)),
    ])
    .unwrap();
    let file = File::create(place.path("t.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    place
        .lapwing("train t.csv --target ill --source ward --epochs 40 -q --out run")
        .assert()
        .success();
    let evaluated = |table: &str| {
        let done = place.lapwing(&format!("evaluate run {table} --json")).assert().success();
        assert!(!stderr(&done).contains("not in training"), "{}", stderr(&done));
        String::from_utf8_lossy(&done.get_output().stdout).into_owned()
    };
    assert_eq!(evaluated("t.csv"), evaluated("t.parquet"));
    let done = place.lapwing("predict run t.parquet").assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(out.starts_with("row,prediction,p_False,p_True\n"), "{}", &out[..60]);
}

#[test]
fn an_empty_line_in_a_file_of_one_column_has_a_prediction() {
    let place = Place::new();
    let mut numbers = Numbers::new(4);
    let table = (0..300).fold("x,site,y\n".to_owned(), |text, row| {
        let x = numbers.next() * 6.0 - 3.0;
        text + &format!("{x:.3},s{},{}\n", row % 3, u8::from(x > 0.0))
    });
    place.write("t.csv", &table);
    place
        .lapwing("train t.csv --target y --source site --epochs 3 -q --out one")
        .assert()
        .success();
    place.write("blank.csv", "x\n-2\n\n2\n-1.5\n");
    let done = place.lapwing("predict one blank.csv").assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let rows: Vec<&str> = out.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(rows, ["1", "2", "3", "4"]);
}

#[test]
fn a_target_that_cannot_be_used_is_named_by_file_line_column_and_value() {
    let place = Place::new();
    let table = (0..100).fold("x,site,y\n".to_owned(), |text, row| {
        let y = if row == 7 { "-1e200".to_owned() } else { format!("{}.5", row * 7 % 31) };
        text + &format!("{}.25,s{},{y}\n", row * 11 % 17, row % 3)
    });
    place.write("large.csv", &table);
    place.refuses(
        "train large.csv --target y --source site --out run",
        &["large.csv, line 9, column \"y\"", "-1e200", "1e100"],
    );
}

#[test]
fn a_workbook_and_a_damaged_archive_are_called_what_they_are() {
    let place = Place::new();
    std::fs::write(place.path("t.xlsx"), b"PK\x03\x04\x14\0\x06\0\x08\0").unwrap();
    place.refuses(
        &format!("train t.xlsx {TRAIN} --out run"),
        &["an Excel workbook: export it as CSV"],
    );
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, wards(400, &WARDS, 5).as_bytes()).unwrap();
    let mut packed = encoder.finish().unwrap();
    packed.extend(b"tail");
    std::fs::write(place.path("t.csv.gz"), &packed).unwrap();
    place.refuses(
        &format!("train t.csv.gz {TRAIN} --out run"),
        &["not valid gzip", "behind the end"],
    );
}

#[test]
fn levels_that_training_never_saw_are_no_secret() {
    let place = Place::new();
    let table = wards(400, &WARDS, 5).replacen("b,", "colour,", 1);
    let coloured = |names: [&str; 2]| {
        table.lines().enumerate().fold(String::new(), |text, (at, line)| {
            let mut fields: Vec<&str> = line.split(',').collect();
            if at > 0 {
                fields[1] = names[at % 2];
            }
            text + &fields.join(",") + "\n"
        })
    };
    place.write("t.csv", &coloured(["red", "blue"]));
    place.write("n.csv", &coloured(["Red", "Blue"]));
    place.lapwing(&format!("train t.csv {TRAIN} --out run")).assert().success();
    let expected = "column \"colour\": 400 of 400 values were not in training";
    for words in ["predict run n.csv", "evaluate run n.csv", "evaluate run n.csv -q --json"] {
        let done = place.lapwing(words).assert().success();
        assert!(stderr(&done).contains(expected), "{words}: {}", stderr(&done));
    }
    let done = place.lapwing("evaluate run n.csv --json").assert().success();
    let first = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(first.lines().next().unwrap().contains("\"warnings\""), "{first}");
    let words = format!("train t.csv --test n.csv {TRAIN} --out tested");
    let done = place.lapwing(&words).assert().success();
    assert!(stderr(&done).contains(expected), "{}", stderr(&done));
    assert!(!stderr(&place.lapwing("predict run t.csv").assert().success()).contains("training"));
}

#[test]
fn columns_that_are_ignored_are_named_with_the_whole_reason() {
    let place = Place::new();
    let table = (0..100).fold("x,huge,hot,site,y\n".to_owned(), |text, row| {
        let huge = 576_460_752_303_423_488_u64 + row % 3;
        text + &format!("{}.5,{huge},inf,s{},{}\n", row * 7 % 31, row % 3, row / 2 % 2)
    });
    place.write("t.csv", &table);
    let done = place
        .lapwing("train t.csv --target y --source site --epochs 1 --out run")
        .assert()
        .success();
    let said = stderr(&done);
    for reason in [
        "ignored: whole numbers beyond 2^53 that differ in lost digits",
        "ignored: no finite values",
    ] {
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_parquet_file_with_a_compression_that_is_not_read_is_refused_by_its_name() {
    let place = Place::new();
    let column: ArrayRef = Arc::new(Float64Array::from(vec![0.5; 8]));
    let columns = [("squeezed", column.clone()), ("plain", column)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // In the footer, Thrift's compact protocol: the path of the column, then its codec, then its number of values.
    let path = b"\x19\x18\x08squeezed\x15";
    let codec = bytes.windows(path.len()).rposition(|window| window == path).unwrap() + path.len();
    assert_eq!(bytes[codec..codec + 2], [0, 0x16], "no compression");
    for (zigzag, name) in [(8, "BROTLI"), (6, "LZO")] {
        bytes[codec] = zigzag;
        std::fs::write(place.path("t.parquet"), &bytes).unwrap();
        let words = "train t.parquet --target squeezed --source plain --out run";
        place.refuses(words, &["t.parquet is compressed with", name, "write it with zstd"]);
    }
}

#[test]
fn ignored_columns_were_missing_in_json() {
    let place = Place::new();
    let text = wards(200, &["a", "b"], 1).replace("\n", ",7\n").replacen(",7\n", ",always\n", 1);
    place.write("wards.csv", &text);
    let words = "train wards.csv --target ill --source ward --epochs 1 --out run -q --json";
    let done = place.lapwing(words).assert().success();
    let printed: serde_json::Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(printed["ignored"][0]["column"], "always", "{printed}");
    assert_eq!(printed["ignored"][0]["reason"], "constant", "{printed}");
    assert_eq!(printed["ignored"].as_array().unwrap().len(), 1);
}
