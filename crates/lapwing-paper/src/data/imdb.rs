//! IMDB: reviews of films, good and bad ones, a file for each.

use std::path::{Path, PathBuf};

use lapwing_sample::{InputSpec, Values};

use super::files::DataDir;
use super::sequences::Sequences;
use super::words::{Vocabulary, tokens};
use crate::error::PaperError;

const SET: &str = "IMDB";
const PAGE: &str = "https://ai.stanford.edu/~amaas/data/sentiment/ (aclImdb_v1.tar.gz, unpacked)";
const FOLDERS: &[&str] = &["aclImdb", "imdb/aclImdb", "imdb", "."];
/// Tokens of a review.
const LONGEST: usize = 256;
/// Reviews of each part and kind.
const REVIEWS: usize = 12_500;
/// Longest review read; the longest official one has 14 kB.
const MOST_BYTES: u64 = 1 << 20;

/// Reviews to train on and to test on, and the size of the vocabulary, which is that of the reviews to train on.
pub(crate) fn imdb(data: &DataDir) -> Result<(Sequences, Sequences), PaperError> {
    let root = data.folder(SET, "train/pos", FOLDERS, PAGE)?;
    let part = |name: &str| -> Result<(Vec<Vec<String>>, Vec<u32>), PaperError> {
        let (mut texts, mut labels) = (Vec::new(), Vec::new());
        for (label, kind) in [(0, "neg"), (1, "pos")] {
            let folder = root.join(name).join(kind);
            let files = reviews(&folder)?;
            if data.is_official() && files.len() != REVIEWS {
                let problem = format!("{} reviews, expected {REVIEWS}", files.len());
                return Err(refused(&folder, problem));
            }
            for file in files {
                texts.push(tokens(&read(&file)?));
                labels.push(label);
            }
        }
        Ok((texts, labels))
    };
    let ((train, train_labels), (test, test_labels)) = (part("train")?, part("test")?);
    let vocabulary = Vocabulary::of(train.iter());
    let spec = InputSpec::Tokens { longest: LONGEST, vocabulary: vocabulary.len() };
    let sequences = |texts: Vec<Vec<String>>, labels| Sequences {
        values: Values::Tokens(
            texts.iter().flat_map(|words| vocabulary.encode(words, LONGEST)).collect(),
        ),
        spec,
        labels,
        sources: None,
    };
    Ok((sequences(train, train_labels), sequences(test, test_labels)))
}

/// The reviews of a folder in the order of their names.
fn reviews(folder: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let failed = |error| PaperError::File { path: folder.to_owned(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(refused(folder, "it holds no review (NUMBER_STARS.txt)".to_owned()));
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, PaperError> {
    let bytes = lapwing_store::read(path, MOST_BYTES)?;
    String::from_utf8(bytes).map_err(|_| refused(path, "it is no UTF-8 text".to_owned()))
}

fn refused(path: &Path, problem: String) -> PaperError {
    let file = "aclImdb_v1.tar.gz";
    PaperError::WrongFile { path: path.to_owned(), problem, set: SET, file, page: PAGE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, place: &str, text: &str) {
        let path = dir.join("aclImdb").join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn reviews_are_read_from_their_folders_with_the_words_of_the_training_part() {
        let dir = tempfile::tempdir().unwrap();
        let said = imdb(&DataDir::new(Some(dir.path().to_owned()))).unwrap_err().to_string();
        assert!(said.contains("train/pos") && said.contains("aclImdb_v1"), "{said}");
        write(dir.path(), "train/pos/0_9.txt", "A good film. Good!");
        write(dir.path(), "train/pos/1_9.txt", "good");
        write(dir.path(), "train/neg/0_2.txt", "bad film");
        write(dir.path(), "train/neg/urls.html", "<html>");
        write(dir.path(), "test/pos/0_8.txt", "fine film");
        write(dir.path(), "test/neg/0_1.txt", "bad");
        let data = DataDir::of_other_files(dir.path().to_owned());
        let (train, test) = imdb(&data).unwrap();
        // Pad, unknown, good, film, !, ., a, bad.
        assert_eq!(train.spec, InputSpec::Tokens { longest: 256, vocabulary: 8 });
        assert_eq!((&train.labels[..], &test.labels[..]), (&[0, 1, 1][..], &[0, 1][..]));
        let Values::Tokens(tokens) = &test.values else { panic!() };
        assert_eq!((&tokens[..2], &tokens[256..259]), (&[7, 0][..], &[1, 3, 0][..]));
        let said = imdb(&DataDir::new(Some(dir.path().to_owned()))).unwrap_err().to_string();
        assert!(said.contains("1 reviews, expected 12500") && said.contains("neg"), "{said}");
    }
}
