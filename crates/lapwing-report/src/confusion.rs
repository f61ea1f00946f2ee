//! A confusion as a table whose cells are shaded.

use lapwing_judge::Confusion;
use serde::Serialize;

use crate::{name, number};

/// Classes shown one by one; the rest are pooled.
const MOST: usize = 12;
/// Shades of a cell.
const SHADES: f64 = 6.0;

/// Given labels down, the model's across.
#[derive(Debug, Serialize)]
pub(crate) struct Matrix {
    classes: Vec<String>,
    rows: Vec<Vec<Shaded>>,
}

#[derive(Debug, Serialize)]
struct Shaded {
    text: String,
    /// 0 to 6, by the share of the given label's rows.
    shade: u8,
    /// Whether label and model agree here.
    agrees: bool,
}

impl Matrix {
    /// `None` when nothing was counted.
    pub(crate) fn new(confusion: &Confusion) -> Option<Self> {
        let (classes, counts) = pooled(confusion);
        if counts.iter().flatten().all(|n| *n == 0) {
            return None;
        }
        let named = classes.len() - usize::from(classes.len() < confusion.classes.len());
        let rows = counts.iter().enumerate().map(|(given, row)| {
            let total = row.iter().map(|n| *n as f64).sum::<f64>().max(1.0);
            let cell = |(predicted, n): (usize, &u64)| Shaded {
                text: number::count(*n),
                shade: (*n as f64 / total * SHADES).ceil() as u8,
                agrees: given == predicted && given < named,
            };
            row.iter().enumerate().map(cell).collect()
        });
        Some(Self { rows: rows.collect(), classes })
    }
}

/// The classes with most rows in their order, the rest as one.
fn pooled(confusion: &Confusion) -> (Vec<String>, Vec<Vec<u64>>) {
    let n = confusion.classes.len();
    let weight = |i: usize| {
        confusion
            .counts
            .iter()
            .enumerate()
            .map(
                |(g, row)| {
                    if g == i { row.iter().map(|n| *n as f64).sum() } else { row[i] as f64 }
                },
            )
            .sum::<f64>()
    };
    let weights: Vec<f64> = (0..n).map(weight).collect();
    let mut kept: Vec<usize> = (0..n).collect();
    if n > MOST {
        kept.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        kept.truncate(MOST - 1);
        kept.sort_unstable();
    }
    let mut place = vec![kept.len(); n];
    for (new, old) in kept.iter().enumerate() {
        place[*old] = new;
    }
    let size = kept.len() + usize::from(kept.len() < n);
    let mut counts = vec![vec![0_u64; size]; size];
    for (given, row) in confusion.counts.iter().enumerate() {
        for (predicted, count) in row.iter().enumerate() {
            let cell = &mut counts[place[given]][place[predicted]];
            *cell = cell.saturating_add(*count);
        }
    }
    let mut classes: Vec<String> =
        kept.iter().map(|i| name::label(&confusion.classes[*i])).collect();
    if size > kept.len() {
        classes.push(format!("{} others", number::count((n - kept.len()) as u64)));
    }
    (classes, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confusion(counts: Vec<Vec<u64>>) -> Confusion {
        Confusion {
            classes: (0..counts.len()).map(|i| format!("class {i}")).collect(),
            counts,
            reliable_agreement: None,
        }
    }

    #[test]
    fn cells_are_shaded_by_their_share_of_the_row() {
        let matrix = Matrix::new(&confusion(vec![vec![9, 1], vec![0, 1000]])).unwrap();
        let shades: Vec<Vec<u8>> =
            matrix.rows.iter().map(|row| row.iter().map(|c| c.shade).collect()).collect();
        assert_eq!(shades, [[6, 1], [0, 6]]);
        assert!(matrix.rows[0][0].agrees && !matrix.rows[0][1].agrees);
        assert_eq!(matrix.rows[1][1].text, "1,000");
    }

    #[test]
    fn many_classes_are_pooled_without_losing_a_row() {
        let counts: Vec<Vec<u64>> =
            (0..100).map(|i| (0..100).map(|j| if i == j { i } else { 1 }).collect()).collect();
        let before: u64 = counts.iter().flatten().sum();
        let (classes, pooled) = pooled(&confusion(counts));
        assert_eq!(classes.len(), MOST);
        assert_eq!(classes.last().unwrap(), "89 others");
        assert_eq!(classes[0], "class 89");
        assert_eq!(pooled.iter().flatten().sum::<u64>(), before);
    }

    #[test]
    fn the_pooled_corner_is_not_called_agreement() {
        let counts = vec![vec![1; 20]; 20];
        let matrix = Matrix::new(&confusion(counts)).unwrap();
        assert!(!matrix.rows.last().unwrap().last().unwrap().agrees);
    }

    #[test]
    fn nothing_counted_gives_no_table() {
        assert!(Matrix::new(&Confusion::default()).is_none());
        assert!(Matrix::new(&confusion(vec![vec![0]])).is_none());
    }

    #[test]
    fn counts_at_the_limit_do_not_overflow() {
        assert!(Matrix::new(&confusion(vec![vec![u64::MAX; 20]; 20])).is_some());
    }
}
