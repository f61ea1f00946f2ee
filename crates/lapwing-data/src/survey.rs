//! The first pass over a table: which rows can be used, and what each column is.

use lapwing_sample::Task;

use crate::dataset::{Dropped, ReadOptions};
use crate::error::{DataError, Place, Stray};
use crate::file::{Record, TableFile};
use crate::profile::{Doubt, Profile, Sighting};
use crate::schema::{ColumnSchema, Kind, Reason, Role, Schema};
use crate::series;
use crate::value::{Lexicon, Value};
use crate::warning::Warning;

type Result<T> = std::result::Result<T, DataError>;

/// Most different whole numbers that are taken for classes.
const MAX_INTEGER_CLASSES: u64 = 20;

/// Where the columns that were named are.
pub(crate) struct Places {
    pub(crate) target: usize,
    pub(crate) source: usize,
    pub(crate) item: Option<usize>,
    features: Option<Vec<usize>>,
    ignore: Vec<usize>,
    text: Vec<usize>,
    /// The columns of each channel.
    series: Vec<Vec<usize>>,
    pub(crate) time: Option<usize>,
}

impl Places {
    pub(crate) fn new(file: &TableFile, options: &ReadOptions) -> Result<Self> {
        let positions = |names: &[String]| {
            names.iter().map(|name| file.position(name)).collect::<Result<Vec<_>>>()
        };
        let mut places = Self {
            target: file.position(&options.target)?,
            source: file.position(&options.source)?,
            item: options.item.as_deref().map(|name| file.position(name)).transpose()?,
            features: options.features.as_deref().map(positions).transpose()?,
            ignore: positions(&options.ignore)?,
            text: positions(&options.text)?,
            series: Vec::new(),
            time: options.time.as_ref().map(|name| file.position(name)).transpose()?,
        };
        let named = [&[places.target, places.source], &places.ignore[..]].concat();
        let taken: Vec<usize> = named.into_iter().chain(places.time).collect();
        places.series = series::channels(file, &options.series, &taken)?;
        if !places.text.is_empty() && !places.series.is_empty() {
            return Err(DataError::KindsTogether { kind: "series", other: "texts" });
        }
        let conflict = |column: usize, first, second| {
            Err(DataError::RoleConflict { column: file.columns()[column].clone(), first, second })
        };
        for (name, kind) in &options.types {
            match file.position(name)? {
                column if places.text.contains(&column) && *kind != Kind::Text => {
                    return conflict(column, kind.name(), "text");
                }
                _ if *kind != Kind::Image => {}
                column if column == places.target => return conflict(column, "target", "image"),
                column if column == places.source => return conflict(column, "source", "image"),
                column if places.ignore.contains(&column) => {
                    return conflict(column, "image", "ignored");
                }
                column if places.series.iter().flatten().any(|&of| of == column) => {
                    return conflict(column, "image", "series");
                }
                _ if !places.text.is_empty() => {
                    return Err(DataError::KindsTogether { kind: "pictures", other: "texts" });
                }
                _ if !places.series.is_empty() => {
                    return Err(DataError::KindsTogether { kind: "pictures", other: "series" });
                }
                _ => {}
            }
        }
        if places.target == places.source {
            return conflict(places.target, "target", "source");
        }
        if let Some(item) = places.item {
            // Whoever learns from the name of an item learns its answers by heart.
            let features = places.features.iter().flatten().chain(&places.text);
            if let Some((_, role)) = [
                (item == places.target, "target"),
                (item == places.source, "source"),
                (places.ignore.contains(&item), "ignored"),
                (features.clone().any(|&column| column == item), "feature"),
            ]
            .into_iter()
            .find(|(is, _)| *is)
            {
                return conflict(item, role, "item");
            }
        }
        if let Some(features) = &places.features {
            if features.contains(&places.target) {
                return conflict(places.target, "target", "feature");
            }
            if let Some(&column) = features.iter().find(|column| places.ignore.contains(column)) {
                return conflict(column, "feature", "ignored");
            }
        }
        if places.ignore.contains(&places.target) {
            return conflict(places.target, "target", "ignored");
        }
        for &column in &places.text {
            if let Some((_, role)) = [
                (column == places.target, "target"),
                (column == places.source, "source"),
                (places.ignore.contains(&column), "ignored"),
            ]
            .into_iter()
            .find(|(is, _)| *is)
            {
                return conflict(column, role, "text");
            }
        }
        for &column in places.series.iter().flatten() {
            let roles = [
                (column == places.target, "target"),
                (column == places.source, "source"),
                (places.ignore.contains(&column), "ignored"),
                (places.text.contains(&column), "text"),
            ];
            if let Some((_, role)) = roles.into_iter().find(|(is, _)| *is) {
                return conflict(column, role, "series");
            }
        }
        match places.time {
            Some(column) if column == places.target => return conflict(column, "target", "time"),
            Some(column) if column == places.source => return conflict(column, "source", "time"),
            Some(column) if places.text.contains(&column) => {
                return conflict(column, "text", "time");
            }
            _ => {}
        }
        let asked = places.features.iter().flatten().chain([&places.target, &places.source]);
        let asked = asked.chain(&places.item).chain(&places.text).chain(&places.time);
        let single = [&places.target, &places.source].into_iter().chain(&places.item);
        for &column in single.chain(&places.text).chain(&places.time) {
            file.check_single(column)?;
        }
        for &column in asked {
            if let Some(found) = file.unsupported(column) {
                return Err(DataError::UnsupportedColumn {
                    path: file.path().to_owned(),
                    column: file.columns()[column].clone(),
                    found: found.to_owned(),
                });
            }
        }
        Ok(places)
    }

