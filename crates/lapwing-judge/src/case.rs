//! What examinations are given: the sources of a run, and its rows where they are known.

use std::cell::OnceCell;
use std::collections::HashSet;

use lapwing_sample::Scale;

use crate::confusion::share;
use crate::histogram::inner_range;
use crate::inputs::{ColumnOf, Inputs};
use crate::label_error::FEWEST_HELD_OUT;
use crate::structure::{Compared, Structure};
use crate::{
    Answered, Answers, Comparison, Confusion, Histogram, JudgeError, MOST_CLASSES, Residuals, Rows,
    SourceRow, Tally, Verdict,
};

/// Rows named with a finding.
const EXAMPLES: usize = 5;
/// Rows that count as the worst of a source where nobody says which they are.
const WORST: usize = 10;

/// The case of all sources of a run: what each of them is examined against.
pub struct Case<'a> {
    sources: &'a [SourceRow],
    rows: Option<Known<'a>>,
    inputs: OnceCell<Inputs>,
    structure: OnceCell<Option<Structure>>,
    digests: OnceCell<Option<Vec<u64>>>,
    duplicates: OnceCell<(Vec<u64>, u64)>,
}

/// Rows, and what is true of all of them.
struct Known<'a> {
    rows: Rows<'a>,
    /// Rows of each source.
    places: Vec<Vec<u32>>,
    /// What the model says of each row; nothing for values.
    said: Vec<u32>,
    /// Rows by given class: of all sources, and of those that are not flagged.
    given: Vec<u64>,
    given_by_sound: Vec<u64>,
    /// Share of rows of reliable sources on which label and model agree.
    reliable_agreement: Option<f64>,
    /// The distance between target and prediction that nine in ten rows of reliable sources do not pass; 0 for classes.
    usual_distance: f64,
    /// Residuals of the reliable sources that are finite, with mean and standard deviation.
    reliable_residuals: Vec<f64>,
    reliable_spread: Option<(f64, f64)>,
}

impl<'a> Case<'a> {
    /// Sources, in the order of their numbers, that have a verdict; and the rows, where they are known.
    ///
    /// # Errors
    /// When lists differ in length, or a row has a source or class that is none.
    pub fn new(sources: &'a [SourceRow], rows: Option<Rows<'a>>) -> Result<Self, JudgeError> {
        let Some(rows) = rows else { return Ok(Self::with(sources, None)) };
        rows.check(sources.len())?;
        let Answered { sources: of_rows, answers } = rows.answered;
        let mut places = vec![Vec::new(); sources.len()];
        for (place, &source) in of_rows.iter().enumerate() {
            places[source as usize].push(place as u32);
        }
        let said = rows.labels();
        let reliable: Vec<usize> = (0..sources.len())
            .filter(|&source| sources[source].verdict == Verdict::Reliable)
            .flat_map(|source| places[source].iter().map(|&place| place as usize))
            .collect();
        let mut known = Known {
            rows,
            places,
            said,
            given: Vec::new(),
            given_by_sound: Vec::new(),
            reliable_agreement: None,
            usual_distance: 0.0,
            reliable_residuals: Vec::new(),
            reliable_spread: None,
        };
        match answers {
            Answers::Classes { names, given, .. } => {
                known.given = vec![0; names.len()];
                known.given_by_sound = vec![0; names.len()];
                for (&class, &source) in given.iter().zip(of_rows) {
                    known.given[class as usize] += 1;
                    let sound = !sources[source as usize].verdict.is_flagged();
                    known.given_by_sound[class as usize] += u64::from(sound);
                }
                let agreed = reliable.iter().filter(|&&at| given[at] == known.said[at]).count();
                known.reliable_agreement =
                    (!reliable.is_empty()).then(|| agreed as f64 / reliable.len() as f64);
            }
            Answers::Values { given, predicted } => {
                known.reliable_residuals = known.rows.held_out_residuals(sources);
                if (known.reliable_residuals.len() as u64) < FEWEST_HELD_OUT {
                    let residuals = reliable.iter().map(|&at| given[at] - predicted[at]);
                    known.reliable_residuals = residuals.filter(|r| r.is_finite()).collect();
                }
                let mut distances: Vec<f64> =
                    known.reliable_residuals.iter().map(|r| r.abs()).collect();
                distances.sort_by(f64::total_cmp);
                let nine_in_ten = distances.len() * 9 / 10;
                known.usual_distance = distances.get(nine_in_ten).copied().unwrap_or(f64::INFINITY);
                known.reliable_spread = Scale::spread(known.reliable_residuals.iter().copied());
            }
        }
        Ok(Self::with(sources, Some(known)))
    }

