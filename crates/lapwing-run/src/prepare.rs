//! From settings to a table that is read, checked and split.

use std::path::Path;

use lapwing_data::{Dataset, Disk, Memory, NewData, NewDataOptions, Split, SplitConfig};
use lapwing_sample::Task;

use crate::{RunError, Settings};

/// A table ready to be trained on, and what to test on.
#[derive(Debug)]
pub struct Prepared {
    /// The table.
    pub dataset: Dataset,
    /// Its parts.
    pub split: Split,
    /// The table to test on, where it is another one.
    pub test: Option<NewData>,
}

impl Prepared {
    /// Reads everything a run needs; nothing is written.
    pub fn read(settings: &Settings) -> Result<Self, RunError> {
        Self::read_beside(settings, None)
    }

    /// The same; rows that do not fit into the memory that settings allow go to files without a name in `place`, or
    /// wherever files of short life belong.
    pub fn read_beside(settings: &Settings, place: Option<&Path>) -> Result<Self, RunError> {
        let shares = settings.split()?;
        let memory = match settings.memory_limit {
            None if settings.cache.is_some() => return Err(RunError::CacheWithoutLimit),
            None => Memory::available(),
            Some(limit) => {
                let place = place.map_or_else(std::env::temp_dir, Path::to_owned);
                let keep = settings.cache.clone();
                let disk = Some(Disk { place, seed: settings.seed(), keep });
                Some(Memory { limit, program: Memory::PROGRAM, disk })
            }
        };
        let options = settings.read_options()?;
        let dataset = Dataset::read_within(settings.data()?, &options, memory.as_ref())?;
        let split = split(&dataset, &shares)?;
        let test = match &settings.test {
            None => None,
            Some(path) => {
                let options = NewDataOptions { target: true, group: None };
                let test = NewData::read(path, &dataset.schema, &options)?;
                if !test.unseen_classes.is_empty() {
                    return Err(RunError::UnseenClasses {
                        path: path.clone(),
                        column: settings.target()?.to_owned(),
                        classes: test.unseen_classes,
                    });
                }
                Some(test)
            }
        };
        Ok(Self { dataset, split, test })
    }

    /// Rows to test on.
    pub fn test_rows(&self) -> usize {
        self.test.as_ref().map_or(self.split.test.len(), |test| test.table.len())
    }
}

/// The parts of a table. Rows of an item are never in two of them: whoever has seen an answer on it has seen the item.
///
/// # Errors
/// Where shares cannot be, or there are items and no labels on which answers could agree.
pub(crate) fn split(dataset: &Dataset, shares: &SplitConfig) -> Result<Split, RunError> {
    Ok(match &dataset.items {
        None => Split::new(&dataset.target, shares)?,
        Some(_) if dataset.schema.task == Task::Regression => return Err(RunError::ItemsOfValues),
        Some(items) => Split::by_item(&dataset.target, &items.codes, shares)?,
    })
}