    /// Whether a record cannot be used, and why: the same answer in both passes.
    pub(crate) fn drops(&self, lexicon: &Lexicon, record: &Record<'_>) -> Option<Dropped> {
        let mut dropped = Dropped::default();
        let target = lexicon.look(record.value(self.target));
        if target == Value::Missing {
            dropped.target_missing = 1;
        } else if target == Value::Infinite {
            dropped.target_infinite = 1;
        } else if lexicon.look(record.value(self.source)) == Value::Missing {
            dropped.source_missing = 1;
        } else if self.item.is_some_and(|item| lexicon.look(record.value(item)) == Value::Missing) {
            dropped.item_missing = 1;
        } else {
            return None;
        }
        Some(dropped)
    }
}

/// The first pass.
pub(crate) struct Survey {
    profiles: Vec<Profile>,
    pub(crate) rows: u64,
    pub(crate) dropped: Dropped,
}

impl Survey {
    pub(crate) fn new(file: &TableFile, places: &Places, lexicon: &Lexicon) -> Result<Self> {
        let mut profiles = vec![Profile::new(); file.columns().len()];
        let mut rows = 0;
        let mut dropped = Dropped::default();
        file.scan(|record| {
            // Two codes at the end of the range have a meaning of their own.
            if record.row >= u64::from(u32::MAX - 1) {
                return Err(DataError::TooManyRows {
                    path: file.path().to_owned(),
                    limit: u64::from(u32::MAX - 2),
                });
            }
            if let Some(reason) = places.drops(lexicon, record) {
                dropped.add(reason);
                return Ok(());
            }
            rows += 1;
            for (column, profile) in profiles.iter_mut().enumerate() {
                profile.observe(lexicon, record.value(column), record);
            }
            Ok(())
        })?;
        match (rows, dropped.total()) {
            (0, 0) => Err(DataError::HeaderOnly { path: file.path().to_owned() }),
            (0, _) => Err(DataError::AllRowsDropped { path: file.path().to_owned(), dropped }),
            _ => Ok(Self { profiles, rows, dropped }),
        }
    }

