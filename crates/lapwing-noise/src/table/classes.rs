//! The classes of a target as they stand in a table.

use std::collections::HashMap;

use super::finite;

/// The classes of a target, each by the text it first appeared as.
#[derive(Default)]
pub(super) struct Classes {
    numeric: bool,
    codes: HashMap<String, u32>,
    pub(super) names: Vec<String>,
}

impl Classes {
    pub(super) fn new(numeric: bool) -> Self {
        Self { numeric, ..Self::default() }
    }

    /// 1, 1.0 and +1 are one class where the target is numeric.
    fn canonical(&self, text: &str) -> String {
        match finite(text).filter(|_| self.numeric) {
            Some(value) => (value + 0.0).to_string(),
            None => text.to_owned(),
        }
    }

    pub(super) fn insert(&mut self, text: &str) -> u32 {
        let next = self.names.len() as u32;
        let code = *self.codes.entry(self.canonical(text)).or_insert(next);
        if code == next {
            self.names.push(text.to_owned());
        }
        code
    }

    pub(super) fn code(&self, text: &str) -> Option<u32> {
        self.codes.get(&self.canonical(text)).copied()
    }

    pub(super) fn text(&self, code: u32) -> String {
        self.names.get(code as usize).cloned().unwrap_or_default()
    }

    /// Numbers classes by value or alphabet; returns the new number of each old one.
    pub(super) fn sort(&mut self) -> Vec<u32> {
        let mut order: Vec<(String, u32)> = self.codes.drain().collect();
        let value = |name: &str| finite(name).filter(|_| self.numeric).unwrap_or(f64::INFINITY);
        order.sort_unstable_by(|a, b| {
            value(&a.0).total_cmp(&value(&b.0)).then_with(|| a.0.cmp(&b.0))
        });
        let mut new_codes = vec![0; order.len()];
        let mut names = Vec::with_capacity(order.len());
        for (new, (name, old)) in order.into_iter().enumerate() {
            new_codes[old as usize] = new as u32;
            names.push(std::mem::take(&mut self.names[old as usize]));
            self.codes.insert(name, new as u32);
        }
        self.names = names;
        new_codes
    }
}
