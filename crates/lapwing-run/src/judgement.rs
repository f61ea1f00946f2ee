//! What is made of the sources of a finished run: verdicts, label errors, findings, and the evidence for them.

use std::collections::{BTreeMap, BTreeSet};

use lapwing_data::{Aspect, Dataset, WideChannel};
use lapwing_judge::{
    Answered, Answers, Case, Column, Evidence, Features, JudgedSource, Rows, SourceRow, Times,
    Verdict, WorstRow, apart, examine, explained, label_errors,
};
use lapwing_sample::{Samples, Targets};
use lapwing_train::Predictions;

use crate::results::Part;
use crate::shown::Shown;
use crate::{Fit, Job, RunError};

/// Sources whose rows are shown, worst first.
const MOST_EVIDENCE: usize = 50;
const WORST_ROWS: usize = 10;
const SHOWN_FEATURES: usize = 8;

/// The judgement on a run.
pub(crate) struct Judgement {
    /// All sources, in the order of the table.
    pub(crate) sources: Vec<SourceRow>,
    /// Evidence on those that are flagged or have a fault, worst first.
    pub(crate) evidence: Vec<Evidence>,
}

/// Judges the sources by what training saw and what the model says of training and validation rows. `judged` is what
/// networks say that have not seen their labels, and is empty where none were asked.
pub(crate) fn judge(
    job: &Job<'_>,
    fit: &Fit,
    mut sources: Vec<SourceRow>,
    judged: Vec<JudgedSource>,
    samples: &dyn Samples,
    train: &Part<'_>,
    valid: &Part<'_>,
) -> Result<Judgement, RunError> {
    let dataset = job.dataset();
    let alone = sources.iter().filter(|source| source.rows > 0).count() < 2;
    let mut judged = judged.into_iter();
    for source in &mut sources {
        match judged.next() {
            // Alone, it cannot be told from the truth.
            Some(judged) if !alone => source.judge_by(judged),
            _ => source.judge(job.settings.rule().history_length),
        }
    }
    let (train, valid) = (Lists::new(dataset, train), Lists::new(dataset, valid));
    if sources.iter().any(|source| source.verdict == Verdict::Unreliable) {
        let distances = train.distances(dataset, sources.len());
        for (source, distance) in sources.iter_mut().zip(distances) {
            source.reconsider_inputs(distance);
        }
    }
    let verdicts: Vec<_> = sources.iter().map(|source| source.verdict).collect();
    let errors = label_errors(&verdicts, &train.answered(), &valid.answered());
    let of_values = matches!(dataset.target, Targets::Values(_));
    let explained = explained(&train.answered(), sources.len());
    for ((source, error), explained) in sources.iter_mut().zip(errors).zip(explained) {
        source.label_error = error;
        if of_values {
            source.reconsider(explained);
        }
    }
    let verdicts: Vec<_> = sources.iter().map(|source| source.verdict).collect();

    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by(|&a, &b| sources[a].worst_first(&sources[b]));
    let surest = train.surest(|source| !verdicts[source].is_flagged());
    let mut exhibits = Exhibits { job, fit, samples, part: &train, worst: BTreeMap::new(), surest };
    let flagged = order.iter().filter(|&&source| verdicts[source].is_flagged());
    for &source in flagged.take(MOST_EVIDENCE) {
        exhibits.look(source)?;
    }
    let worst = exhibits.places(sources.len());
    let features = TrainedOn::new(dataset, train.part.rows);
    let out_of_sample = fit.labels.as_ref().ok().map(|labels| labels.said_of(train.part.rows));
    let numbers: Vec<u64> =
        train.part.rows.iter().map(|&row| dataset.table.row_number(row)).collect();
    let times: Option<Vec<f64>> = dataset
        .times
        .as_ref()
        .map(|times| train.part.rows.iter().map(|&row| times.values[row as usize]).collect());
    let text =
        |time: f64| dataset.times.as_ref().map_or_else(String::new, |times| times.text(time));
    let case = Case::new(
        &sources,
        Some(Rows {
            held_out: Some(valid.answered()),
            features: Some(&features),
            out_of_sample: out_of_sample.as_deref(),
            times: times.as_deref().map(|values| Times { values, text: &text }),
            worst: &worst,
            ..Rows::new(train.answered(), &numbers)
        }),
    )?;
    let findings = examine(&case);
    let mut evidence = Vec::new();
    let shown = |source: &usize| verdicts[*source].is_flagged() || !findings[*source].is_empty();
    for source in order.into_iter().filter(shown).take(MOST_EVIDENCE) {
        exhibits.look(source)?;
        let comparison = case.subject(source).comparison();
        evidence.push(Evidence { comparison, ..exhibits.evidence(source)? });
    }
    drop(case);
    for (source, findings) in sources.iter_mut().zip(findings) {
        source.findings = findings;
    }
    Ok(Judgement { sources, evidence })
}