    /// Types and roles from what was seen and what was asked for.
    pub(crate) fn schema(
        &self,
        file: &TableFile,
        places: &Places,
        options: &ReadOptions,
    ) -> Result<Schema> {
        let mut columns: Vec<ColumnSchema> = (0..self.profiles.len())
            .map(|column| self.column(file, places, options, column))
            .collect();
        if let Some((column, &kind)) = columns.iter().find_map(|column| {
            let asked = options.types.get(&column.name).filter(|kind| **kind != column.kind)?;
            matches!(column.kind, Kind::Vector | Kind::Series).then_some((column, asked))
        }) {
            return Err(DataError::Lists { column: column.name.clone(), kind });
        }
        let asked_for = |column: usize| places.features.iter().flatten().any(|&of| of == column);
        if !places.series.is_empty() {
            let of_series = |column: usize| places.series.iter().flatten().any(|&of| of == column);
            for (at, column) in columns.iter_mut().enumerate().filter(|(at, _)| !of_series(*at)) {
                if asked_for(at) {
                    return Err(beside(column, "series"));
                }
                leave_out(column, Reason::BesideSeries);
            }
        }
        if options.text_alone && !places.text.is_empty() {
            let others = columns.iter_mut().filter(|column| column.kind != Kind::Text);
            others.for_each(|column| leave_out(column, Reason::BesideText));
        }
        let pictures =
            |column: &ColumnSchema| column.kind == Kind::Image && column.role.is_feature();
        if columns.iter().any(pictures) {
            let others = columns.iter_mut().enumerate().filter(|(_, column)| !pictures(column));
            for (at, column) in others {
                if asked_for(at) {
                    return Err(beside(column, "pictures"));
                }
                if column.role == Role::Feature {
                    column.role = Role::Ignored(Reason::BesidePictures);
                }
            }
        }
        if let [first, second, ..] =
            columns.iter().filter(|column| pictures(column)).collect::<Vec<_>>()[..]
        {
            return Err(DataError::TwoPictures {
                columns: [first.name.clone(), second.name.clone()],
            });
        }
        if let Some(place) = places.time {
            self.check_times(file, &columns[place], place)?;
        }
        let target = &mut columns[places.target];
        let task = options.task.unwrap_or_else(|| self.task(target.kind, places.target));
        if task == Task::Regression && target.kind == Kind::Categorical {
            // What is not a number is then reported where it stands.
            target.kind = Kind::Numeric;
        }
        Ok(Schema {
            task,
            columns,
            classes: Vec::new(),
            missing_tokens: options.missing_tokens.clone(),
            series: places
                .series
                .iter()
                .map(|columns| columns.iter().map(|&at| file.columns()[at].clone()).collect())
                .collect(),
        })
    }

