//! GoEmotions: comments with the emotions that raters saw in them, one row for each rater.

use lapwing_sample::{Draws, InputSpec, Values};

use super::files::{DataDir, Found, Official, Size};
use super::sequences::Sequences;
use super::shuffled;
use super::words::{Vocabulary, tokens};
use crate::error::PaperError;

const SET: &str = "GoEmotions";
const PAGE: &str = "https://storage.googleapis.com/gresearch/goemotions/data/full_dataset/ (goemotions_1.csv to goemotions_3.csv)";
const FOLDERS: &[&str] = &["goemotions/full_dataset", "goemotions", "full_dataset", "."];

const fn part(file: &'static str) -> Official {
    let bytes = Size::AtMost(64 << 20);
    Official { set: SET, file, folders: FOLDERS, page: PAGE, bytes, sha256: None }
}

static PARTS: [Official; 3] =
    [part("goemotions_1.csv"), part("goemotions_2.csv"), part("goemotions_3.csv")];

/// The classes, by the columns of the files.
const EMOTIONS: [&str; 28] = [
    "admiration",
    "amusement",
    "anger",
    "annoyance",
    "approval",
    "caring",
    "confusion",
    "curiosity",
    "desire",
    "disappointment",
    "disapproval",
    "disgust",
    "embarrassment",
    "excitement",
    "fear",
    "gratitude",
    "grief",
    "joy",
    "love",
    "nervousness",
    "optimism",
    "pride",
    "realization",
    "relief",
    "remorse",
    "sadness",
    "surprise",
    "neutral",
];
/// Tokens of a comment.
const LONGEST: usize = 128;
/// Rows with one emotion, and raters, in the official files.
const ROWS: usize = 171_820;
const RATERS: usize = 82;
/// All runs share one split.
const SPLIT_SEED: u64 = 42;

/// Comments to train on and to test on: four fifths and one fifth of the rows with one emotion.
pub(crate) fn goemotions(data: &DataDir) -> Result<(Sequences, Sequences), PaperError> {
    let (mut texts, mut labels, mut raters) = (Vec::new(), Vec::new(), Vec::new());
    // Of an excerpt the first file will do.
    let wanted =
        |part: &&Official| data.is_official() || std::ptr::eq(*part, &PARTS[0]) || data.has(part);
    for official in PARTS.iter().filter(wanted) {
        let found = data.read(official)?;
        rows(&found, &mut texts, &mut labels, &mut raters)?;
        if data.is_official() && std::ptr::eq(official, &PARTS[2]) {
            let sources = raters.iter().max().map_or(0, |&most| most as usize + 1);
            if (labels.len(), sources) != (ROWS, RATERS) {
                let problem = format!(
                    "the three files have {} rows with one emotion by {sources} raters, expected {ROWS} by {RATERS}",
                    labels.len()
                );
                return Err(found.refused(problem));
            }
        }
    }
    // Of all rows, those to test on included, as the authors have it.
    let vocabulary = Vocabulary::of(texts.iter());
    let spec = InputSpec::Tokens { longest: LONGEST, vocabulary: vocabulary.len() };
    let order = shuffled(labels.len(), &mut Draws::free(SPLIT_SEED, 0));
    let (train, test) = order.split_at(labels.len() * 4 / 5);
    let sequences = |rows: &[u32]| {
        let of = |values: &[u32]| rows.iter().map(|&row| values[row as usize]).collect();
        let words = rows.iter().map(|&row| &texts[row as usize]);
        Sequences {
            values: Values::Tokens(
                words.flat_map(|words| vocabulary.encode(words, LONGEST)).collect(),
            ),
            spec,
            labels: of(&labels),
            sources: Some(of(&raters)),
        }
    };
    Ok((sequences(train), sequences(test)))
}

