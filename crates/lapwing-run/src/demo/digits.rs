//! Handwritten digits, dealt out to ten hospitals that do not exist.
//!
//! The digits are those of the UCI repository (`digits/README.md`). Most hospitals spoil their rows in a way that is seen in
//! practice; one is right but sees few of the digits, and must not be taken for bad.

use std::fmt::Write;
use std::io::Read;

use lapwing_sample::Draws;

use super::Demonstration;
use crate::RunError;

static DIGITS: &[u8] = include_bytes!("../../digits/digits.csv.gz");
/// Pixels from left to right and from top to bottom.
const SIDE: usize = 8;
/// The darkest ink.
const INK: f64 = 16.0;
/// Pictures held back, with their right labels.
const TEST: usize = 597;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Digit {
    pixels: Vec<u8>,
    label: u8,
}

/// What a hospital does to its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Somebody types anything.
    RandomLabels,
    /// Codes were mixed up, two by two.
    Exchanged([(u8, u8); 2]),
    /// The list of codes begins at 1.
    Next,
    /// A form that is filled in beforehand.
    OneLabel(u8),
    /// Normal noise of this standard deviation on every pixel.
    NoisySensor(f64),
}

impl Fault {
    fn describe(self) -> String {
        match self {
            Self::RandomLabels => "every label is drawn at random".to_owned(),
            Self::Exchanged([(a, b), (c, d)]) => {
                format!("{a} and {b} are exchanged, and so are {c} and {d}")
            }
            Self::Next => "every digit is entered as the next one, 9 as 0".to_owned(),
            Self::OneLabel(label) => format!("everything is entered as {label}"),
            Self::NoisySensor(_) => {
                "the scanner is broken: pictures drown in noise, labels are right".to_owned()
            }
        }
    }

    fn spoil(self, digit: &mut Digit, draws: &mut Draws) {
        match self {
            Self::RandomLabels => digit.label = draws.below(10) as u8,
            Self::Exchanged(pairs) => digit.label = exchanged(pairs, digit.label),
            Self::Next => digit.label = (digit.label + 1) % 10,
            Self::OneLabel(label) => digit.label = label,
            Self::NoisySensor(deviation) => {
                for pixel in &mut digit.pixels {
                    let seen = f64::from(*pixel) + deviation * draws.two_normals().0;
                    *pixel = seen.round().clamp(0.0, INK) as u8;
                }
            }
        }
    }
}

fn exchanged(pairs: [(u8, u8); 2], label: u8) -> u8 {
    for (a, b) in pairs {
        match label {
            label if label == a => return b,
            label if label == b => return a,
            _ => {}
        }
    }
    label
}

/// Name, fault, and the digits it sees where it does not see all.
type Hospital = (&'static str, Option<Fault>, Option<&'static [u8]>);

const HOSPITALS: [Hospital; 10] = [
    ("Ashby", None, None),
    ("Birch Hill", Some(Fault::RandomLabels), None),
    ("Corran", None, None),
    ("Dunmore", Some(Fault::Exchanged([(3, 8), (1, 7)])), None),
    ("Eastgate", None, Some(&[0, 1, 2, 3])),
    ("Fairwater", Some(Fault::NoisySensor(12.0)), None),
    ("Glen", None, None),
    ("Harrow", Some(Fault::OneLabel(1)), None),
    ("Inver", Some(Fault::RandomLabels), None),
    ("Juniper", Some(Fault::Next), None),
];

pub(super) fn demonstration(seed: u64) -> Result<Demonstration, RunError> {
    let mut draws = Draws::seeded(seed);
    let mut digits = digits()?;
    draws.shuffle_wide(&mut digits);
    let test = digits.split_off(digits.len() - TEST);
    let mut rows = deal(digits);
    for (digit, hospital) in &mut rows {
        if let Some(fault) = HOSPITALS[*hospital].1 {
            fault.spoil(digit, &mut draws);
        }
    }
    draws.shuffle_wide(&mut rows);
    let describe = |&(name, fault, digits): &Hospital| {
        let few = digits.map(|digits| {
            let list: Vec<String> = digits.iter().map(u8::to_string).collect();
            format!("nothing is wrong, but it sees no other digits than {}", list.join(", "))
        });
        (name.to_owned(), fault.map(Fault::describe).or(few))
    };
    Ok(Demonstration {
        name: "digits",
        target: "digit",
        source: "hospital",
        origin: "Handwritten digits by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository, CC BY 4.0), dealt out \
                 to hospitals that do not exist, of which some spoil theirs",
        train: table(rows.iter().map(|(digit, hospital)| (digit, HOSPITALS[*hospital].0))),
        test: table(test.iter().map(|digit| (digit, ""))),
        sources: HOSPITALS.iter().map(describe).collect(),
    })
}

