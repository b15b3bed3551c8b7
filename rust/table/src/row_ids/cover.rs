//! An interval tree: which of many ranges hold a value. A sorted list with a binary tree of the greatest ends above it.
//!
//! ```text
//! ranges, by their first value   [0,9] [0,7] [3,4] [8,9]
//! greatest last value                9     9
//!                                       9
//! ```
//! Only subtrees whose greatest end reaches the value are entered, so a look-up takes logarithmic time for each range that holds it.

/// Ranges of values, both ends included, in the order of their first ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Cover {
    firsts: Vec<u64>,
    /// A binary tree in an array: the root at 1, the leaves from `leaves` on.
    greatest: Vec<u64>,
    leaves: usize,
    /// No two ranges share a value: the last one that starts at or before a value is the only one that can hold it.
    disjoint: bool,
}

impl Cover {
    /// The ranges must come sorted by their first value.
    pub fn new(ranges: &[(u64, u64)]) -> Self {
        let leaves = ranges.len().next_power_of_two();
        let mut greatest = vec![0; leaves.saturating_mul(2)];
        for (slot, (_, last)) in greatest.iter_mut().skip(leaves).zip(ranges) {
            *slot = *last;
        }
        for node in (1..leaves).rev() {
            let child = |node: usize| greatest.get(node).copied().unwrap_or(0);
            let most = child(2 * node).max(child(2 * node + 1));
            if let Some(slot) = greatest.get_mut(node) {
                *slot = most;
            }
        }
        let disjoint = ranges.windows(2).all(|pair| match pair {
            [(_, last), (first, _)] => last < first,
            _ => true,
        });
        Self {
            firsts: ranges.iter().map(|(first, _)| *first).collect(),
            greatest,
            leaves,
            disjoint,
        }
    }

    /// Calls `found` with the index of each range that holds `value`.
    pub fn for_each(&self, value: u64, mut found: impl FnMut(usize)) {
        let end = self.firsts.partition_point(|first| *first <= value);
        let Some(last) = end.checked_sub(1) else {
            return;
        };
        if self.disjoint {
            if self.reaches(self.leaves + last, value) {
                found(last);
            }
            return;
        }
        self.visit(1, 0, self.leaves, end, value, &mut found);
    }

    fn reaches(&self, node: usize, value: u64) -> bool {
        self.greatest.get(node).is_some_and(|greatest| *greatest >= value)
    }

    /// Goes through the `width` ranges below `node`, the first of which is at `start`, as far as `end`.
    fn visit(&self, node: usize, start: usize, width: usize, end: usize, value: u64, found: &mut impl FnMut(usize)) {
        if start >= end || !self.reaches(node, value) {
            return;
        }
        if width == 1 {
            found(start);
            return;
        }
        let half = width / 2;
        self.visit(2 * node, start, half, end, value, found);
        self.visit(2 * node + 1, start + half, half, end, value, found);
    }

    pub fn memory(&self) -> usize {
        (self.firsts.capacity() + self.greatest.capacity()) * size_of::<u64>()
    }
}