/// The rows of a part as lists, one value per row.
struct Lists<'a> {
    part: &'a Part<'a>,
    sources: Vec<u32>,
    target: Targets,
    classes: &'a [String],
}

impl<'a> Lists<'a> {
    fn new(dataset: &'a Dataset, part: &'a Part<'a>) -> Self {
        let sources = part.rows.iter().map(|&row| dataset.sources.codes[row as usize]).collect();
        let target = dataset.target.select(part.rows);
        Self { part, sources, target, classes: &dataset.schema.classes }
    }

    /// How far each source lies from all others in the length of its texts, or in length, mean or spread of its series:
    /// the furthest of these.
    fn distances(&self, dataset: &Dataset, count: usize) -> Vec<f64> {
        let of_sequences =
            |aspect: &Aspect| matches!(aspect, Aspect::Length | Aspect::Mean | Aspect::Spread);
        let rows = self.part.rows;
        let columns = dataset.table.columns().iter().flat_map(|column| {
            let aspects = column.aspects().into_iter().map(|(_, aspect)| aspect);
            aspects.filter(of_sequences).filter_map(|aspect| column.aspect(aspect, rows))
        });
        let channels = dataset.wide_channels().flat_map(|channel| {
            let aspects = channel.aspects().into_iter();
            aspects.filter_map(move |(_, aspect)| channel.aspect(aspect, rows))
        });
        let mut furthest = vec![0.0_f64; count];
        for values in columns.chain(channels) {
            let distances = apart(&values, &self.sources, count);
            for (furthest, distance) in furthest.iter_mut().zip(distances) {
                *furthest = furthest.max(distance);
            }
        }
        furthest
    }

    /// Of each class, the place of the row whose label the model gives the highest probability, among sources that
    /// are `sound`; nothing where targets are values.
    fn surest(&self, sound: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let Answers::Classes { names, given, probabilities } = self.answered().answers else {
            return Vec::new();
        };
        let mut surest: Vec<Option<u32>> = vec![None; names.len()];
        let probability = |place: u32| {
            let at = place as usize;
            probabilities[at * names.len() + given[at] as usize]
        };
        for place in 0..given.len() as u32 {
            let best = &mut surest[given[place as usize] as usize];
            if sound(self.sources[place as usize] as usize)
                && best.is_none_or(|best| probability(place) > probability(best))
            {
                *best = Some(place);
            }
        }
        surest
    }

    fn answered(&self) -> Answered<'_> {
        let answers = match (&self.target, &self.part.predictions) {
            (Targets::Classes { labels, .. }, Predictions::Classes { probabilities, .. }) => {
                Answers::Classes { names: self.classes, given: labels, probabilities }
            }
            (Targets::Values(given), Predictions::Values(predicted)) => {
                Answers::Values { given, predicted }
            }
            // A model is made for the target it was trained on.
            _ => Answers::Values { given: &[], predicted: &[] },
        };
        Answered { sources: &self.sources, answers }
    }
}

/// Finds the worst rows of sources and shows them.
struct Exhibits<'a> {
    job: &'a Job<'a>,
    fit: &'a Fit,
    samples: &'a dyn Samples,
    part: &'a Lists<'a>,
    /// Places and losses of the worst rows of the sources that were looked at, worst first.
    worst: BTreeMap<usize, Vec<(u32, f32)>>,
    /// Of each class, the place of the row that the model is surest of, from a source that is not flagged.
    surest: Vec<Option<u32>>,
}