    fn with(sources: &'a [SourceRow], rows: Option<Known<'a>>) -> Self {
        let (inputs, structure) = (OnceCell::new(), OnceCell::new());
        let (digests, duplicates) = (OnceCell::new(), OnceCell::new());
        Self { sources, rows, inputs, structure, digests, duplicates }
    }

    /// All sources.
    pub fn sources(&self) -> &'a [SourceRow] {
        self.sources
    }

    /// Features and numeric targets of all sources, side by side; made when first asked for.
    pub(crate) fn inputs(&self) -> &Inputs {
        self.inputs.get_or_init(|| match &self.rows {
            Some(known) => Inputs::new(&known.rows, &known.places),
            None => Inputs::default(),
        })
    }

    fn structure(&self) -> Option<&Structure> {
        let verdicts = || self.sources.iter().map(|source| source.verdict).collect::<Vec<_>>();
        self.structure.get_or_init(|| Structure::new(self.inputs(), &verdicts())).as_ref()
    }

    fn digests(&self) -> Option<&[u64]> {
        let features = self.rows.as_ref().and_then(|known| known.rows.features);
        self.digests.get_or_init(|| features?.digests()).as_deref()
    }

    /// For each source, how many of its rows are the same as an earlier one of its own, target included, and how many there
    /// are in all; nothing where that is not known.
    fn duplicates(&self) -> &(Vec<u64>, u64) {
        self.duplicates.get_or_init(|| {
            let (Some(known), Some(digests)) = (&self.rows, self.digests()) else {
                return Default::default();
            };
            let count = |own: &Vec<u32>| {
                let mut seen = HashSet::new();
                let again = |place: &&u32| !seen.insert(known.content(digests, **place));
                own.iter().filter(again).count() as u64
            };
            let counts: Vec<u64> = known.places.iter().map(count).collect();
            let all = counts.iter().sum();
            (counts, all)
        })
    }

    /// One of them.
    pub fn subject(&self, source: usize) -> Subject<'_> {
        Subject { case: self, source, tally: OnceCell::new(), residuals: OnceCell::new() }
    }
}

impl Known<'_> {
    /// What a row holds: inputs and target.
    fn content(&self, digests: &[u64], place: u32) -> (u64, u64) {
        let at = place as usize;
        let given = match self.rows.answered.answers {
            Answers::Classes { given, .. } => u64::from(given[at]),
            Answers::Values { given, .. } => given[at].to_bits(),
        };
        (digests[at], given)
    }
}

/// A row at its time.
pub(crate) struct InTime {
    pub(crate) time: f64,
    pub(crate) place: u32,
    /// Whether label and model contradict each other, or a target is further from its prediction than is usual.
    pub(crate) contradicts: bool,
}

/// The source that is examined.
pub struct Subject<'a> {
    case: &'a Case<'a>,
    source: usize,
    tally: OnceCell<Option<Tally>>,
    residuals: OnceCell<Option<Residuals>>,
}

