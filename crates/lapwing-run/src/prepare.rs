//! From settings to a table that is read, checked and split.

use lapwing_data::{Dataset, NewData, NewDataOptions, Split, SplitConfig};
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
        let shares = settings.split()?;
        let dataset = Dataset::read(settings.data()?, &settings.read_options()?)?;
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