/// Adds the rows of a file that have exactly one emotion.
fn rows(
    found: &Found,
    texts: &mut Vec<Vec<String>>,
    labels: &mut Vec<u32>,
    raters: &mut Vec<u32>,
) -> Result<(), PaperError> {
    let mut reader = csv::Reader::from_reader(&found.bytes[..]);
    let header = reader.headers().map_err(|error| found.refused(error.to_string()))?.clone();
    let column = |name: &str| {
        let place = header.iter().position(|column| column == name);
        place.ok_or_else(|| found.refused(format!("it has no column {name}")))
    };
    let (text, rater) = (column("text")?, column("rater_id")?);
    let emotions = EMOTIONS.map(column).into_iter().collect::<Result<Vec<usize>, _>>()?;
    for record in reader.records() {
        let record = record.map_err(|error| found.refused(error.to_string()))?;
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let mut set =
            (0..).zip(&emotions).filter(|&(_, &at)| cell(at) == "1").map(|(class, _)| class);
        let (Some(class), None) = (set.next(), set.next()) else { continue };
        let line = record.position().map_or(0, csv::Position::line);
        let who = cell(rater);
        let who: u32 = who.parse().ok().filter(|&who| who < 1 << 16).ok_or_else(|| {
            found.refused(format!("line {line}: {who:?} is no rater_id, a whole number from 0"))
        })?;
        texts.push(tokens(cell(text)));
        labels.push(class);
        raters.push(who);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(rows: &[(&str, &str, &[&str])]) -> String {
        let mut text = format!("text,id,rater_id,{}\n", EMOTIONS.join(","));
        for (words, rater, set) in rows {
            let cells = EMOTIONS.map(|emotion| if set.contains(&emotion) { "1" } else { "0" });
            text += &format!("\"{words}\",x,{rater},{}\n", cells.join(","));
        }
        text
    }

    #[test]
    fn rows_with_one_emotion_keep_their_rater() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("goemotions");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |part: usize, text: String| {
            std::fs::write(folder.join(format!("goemotions_{part}.csv")), text).unwrap();
        };
        let many: Vec<(&str, &str, &[&str])> = vec![("so sad", "3", &["sadness"]); 8];
        write(1, csv(&many));
        write(2, csv(&[("both", "1", &["joy", "love"]), ("none", "1", &[])]));
        let data = DataDir::of_other_files(dir.path().to_owned());
        let official = DataDir::new(Some(dir.path().to_owned()));
        assert!(goemotions(&official).unwrap_err().to_string().contains("goemotions_3.csv"));
        let (train, test) = goemotions(&data).unwrap();
        assert_eq!((train.len(), test.len()), (6, 2), "an excerpt may lack files");
        write(3, csv(&[("What, joy", "7", &["joy"]), ("thanks", "0", &["gratitude"])]));
        let (train, test) = goemotions(&data).unwrap();
        assert_eq!((train.len(), test.len()), (8, 2));
        assert_eq!(train.spec, InputSpec::Tokens { longest: 128, vocabulary: 8 });
        let all = |a: &Sequences, b: &Sequences| {
            let pair = |s: &Sequences| {
                let sources = s.sources.clone().unwrap();
                s.labels.iter().copied().zip(sources).collect::<Vec<_>>()
            };
            let mut all = [pair(a), pair(b)].concat();
            all.sort_unstable();
            all
        };
        let mut expected = vec![(25, 3); 8];
        expected.extend([(17, 7), (15, 0)]);
        expected.sort_unstable();
        assert_eq!(all(&train, &test), expected);
        let said = goemotions(&official).unwrap_err().to_string();
        assert!(said.contains("171820 by 82") && said.contains("10 rows"), "{said}");
        write(3, csv(&[("joy", "seven", &["joy"])]));
        let said = goemotions(&data).unwrap_err().to_string();
        assert!(said.contains("line 2") && said.contains("seven"), "{said}");
        std::fs::remove_file(folder.join("goemotions_1.csv")).unwrap();
        assert!(goemotions(&data).unwrap_err().to_string().contains("goemotions_1.csv"));
    }
}