impl<'a> Subject<'a> {
    /// What the rule saw of it, and its verdict.
    pub fn row(&self) -> &'a SourceRow {
        &self.case.sources[self.source]
    }

    /// It and the others.
    pub fn case(&self) -> &'a Case<'a> {
        self.case
    }

    /// All rows of the run, where they are known.
    pub fn rows(&self) -> Option<&'a Rows<'a>> {
        Some(&self.case.rows.as_ref()?.rows)
    }

    /// The places of its own rows in the lists of [`Rows`].
    pub fn places(&self) -> &'a [u32] {
        self.case.rows.as_ref().map_or(&[], |known| &known.places[self.source])
    }

    /// The name of a class.
    pub fn class(&self, class: usize) -> String {
        match self.case.rows.as_ref().map(|known| known.rows.answered.answers) {
            Some(Answers::Classes { names, .. }) => names.get(class).cloned().unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Rows of all sources together by given class; nothing where there are no classes.
    pub fn given_by_all(&self) -> &'a [u64] {
        self.case.rows.as_ref().map_or(&[], |known| &known.given)
    }

    /// Rows of the other sources by given class, without those whose labels are in doubt, unless all are.
    pub(crate) fn given_by_sound_others(&self) -> Vec<u64> {
        let Some(known) = &self.case.rows else { return Vec::new() };
        let own = self.given();
        let flagged = self.row().verdict.is_flagged();
        let others = |all: &[u64], own: &[u64]| -> Vec<u64> {
            all.iter().zip(own).map(|(all, own)| all - own).collect()
        };
        let none = vec![0; own.len()];
        let sound = others(&known.given_by_sound, if flagged { &none } else { &own });
        if sound.iter().any(|count| *count > 0) { sound } else { others(&known.given, &own) }
    }

    /// Its own rows by given class.
    pub fn given(&self) -> Vec<u64> {
        let mut counts = vec![0; self.given_by_all().len()];
        if let Some(Answers::Classes { given, .. }) = self.rows().map(|rows| rows.answered.answers)
        {
            for &place in self.places() {
                counts[given[place as usize] as usize] += 1;
            }
        }
        counts
    }

    /// Its labels against the model's, where there are rows and no more than [`MOST_CLASSES`] classes.
    pub fn tally(&self) -> Option<&Tally> {
        let made = self.tally.get_or_init(|| {
            let known = self.case.rows.as_ref()?;
            let Answers::Classes { names, given, .. } = known.rows.answered.answers else {
                return None;
            };
            if names.len() > MOST_CLASSES {
                return None;
            }
            let pair = |&place: &u32| (given[place as usize], known.said[place as usize]);
            Some(Tally::of(names.len(), self.places().iter().map(pair))).filter(|t| t.total > 0)
        });
        made.as_ref()
    }

    /// Its targets against the predictions, where there are any.
    pub fn residuals(&self) -> Option<&Residuals> {
        let made = self.residuals.get_or_init(|| {
            let known = self.case.rows.as_ref()?;
            Residuals::of(&self.pairs()?, known.reliable_spread)
        });
        made.as_ref()
    }

    /// Share of rows of reliable sources on which label and model agree.
    pub fn reliable_agreement(&self) -> Option<f64> {
        self.case.rows.as_ref()?.reliable_agreement
    }

    /// Its labels or targets against the model, to be drawn.
    pub fn comparison(&self) -> Option<Comparison> {
        let known = self.case.rows.as_ref()?;
        match known.rows.answered.answers {
            Answers::Classes { names, .. } if names.len() > MOST_CLASSES => None,
            Answers::Classes { names, .. } => Some(Comparison::Labels(Confusion {
                classes: names.to_vec(),
                counts: match self.tally() {
                    Some(tally) => tally.cells.clone(),
                    None => vec![vec![0; names.len()]; names.len()],
                },
                reliable_agreement: known.reliable_agreement,
            })),
            Answers::Values { .. } => {
                let pairs = self.pairs()?;
                let own = pairs.iter().map(|(given, predicted)| given - predicted);
                let own: Vec<f64> = own.filter(|r| r.is_finite()).collect();
                let reliable = &known.reliable_residuals;
                let range = inner_range([own.as_slice(), reliable].concat());
                let (low, high) = range.unwrap_or((-1.0, 1.0));
                let reliable = (!reliable.is_empty()).then(|| Histogram::of(reliable, low, high));
                Some(Comparison::Targets { own: Histogram::of(&own, low, high), reliable })
            }
        }
    }

    /// Places of its rows with the largest losses, largest first, or else those that contradict the model most.
    pub fn worst(&self) -> Vec<u32> {
        let given = self.rows().and_then(|rows| rows.worst.get(self.source));
        match given.filter(|worst| !worst.is_empty()) {
            Some(worst) => worst.clone(),
            None => self.most_contradicting(WORST, |_| true),
        }
    }

    /// What the model says of a row, and how probable it holds that and the given label; nothing for values.
    pub fn word(&self, place: u32) -> Option<(u32, f64, f64)> {
        let known = self.case.rows.as_ref()?;
        let Answers::Classes { names, given, probabilities } = known.rows.answered.answers else {
            return None;
        };
        let (at, width) = (place as usize, names.len());
        let said = *known.said.get(at)?;
        let unseen = known.rows.unseen(at, width);
        let of = |class: u32| match unseen {
            Some(unseen) => unseen.get(class as usize).copied(),
            None => probabilities.get(at * width + class as usize).map(|&p| p.into()),
        };
        Some((said, of(said)?, of(given[at])?))
    }

    /// The given label of a row; nothing for values.
    pub fn given_label(&self, place: u32) -> Option<u32> {
        match self.rows()?.answered.answers {
            Answers::Classes { given, .. } => given.get(place as usize).copied(),
            Answers::Values { .. } => None,
        }
    }

    /// Numbers of rows that show something: those of its own that are chosen and contradict the model most.
    pub fn examples(&self, chosen: impl Fn(u32) -> bool) -> Vec<u64> {
        self.numbered(&self.most_contradicting(EXAMPLES, chosen))
    }

    /// Numbers of rows whose given and predicted label are chosen.
    pub fn examples_of(&self, chosen: impl Fn(usize, usize) -> bool) -> Vec<u64> {
        self.examples(|place| match (self.given_label(place), self.word(place)) {
            (Some(given), Some((said, ..))) => chosen(given as usize, said as usize),
            _ => false,
        })
    }

    /// The numbers under which a person finds the first few of these rows.
    pub fn numbered(&self, places: &[u32]) -> Vec<u64> {
        let Some(rows) = self.rows() else { return Vec::new() };
        places.iter().take(EXAMPLES).map(|&place| rows.numbers[place as usize]).collect()
    }

    fn most_contradicting(&self, most: usize, chosen: impl Fn(u32) -> bool) -> Vec<u32> {
        let contradiction = |place: u32| match (self.word(place), self.rows()) {
            (Some((_, said, given)), _) => said - given,
            (None, Some(rows)) => match rows.answered.answers {
                Answers::Values { given, predicted } => {
                    (given[place as usize] - predicted[place as usize]).abs()
                }
                Answers::Classes { .. } => 0.0,
            },
            (None, None) => 0.0,
        };
        let own = self.places().iter().copied().filter(|&place| chosen(place));
        let mut ranked: Vec<(f64, u32)> =
            own.map(|place| (contradiction(place), place)).filter(|(by, _)| !by.is_nan()).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().take(most).map(|(_, place)| place).collect()
    }

    /// Mean and standard deviation of its targets, and of what the model predicts for them; nothing for classes.
    pub(crate) fn spreads(&self) -> Option<((f64, f64), (f64, f64))> {
        let pairs: Vec<(f64, f64)> =
            self.pairs()?.into_iter().filter(|(g, p)| (g - p).is_finite()).collect();
        let given = Scale::spread(pairs.iter().map(|pair| pair.0))?;
        Some((given, Scale::spread(pairs.iter().map(|pair| pair.1))?))
    }

    /// Its targets with the predictions; nothing for classes.
    fn pairs(&self) -> Option<Vec<(f64, f64)>> {
        let Answers::Values { given, predicted } = self.rows()?.answered.answers else {
            return None;
        };
        let pair = |&at: &u32| (given[at as usize], predicted[at as usize]);
        Some(self.places().iter().map(pair).collect())
    }

    /// Its rows by rising time, those of which time or contradiction are not known left out; `None` where there are no times.
    pub(crate) fn course(&self) -> Option<Vec<InTime>> {
        let known = self.case.rows.as_ref()?;
        let times = known.rows.times?.values;
        let contradicts = |place: u32| {
            let at = place as usize;
            match known.rows.answered.answers {
                Answers::Classes { names, given, .. } => {
                    // What the model has learnt by heart says nothing, where others were asked.
                    let asked = known.rows.out_of_sample.is_none()
                        || known.rows.unseen(at, names.len()).is_some();
                    asked.then(|| given[at] != known.said[at])
                }
                Answers::Values { given, predicted } => {
                    let distance = (given[at] - predicted[at]).abs();
                    distance.is_finite().then_some(distance > known.usual_distance)
                }
            }
        };
        let row = |&place: &u32| {
            let time = times[place as usize];
            let contradicts = contradicts(place).filter(|_| time.is_finite())?;
            Some(InTime { time, place, contradicts })
        };
        let mut course: Vec<InTime> = self.places().iter().filter_map(row).collect();
        course.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.place.cmp(&b.place)));
        Some(course)
    }

    /// Its features, and then its targets where these are numbers, beside those of the others; nothing where it has few
    /// rows, or there is nobody to compare it with.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnOf<'a>> {
        self.case.inputs().of(self.source)
    }

    /// How its numbers hang together, beside those of the others; with the names of the columns.
    pub(crate) fn structure(&self) -> Option<(Compared, Vec<&'a str>)> {
        let (inputs, structure) = (self.case.inputs(), self.case.structure()?);
        let compared = structure.compare(inputs, inputs.slot(self.source)?)?;
        let name = |&at: &usize| inputs.columns[at].name().unwrap_or_default();
        Some((compared, structure.columns.iter().map(name).collect()))
    }

    /// The place of one of its rows that are looked at.
    pub(crate) fn looked_at(&self, at: usize) -> Option<u32> {
        let inputs = self.case.inputs();
        let range = inputs.range(inputs.slot(self.source)?);
        inputs.places().get(range.start + at).copied()
    }

    /// Places of rows that are the same as another one of its own, those with the same content side by side.
    pub(crate) fn duplicated(&self) -> Vec<u32> {
        let (Some(known), Some(digests)) = (&self.case.rows, self.case.digests()) else {
            return Vec::new();
        };
        let mut rows: Vec<_> =
            self.places().iter().map(|&place| (known.content(digests, place), place)).collect();
        rows.sort_unstable();
        let mut groups: Vec<_> =
            rows.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group[0].1));
        groups.into_iter().flatten().map(|(_, place)| *place).collect()
    }

    /// How many of its rows are the same as an earlier one, how many rows it has, and the same of all others together.
    pub(crate) fn repetitions(&self) -> Option<[(u64, u64); 2]> {
        let (counts, all) = self.case.duplicates();
        let (own, rows) = (*counts.get(self.source)?, self.places().len() as u64);
        let all_rows = self.rows()?.answered.answers.len() as u64;
        Some([(own, rows), (all - own, all_rows - rows)])
    }

    /// Share of the rows of the other sources that are given this class; `None` where there is no other row.
    pub fn share_among_others(&self, class: usize) -> Option<f64> {
        let (own, all) = (self.given(), self.given_by_all());
        let others = all.iter().sum::<u64>() - own.iter().sum::<u64>();
        (others > 0).then(|| share(all[class] - own[class], others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rows_there_is_nothing_to_compare() {
        let sources = [SourceRow::default()];
        let case = Case::new(&sources, None).unwrap();
        let subject = case.subject(0);
        assert!(subject.tally().is_none() && subject.residuals().is_none());
        assert!(subject.comparison().is_none() && subject.worst().is_empty());
        assert!(subject.places().is_empty() && subject.class(0).is_empty());
    }

    #[test]
    fn examples_are_the_rows_that_contradict_the_model_most() {
        let sources = [SourceRow::default()];
        let (given, predicted) = ([0.0, 5.0, f64::NAN, 1.0], [0.0; 4]);
        let answers = Answers::Values { given: &given, predicted: &predicted };
        let rows = Rows::new(Answered { sources: &[0; 4], answers }, &[11, 12, 13, 14]);
        let case = Case::new(&sources, Some(rows)).unwrap();
        assert_eq!(case.subject(0).examples(|_| true), [12, 14, 11]);
        assert_eq!(case.subject(0).examples(|place| place != 1), [14, 11]);
    }
}
