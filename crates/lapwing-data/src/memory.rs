//! How much memory a table takes, and how much there is.

use std::path::PathBuf;

use lapwing_sample::Task;

use crate::input::InputKind;
use crate::picture;
use crate::schema::{Kind, Role, Schema};

/// Bytes per row beside features, target and source: which part a row is in, and the order of an epoch.
const ORDER: u64 = 28;
/// Of these, what is left when rows are on disk.
const ORDER_ON_DISK: u64 = 16;
/// Bytes per row when a finished run is judged and the order of an epoch is gone: digests of inputs, columns of one source
/// beside those of the others; and per row and class, what networks say. An estimate: a million rows of 20 numbers and two
/// classes took 231 MB in all, and 272 MB with two folds.
const JUDGED: u64 = 110;
const JUDGED_CLASS: u64 = 12;
/// Bytes of the name of an item, with what finds it.
const ITEM: u64 = 80;

/// The memory that a table may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that the process may have.
    pub limit: u64,
    /// Those of them that are not for the table: the program itself, a network and its batches.
    pub program: u64,
    /// Where rows go that do not fit; without, such a table is refused.
    pub disk: Option<Disk>,
}

/// Where rows go that do not fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// A directory.
    pub place: PathBuf,
    /// Decides the order in which they are dealt.
    pub seed: u64,
    /// The file in which they stay for the next time; without, they go with the process.
    pub keep: Option<PathBuf>,
}

impl Memory {
    /// What the program takes by itself.
    pub const PROGRAM: u64 = 64 << 20;

    /// What the machine has left, where it says so; a table that needs more is refused.
    pub fn available() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let free = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
        let number =
            |name: &str| -> Option<u64> { std::fs::read_to_string(name).ok()?.trim().parse().ok() };
        // A container may have less than its machine.
        let most = number("/sys/fs/cgroup/memory.max");
        let left =
            most.map(|most| most - number("/sys/fs/cgroup/memory.current").unwrap_or(0).min(most));
        let limit = left.map_or(free, |left| left.min(free));
        Some(Self { limit, program: Self::PROGRAM, disk: None })
    }
}

/// What a table takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// With all rows in memory.
    pub(crate) whole: u64,
    /// With rows on disk, but for what is kept of them in memory.
    pub(crate) on_disk: u64,
    /// 32-bit words of the columns of a row; `None` where there are columns that are not words.
    pub(crate) words: Option<u64>,
}

impl Need {
    pub(crate) fn new(schema: &Schema, rows: u64, numbered: bool, program: u64) -> Self {
        // What is not a row of numbers and categories is not on disk, even where its columns would be words.
        let mut words = (InputKind::of(schema) == InputKind::Table).then_some(0);
        let mut bytes = 0;
        for column in schema.features() {
            let own = match column.kind {
                Kind::Numeric | Kind::Date | Kind::Categorical => Some(1),
                Kind::Vector => Some(column.storage.width as u64),
                Kind::Text | Kind::Image | Kind::Series => None,
            };
            words = words.zip(own).map(|(words, own)| words + own);
            bytes += match (own, column.kind) {
                (Some(own), _) => 4 * own,
                (None, Kind::Image) => picture::numbers(column.storage.width) as u64,
                // How long texts and series are is known when they are read.
                (None, _) => 0,
            };
        }
        let target = match schema.task {
            Task::Classification => 4,
            Task::Regression => 8,
        };
        let with = |role| schema.columns.iter().find(|column| column.role == role);
        let times = if with(Role::Time).is_some() { 8 } else { 0 };
        let (item, items) = match with(Role::Item) {
            Some(column) => (4, ITEM * column.distinct.count.min(rows)),
            None => (0, 0),
        };
        let beside = target + 4 + item + times;
        let number = if numbered { 4 } else { 0 };
        let classes = match schema.task {
            Task::Classification => schema.target().map_or(0, |column| column.distinct.count),
            Task::Regression => 0,
        };
        let later = ORDER.max(JUDGED + JUDGED_CLASS.saturating_mul(classes));
        Self {
            whole: rows.saturating_mul(bytes + beside + number + later) + items + program,
            on_disk: rows * (beside + ORDER_ON_DISK) + items + program,
            words,
        }
    }
}

/// Bytes as people write them.
pub(crate) fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_people_write_them() {
        assert_eq!(shown(1_500), "2 kB");
        assert_eq!(shown(1_267_200), "1.3 MB");
        assert_eq!(shown(3_810_000_000), "3.8 GB");
        assert_eq!(shown(999_999_999), "1000 MB");
    }

    #[test]
    fn linux_says_how_much_memory_is_left() {
        if let Some(memory) = Memory::available() {
            assert!(memory.limit > 1 << 20 && memory.disk.is_none());
        }
    }
}
