//! Where the values of a page lie among its nulls.

use std::ops::Range;

use crate::v2_1::levels::decode::Levels;
use crate::v2_1::levels::layers::Layers;

/// Values that follow one another, and the nulls after them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) values: usize,
    pub(crate) nulls: usize,
}

/// All values and nulls of some entries, where somebody wants to know.
#[derive(Debug)]
pub(crate) struct Runs {
    runs: Option<Vec<Run>>,
}

impl Runs {
    /// None so far; of no interest unless `wanted`.
    pub(crate) fn new(wanted: bool) -> Runs {
        Runs {
            runs: wanted.then(Vec::new),
        }
    }

    /// Adds those of `entries`. Entries that neither a value nor a null of an item stands for, as empty lists, are passed over.
    pub(crate) fn append(&mut self, levels: &Levels, layers: &Layers, entries: Range<usize>) {
        let Some(runs) = &mut self.runs else { return };
        let Some(def) = levels.def() else {
            let values = entries.len();
            runs.push(Run { values, nulls: 0 });
            return;
        };
        let most = layers.max_visible();
        let mut run = Run::default();
        for level in def.get(entries).unwrap_or_default() {
            match u16::from_le_bytes(*level) {
                0 => {
                    if run.nulls > 0 {
                        runs.push(std::mem::take(&mut run));
                    }
                    run.values = run.values.saturating_add(1);
                }
                level if level <= most => run.nulls = run.nulls.saturating_add(1),
                _ => {}
            }
        }
        runs.push(run);
    }

    /// In their order; `None` where nobody wanted them.
    pub(crate) fn get(&self) -> Option<&[Run]> {
        self.runs.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use esker_proto::lance::encodings21::RepDefLayer;
    use proptest::prelude::*;

    use super::*;
    use crate::v2_1::page::PageId;
    use crate::version::FileVersion;

    fn at() -> PageId {
        PageId {
            path: "test".into(),
            version: FileVersion::V2_2,
            column: 0,
            number: 0,
        }
    }

    proptest! {
        #[test]
        fn test_runs_are_the_values_and_nulls_in_their_order(
            def in prop::collection::vec(0..4_u16, 0..60),
            cuts in prop::collection::vec(0..60_usize, 0..4),
        ) {
            // Nulls of items and of structs around them; an empty list, a null one.
            let layers = Layers::new(
                &at(),
                &[RepDefLayer::RepdefNullableItem as i32, RepDefLayer::RepdefNullAndEmptyList as i32],
            )
            .unwrap();
            let mut levels = Levels::new(false, true);
            def.iter().for_each(|level| levels.push(0, *level));
            let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut.min(def.len())).collect();
            bounds.extend([0, def.len()]);
            bounds.sort_unstable();
            let mut found = Runs::new(true);
            bounds.windows(2).for_each(|pair| found.append(&levels, &layers, pair[0]..pair[1]));
            let runs = found.get().unwrap();
            let all: Vec<bool> = runs
                .iter()
                .flat_map(|run| [vec![true; run.values], vec![false; run.nulls]].concat())
                .collect();
            let expected: Vec<bool> = def.iter().filter(|level| **level <= 1).map(|level| *level == 0).collect();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn test_without_levels_all_are_values_and_nobody_asks_for_nothing() {
        let layers = Layers::new(&at(), &[RepDefLayer::RepdefAllValidItem as i32]).unwrap();
        let mut levels = Levels::new(false, false);
        (0..5).for_each(|_| levels.push(0, 0));
        let (mut found, mut unasked) = (Runs::new(true), Runs::new(false));
        for runs in [&mut found, &mut unasked] {
            runs.append(&levels, &layers, 1..4);
        }
        assert_eq!(found.get(), Some([Run { values: 3, nulls: 0 }].as_slice()));
        assert_eq!(unasked.get(), None);
    }
}