    /// What is doubtful about the columns that are used, or would be: an error where a guess would change what is
    /// learnt, else a warning. A column whose type was named is not doubted.
    pub(crate) fn doubts(
        &self,
        file: &TableFile,
        schema: &Schema,
        options: &ReadOptions,
    ) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        let mut found: Option<Box<Stray>> = None;
        for (column, profile) in schema.columns.iter().zip(&self.profiles) {
            let decided = match column.role {
                Role::Ignored(Reason::Asked | Reason::Unsupported) | Role::Source | Role::Item => {
                    true
                }
                Role::Target => options.task.is_some(),
                _ => false,
            };
            if decided
                || options.types.contains_key(&column.name)
                || options.text.contains(&column.name)
                || schema.series.iter().flatten().any(|name| *name == column.name)
            {
                continue;
            }
            let place = |first: &Sighting| Place {
                path: file.path().to_owned(),
                line: first.line,
                row: first.row,
            };
            let name = column.name.clone();
            match (profile.finding(&name).doubt, &mut found) {
                (None, _) => {}
                (Some(Doubt::Nearly { .. }), Some(stray)) => stray.others.push(name),
                (Some(Doubt::Nearly { kind, strays, present, first }), found) => {
                    *found = Some(Box::new(Stray {
                        place: place(&first),
                        column: name,
                        expected: kind,
                        value: first.value,
                        strays,
                        present,
                        others: Vec::new(),
                    }));
                }
                (Some(Doubt::Thousands(first)), _) => {
                    return Err(DataError::AmbiguousNumber {
                        place: place(&first),
                        column: name,
                        value: first.value,
                    });
                }
                (Some(Doubt::AmongCodes { strays, present, first }), _) => {
                    let first = first.to_string();
                    warnings.push(Warning::TextAmongNumbers {
                        column: name,
                        strays,
                        present,
                        first,
                    });
                }
                (Some(Doubt::Dates(first)), _) => {
                    let first = first.to_string();
                    warnings.push(Warning::AmbiguousDates { column: name, first });
                }
            }
        }
        found.map_or(Ok(warnings), |stray| Err(DataError::StrayValue(stray)))
    }

    /// That a column says when rows were taken.
    fn check_times(&self, file: &TableFile, column: &ColumnSchema, place: usize) -> Result<()> {
        let profile = &self.profiles[place];
        let found = match column.kind {
            _ if profile.missing() == self.rows => "no values".to_owned(),
            Kind::Numeric | Kind::Date => return Ok(()),
            kind => match profile.first_text() {
                Some(first) => format!("{first}"),
                None => format!("{kind} values"),
            },
        };
        let (path, column) = (file.path().to_owned(), column.name.clone());
        Err(DataError::NoTimes { path, column, found })
    }

    fn task(&self, kind: Kind, target: usize) -> Task {
        match kind {
            Kind::Categorical | Kind::Text => Task::Classification,
            Kind::Numeric if self.profiles[target].is_few_integers(MAX_INTEGER_CLASSES) => {
                Task::Classification
            }
            Kind::Numeric | Kind::Date | Kind::Vector => Task::Regression,
            Kind::Image | Kind::Series => Task::Classification,
        }
    }

    fn column(
        &self,
        file: &TableFile,
        places: &Places,
        options: &ReadOptions,
        column: usize,
    ) -> ColumnSchema {
        let name = file.columns()[column].clone();
        let profile = &self.profiles[column];
        let finding = profile.finding(&name);
        let asked_kind = options.types.get(&name).copied();
        let listed = places.features.as_ref().map(|features| features.contains(&column));
        let named = asked_kind.is_some() || listed == Some(true);

        let text = places.text.contains(&column);
        let series = places.series.iter().flatten().any(|&of| of == column);
        let role = if text || series {
            Role::Feature
        } else if column == places.target {
            Role::Target
        } else if column == places.source {
            if listed == Some(true) { Role::SourceAndFeature } else { Role::Source }
        } else if places.item == Some(column) {
            Role::Item
        } else if places.time == Some(column) && listed != Some(true) {
            Role::Time
        } else if listed == Some(false) || places.ignore.contains(&column) {
            Role::Ignored(Reason::Asked)
        } else if file.unsupported(column).is_some() {
            Role::Ignored(Reason::Unsupported)
        } else if asked_kind == Some(Kind::Text) {
            Role::Ignored(Reason::FreeText)
        } else {
            match finding.unfit {
                Some(Reason::AllMissing) => Role::Ignored(Reason::AllMissing),
                Some(reason) if !named => Role::Ignored(reason),
                _ => Role::Feature,
            }
        };
        let kind = match asked_kind.unwrap_or(finding.kind) {
            _ if series && finding.kind == Kind::Vector => Kind::Series,
            _ if series => Kind::Numeric,
            // A list is nothing else, whatever it is called.
            _ if finding.kind == Kind::Vector => Kind::Vector,
            // Free text that is used all the same is used as levels.
            _ if text => Kind::Text,
            // A year or a week is a number, whatever it is called.
            Kind::Categorical if places.time == Some(column) && profile.numerals().is_some() => {
                Kind::Numeric
            }
            Kind::Text if !matches!(role, Role::Ignored(_)) => Kind::Categorical,
            kind => kind,
        };
        ColumnSchema {
            kind,
            role,
            missing: profile.missing(),
            distinct: profile.distinct(),
            note: if kind == Kind::Series { Some(profile.moments()) } else { finding.note },
            storage: profile.storage(kind),
            name,
        }
    }
}

/// Learns nothing from a column.
/// A column that was asked for and cannot be learnt from.
fn beside(column: &ColumnSchema, kind: &'static str) -> DataError {
    DataError::FeatureBeside { column: column.name.clone(), kind }
}

fn leave_out(column: &mut ColumnSchema, reason: Reason) {
    match column.role {
        Role::Feature => column.role = Role::Ignored(reason),
        Role::SourceAndFeature => column.role = Role::Source,
        Role::Target | Role::Source | Role::Item | Role::Time | Role::Ignored(_) => {}
    }
}
