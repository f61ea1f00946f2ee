//! What rows are answers to, where several sources answer on the same item.

use std::collections::HashMap;

/// What rows are answers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    /// For every row an index into `names`.
    pub codes: Vec<u32>,
    /// In order of first appearance.
    pub names: Vec<String>,
}

/// The share of rows that must have the inputs of another source's row for a table to be one of answers, and be from
/// sources that give more than one label.
const SHARED: f64 = 0.5;
/// Pairs of rows of one source with the same inputs: how many must be expected by chance, and the share of them that there
/// may be.
const EXPECTED: f64 = 30.0;
const AGAIN: f64 = 0.1;

impl Items {
    /// Whether any of them has two answers.
    pub fn any_answered_twice(&self) -> bool {
        self.names.len() < self.codes.len()
    }

    /// Whether of some rows, given by the digests of their inputs and their sources, at least half as many have the inputs of
    /// another source's row as [`found`](Self::found) asks for. With the inputs of one, all rows that have them must be given.
    pub(crate) fn may_be(mut rows: Vec<(u64, u32)>) -> bool {
        rows.sort_unstable();
        let alike = rows.chunk_by(|a, b| a.0 == b.0);
        let shared = alike.filter(|alike| alike[0].1 != alike[alike.len() - 1].1);
        shared.map(<[_]>::len).sum::<usize>() as f64 >= SHARED / 2.0 * rows.len() as f64
    }

    /// Items where no column names them: rows with the same inputs (the same digest), if they are answers to the same
    /// question and not alike by chance. A source answers a question once; were it chance, rows of one source would be
    /// alike as often as rows of two. So half of the rows must have the inputs of another source's, and pairs of one source
    /// be missing that are to be expected. Rules that vote for one label each are left alone: what they make of the other
    /// labels cannot be learnt, and noise rates do better there. An item is called by the `number` of its first row.
    pub(crate) fn found(
        digests: &[u64],
        sources: &[u32],
        labels: &[u32],
        number: impl Fn(u32) -> u64,
    ) -> Option<Self> {
        let mut codes_of = HashMap::with_capacity(digests.len());
        let mut first: Vec<u32> = Vec::new();
        let codes: Vec<u32> = (0u32..)
            .zip(digests)
            .map(|(row, digest)| {
                *codes_of.entry(digest).or_insert_with(|| {
                    first.push(row);
                    first.len() as u32 - 1
                })
            })
            .collect();
        let mut answers: Vec<(u32, u32)> =
            codes.iter().zip(sources).map(|(&item, &source)| (item, source)).collect();
        answers.sort_unstable();
        let pairs = |count: usize| count as f64 * (count as f64 - 1.0) / 2.0;
        let (mut shared, mut alike, mut own) = (0, 0.0, 0.0);
        for item in answers.chunk_by(|a, b| a.0 == b.0) {
            alike += pairs(item.len());
            let of_one = item.chunk_by(|a, b| a.1 == b.1);
            own += of_one.map(|rows| pairs(rows.len())).sum::<f64>();
            shared += if item[0].1 == item[item.len() - 1].1 { 0 } else { item.len() };
        }
        // Rows of each source, the first of its labels, and whether it has others.
        let mut of_source: HashMap<u32, (usize, u32, bool)> = HashMap::new();
        for (&source, &label) in sources.iter().zip(labels) {
            let (rows, first, others) = of_source.entry(source).or_insert((0, label, false));
            *rows += 1;
            *others |= *first != label;
        }
        let chance = of_source.values().map(|source| pairs(source.0)).sum::<f64>()
            / pairs(sources.len()).max(1.0);
        let choosing: usize =
            of_source.values().filter(|source| source.2).map(|source| source.0).sum();
        let expected = alike * chance;
        let half = SHARED * digests.len() as f64;
        let answered = shared as f64 >= half
            && choosing as f64 >= half
            && expected >= EXPECTED
            && own <= AGAIN * expected;
        answered.then(|| {
            let names = first.iter().map(|&row| format!("row {}", number(row))).collect();
            Self { codes, names }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 items of which each of `sources` answers two in three.
    fn answers(sources: u32) -> (Vec<u64>, Vec<u32>) {
        let asked = (0..60u64).flat_map(|item| (0..sources).map(move |source| (item, source)));
        asked.filter(|&(item, source)| (item + u64::from(source)) % 3 > 0).unzip()
    }

    fn found((digests, sources): (Vec<u64>, Vec<u32>)) -> Option<Items> {
        let labels: Vec<u32> = digests.iter().map(|&digest| (digest % 2) as u32).collect();
        Items::found(&digests, &sources, &labels, |row| u64::from(row) + 1)
    }

    #[test]
    fn rules_that_vote_for_one_label_each_are_left_alone() {
        let (digests, sources) = answers(5);
        let votes: Vec<u32> = sources.iter().map(|source| source % 2).collect();
        assert_eq!(Items::found(&digests, &sources, &votes, u64::from), None);
    }

    #[test]
    fn rows_with_the_same_inputs_from_many_sources_are_answers_to_an_item() {
        let (digests, sources) = answers(5);
        let items = found((digests.clone(), sources)).unwrap();
        assert_eq!(items.names.len(), 60);
        assert_eq!(items.names[0], "row 1");
        let same =
            |a: usize, b: usize| (items.codes[a] == items.codes[b], digests[a] == digests[b]);
        for a in 0..digests.len() {
            for b in 0..a {
                let (item, inputs) = same(a, b);
                assert_eq!(item, inputs);
            }
        }
    }

    #[test]
    fn a_part_of_the_inputs_tells_answers_from_rows_of_one_source_each() {
        let (digests, sources) = answers(5);
        let rows: Vec<(u64, u32)> = digests.into_iter().zip(sources).collect();
        let part = |every| rows.iter().copied().filter(|row| row.0 % every == 0).collect();
        assert!(Items::may_be(rows.clone()) && Items::may_be(part(7)));
        assert!(!Items::may_be((0..100).map(|row| (row, row as u32 % 5)).collect()));
        // Twice in one source.
        assert!(!Items::may_be((0..100).map(|row| (row / 2, row as u32 / 20)).collect()));
    }

    #[test]
    fn rows_that_are_alike_because_there_are_few_kinds_of_rows_are_not_answers() {
        // Eight kinds of rows, ten sources: each has every kind many times.
        assert_eq!(found((0..800).map(|row| (row * 7919 % 8, (row % 10) as u32)).unzip()), None);
        // As many sources as rows: none can answer twice, and that says nothing.
        assert_eq!(found((0..800).map(|row| (row % 8, row as u32)).unzip()), None);
        // Ten sources with a copy of their own of each row.
        assert_eq!(found((0..800).map(|row| (row / 2, (row / 80) as u32)).unzip()), None);
    }

    #[test]
    fn a_few_rows_in_common_are_no_items_and_neither_are_none() {
        let (mut digests, mut sources) = answers(5);
        let own = digests.len() as u64 + 1;
        digests.extend(1000..1000 + own);
        sources.extend((0..own).map(|row| (row % 5) as u32));
        assert_eq!(found((digests, sources)), None);
        assert_eq!(found((vec![], vec![])), None);
        assert_eq!(found((vec![1], vec![0])), None);
    }

    #[test]
    fn a_source_that_answers_again_now_and_then_does_not_hide_the_items() {
        let (mut digests, mut sources) = answers(5);
        let (digest, source) = (digests[0], sources[0]);
        digests.push(digest);
        sources.push(source);
        assert!(found((digests, sources)).is_some());
    }
}