/// Gives every hospital the same number of digits, those that see few of them their own first.
fn deal(digits: Vec<Digit>) -> Vec<(Digit, usize)> {
    let share = digits.len() / HOSPITALS.len();
    let mut room = [share; HOSPITALS.len()];
    let mut dealt = Vec::with_capacity(digits.len());
    let mut left = digits;
    let choosy = |hospital: &usize| HOSPITALS[*hospital].2.is_some();
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..HOSPITALS.len()).partition(choosy);
    for hospital in first.into_iter().chain(rest) {
        let sees =
            |digit: &Digit| HOSPITALS[hospital].2.is_none_or(|own| own.contains(&digit.label));
        let mut others = Vec::new();
        for digit in left {
            if room[hospital] > 0 && sees(&digit) {
                room[hospital] -= 1;
                dealt.push((digit, hospital));
            } else {
                others.push(digit);
            }
        }
        left = others;
    }
    dealt
}

/// All of them, in the order of the file.
fn digits() -> Result<Vec<Digit>, RunError> {
    let damaged = |reason: String| RunError::Damaged { path: "digits.csv.gz".into(), reason };
    let mut text = String::new();
    flate2::read::GzDecoder::new(DIGITS)
        .read_to_string(&mut text)
        .map_err(|error| damaged(error.to_string()))?;
    let digit = |line: &str| {
        let mut pixels: Vec<u8> = line.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let label = pixels.pop()?;
        (pixels.len() == SIDE * SIDE && label < 10).then_some(Digit { pixels, label })
    };
    let lines = text.lines().map(|line| digit(line).ok_or_else(|| damaged(line.to_owned())));
    lines.collect()
}

fn table<'a>(rows: impl Iterator<Item = (&'a Digit, &'static str)>) -> String {
    let mut text = String::new();
    for at in 0..SIDE * SIDE {
        let _ = write!(text, "pixel_{}_{},", at / SIDE, at % SIDE);
    }
    text.push_str("hospital,digit\n");
    for (Digit { pixels, label }, hospital) in rows {
        for pixel in pixels {
            let _ = write!(text, "{pixel},");
        }
        let _ = writeln!(text, "{hospital},{label}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_digits_are_all_there() {
        let digits = digits().unwrap();
        assert_eq!(digits.len(), 1797);
        let ink: u64 = digits.iter().flat_map(|digit| &digit.pixels).map(|&p| u64::from(p)).sum();
        // python: sum of sklearn.datasets.load_digits().data, and numpy.bincount of its target
        assert_eq!(ink, 561_718);
        let of = |label| digits.iter().filter(|digit| digit.label == label).count();
        let counts: Vec<usize> = (0..10).map(of).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }

    #[test]
    fn a_seed_gives_the_same_hospitals_and_another_seed_others() {
        let made = |seed| demonstration(seed).unwrap();
        assert_eq!(made(1), made(1));
        assert_ne!(made(1).train, made(2).train);
        assert_ne!(made(1).test, made(2).test);
    }

    #[test]
    fn every_hospital_does_what_is_said_of_it_and_no_more() {
        let truth: BTreeMap<Vec<u8>, u8> =
            digits().unwrap().into_iter().map(|digit| (digit.pixels, digit.label)).collect();
        let made = demonstration(3).unwrap();
        let mut lines = BTreeMap::<&str, Vec<(Option<u8>, u8)>>::new();
        for line in made.train.lines().skip(1) {
            let (rest, label) = line.rsplit_once(',').unwrap();
            let (pixels, hospital) = rest.rsplit_once(',').unwrap();
            let pixels: Vec<u8> = pixels.split(',').map(|pixel| pixel.parse().unwrap()).collect();
            let row = (truth.get(&pixels).copied(), label.parse().unwrap());
            lines.entry(hospital).or_default().push(row);
        }
        assert_eq!(lines.len(), 10);
        for (name, fault, few) in HOSPITALS {
            let rows = &lines[name];
            assert_eq!(rows.len(), 120, "{name}");
            let all = |holds: &dyn Fn(u8, u8) -> bool| {
                rows.iter().all(|&(truth, label)| truth.is_some_and(|truth| holds(truth, label)))
            };
            let fits = match fault {
                None => all(&|truth, label| {
                    truth == label && few.is_none_or(|few| few.contains(&truth))
                }),
                Some(Fault::RandomLabels) => {
                    let right = rows.iter().filter(|(truth, label)| *truth == Some(*label)).count();
                    (2..30).contains(&right)
                }
                Some(Fault::Exchanged(_)) => all(&|truth, label| {
                    // 0 to 9 with 3 and 8, 1 and 7 in each other's place.
                    label == [0, 7, 2, 8, 4, 5, 6, 1, 3, 9][truth as usize]
                }),
                Some(Fault::Next) => all(&|truth, label| label == (truth + 1) % 10),
                Some(Fault::OneLabel(one)) => rows.iter().all(|(_, label)| *label == one),
                Some(Fault::NoisySensor(_)) => rows.iter().all(|(truth, _)| truth.is_none()),
            };
            assert!(fits, "{name}");
        }
        assert_eq!(made.test.lines().count(), 1 + TEST);
    }
}