impl Exhibits<'_> {
    fn look(&mut self, source: usize) -> Result<(), RunError> {
        if self.worst.contains_key(&source) {
            return Ok(());
        }
        let own: Vec<u32> = (0..self.part.sources.len() as u32)
            .filter(|&place| self.part.sources[place as usize] as usize == source)
            .collect();
        let rows: Vec<u32> = own.iter().map(|&place| self.part.part.rows[place as usize]).collect();
        let targets = &self.job.dataset().target;
        let losses = self.fit.model.losses(self.samples, targets, &rows)?;
        let mut worst: Vec<(u32, f32)> = own.into_iter().zip(losses).collect();
        worst.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        worst.truncate(WORST_ROWS);
        self.worst.insert(source, worst);
        Ok(())
    }

    /// The places of the worst rows by source; none for those that were not looked at.
    fn places(&self, sources: usize) -> Vec<Vec<u32>> {
        let of = |source| self.worst.get(&source).into_iter().flatten();
        (0..sources).map(|source| of(source).map(|&(place, _)| place).collect()).collect()
    }

    fn evidence(&self, source: usize) -> Result<Evidence, RunError> {
        let dataset = self.job.dataset();
        let worst = self.worst.get(&source).into_iter().flatten();
        let worst_rows: Vec<WorstRow> =
            worst.map(|&(place, loss)| self.row(place, loss)).collect::<Result<_, _>>()?;
        // A picture says what its pixels say, a text what its words say, and a series what its line says.
        let speaks =
            |row: &WorstRow| row.picture.is_some() || row.text.is_some() || !row.lines.is_empty();
        let speaks = worst_rows.iter().any(speaks);
        let named = dataset.schema.features().take(if speaks { 0 } else { SHOWN_FEATURES });
        Ok(Evidence {
            source: dataset.sources.names[source].clone(),
            features: named.map(|column| column.name.clone()).collect(),
            worst_rows,
            comparison: None,
        })
    }

    /// A row with the label of the one at a place, and of which the model is surest.
    fn typical(&self, place: u32) -> Option<u32> {
        let Targets::Classes { labels, .. } = &self.part.target else { return None };
        let surest = self.surest.get(labels[place as usize] as usize).copied().flatten()?;
        Some(self.part.part.rows[surest as usize])
    }

    fn row(&self, place: u32, loss: f32) -> Result<WorstRow, RunError> {
        let dataset = self.job.dataset();
        let row = self.part.part.rows[place as usize];
        let Shown { mut cells, picture, text, lines } = Shown::of(self.samples, row)?;
        cells.truncate(SHOWN_FEATURES);
        let typical = match self.typical(place) {
            Some(like) if !lines.is_empty() => Shown::of(self.samples, like)?.lines,
            _ => Vec::new(),
        };
        let at = place as usize;
        let (given, predicted, probability) = match self.part.answered().answers {
            Answers::Classes { names, given, probabilities } => {
                let of_row = &probabilities[at * names.len()..(at + 1) * names.len()];
                let best = (1..of_row.len())
                    .fold(0, |best, next| if of_row[next] > of_row[best] { next } else { best });
                let given = names[given[at] as usize].clone();
                (given, names[best].clone(), Some(f64::from(of_row[best])))
            }
            Answers::Values { given, predicted } => {
                let text = |value: Option<String>| value.unwrap_or_default();
                (
                    text(given.get(at).map(ToString::to_string)),
                    text(predicted.get(at).map(ToString::to_string)),
                    None,
                )
            }
        };
        Ok(WorstRow {
            row: dataset.table.row_number(row),
            given,
            predicted,
            probability,
            loss: Some(f64::from(loss)),
            features: cells,
            picture,
            text,
            lines,
            typical,
        })
    }
}

/// The features of the training rows, as they stand in the table; of texts, vectors, series and pictures what can be
/// compared.
struct TrainedOn<'a> {
    dataset: &'a Dataset,
    rows: &'a [u32],
    /// Names, each with what it is.
    features: BTreeMap<String, Feature<'a>>,
    names: Vec<String>,
}

/// A column, or something of one or of several.
enum Feature<'a> {
    Whole(&'a str),
    Of(&'a str, Aspect),
    OfChannel(WideChannel<'a>, Aspect),
}

impl<'a> TrainedOn<'a> {
    fn new(dataset: &'a Dataset, rows: &'a [u32]) -> Self {
        let mut all: Vec<(String, Feature<'a>)> = Vec::new();
        let columns = dataset.wide_channels().flat_map(|channel| channel.columns());
        let moments: BTreeSet<&str> = columns.map(String::as_str).collect();
        for column in dataset.table.columns() {
            let (name, aspects) = (column.name(), column.aspects());
            if aspects.is_empty() && !moments.contains(name) {
                all.push((name.to_owned(), Feature::Whole(name)));
            }
            all.extend(aspects.into_iter().map(|(of, aspect)| (of, Feature::Of(name, aspect))));
        }
        for channel in dataset.wide_channels() {
            let aspects = channel.aspects().into_iter();
            all.extend(aspects.map(|(of, aspect)| (of, Feature::OfChannel(channel, aspect))));
        }
        let names = all.iter().map(|(name, _)| name.clone()).collect();
        Self { dataset, rows, features: all.into_iter().collect(), names }
    }
}

impl Features for TrainedOn<'_> {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let table = &self.dataset.table;
        let numbers = match self.features.get(name)? {
            Feature::Of(name, aspect) => table.column(name)?.aspect(*aspect, self.rows)?,
            Feature::OfChannel(channel, aspect) => channel.aspect(*aspect, self.rows)?,
            Feature::Whole(name) => {
                let column = table.column(name)?;
                if let Some((names, codes)) = column.levels(self.rows) {
                    return Some(Column::Levels { names: names.into(), codes });
                }
                column.numbers(self.rows)?
            }
        };
        Some(Column::Numbers(numbers.into()))
    }

    fn digests(&self) -> Option<Vec<u64>> {
        Some(self.dataset.table.digests(self.rows))
    }
}
