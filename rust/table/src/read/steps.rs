//! A filter in steps: conditions over different columns are asked one after the other, each of the rows that those before it left.
//!
//! First comes what costs least for what it drops: what it costs is known from the files, what it drops from the chunks before. A
//! condition that may fail comes last, and is asked of rows for which all others are true.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::BooleanBuffer;
use esker_expr::Predicate;

use crate::error::Result;

/// One step of a filter.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) predicate: Predicate,
    /// The columns of the table that no other step reads, by their places among all that the filter reads.
    pub(super) places: Vec<usize>,
    cost: u64,
    /// Whether it may fail: then it is the last.
    may_fail: bool,
    /// Whether it can be asked of each value that occurs instead of each row: of one column, and of values that no row has, too.
    by_value: bool,
    seen: AtomicU64,
    kept: AtomicU64,
}

impl Step {
    fn new(predicate: Predicate, columns: &[String], cost: u64) -> Step {
        let places = columns.iter().enumerate();
        let places = places.filter(|(_, name)| predicate.columns().contains(name));
        Step {
            places: places.map(|(place, _)| place).collect(),
            by_value: predicate.columns().len() == 1,
            predicate,
            cost,
            may_fail: false,
            seen: AtomicU64::new(0),
            kept: AtomicU64::new(0),
        }
    }

    /// What it costs to evaluate on a row, in bytes that could be read in the same time.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether it may fail for some row.
    pub(super) fn may_fail(&self) -> bool {
        self.may_fail
    }

    /// Whether it can be asked of each value of its column instead of each row.
    pub(super) fn is_by_value(&self) -> bool {
        self.by_value && self.places.len() == 1
    }

    /// What was seen of it: so many rows, of which it kept some.
    pub(super) fn note(&self, mask: &BooleanBuffer) {
        self.seen.fetch_add(mask.len() as u64, Ordering::Relaxed);
        self.kept.fetch_add(mask.count_set_bits() as u64, Ordering::Relaxed);
    }

    /// Whether it kept at most one row in `many` of those that were seen so far, if any were.
    pub(super) fn keeps_at_most(&self, many: u64) -> bool {
        let (seen, kept) = (self.seen.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        kept.saturating_mul(many) <= seen
    }

    /// The cost of a row that it drops; `bytes` are those of a row of its columns.
    fn cost_of_a_drop(&self, bytes: u64) -> f64 {
        let (seen, kept) = (self.seen.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        // Before anything was seen: half of the rows.
        let dropped = (seen.saturating_sub(kept) + 1) as f64 / (seen + 2) as f64;
        bytes.saturating_add(self.cost) as f64 / dropped
    }
}

/// The steps of a filter over `columns`, those that it reads: one where its conditions are to be asked `together`.
pub(super) fn steps_of(filter: &Predicate, columns: &[String], together: bool) -> Result<Vec<Step>> {
    if let ([_], Some(cost)) = (columns, filter.cost()?) {
        // Of one column nothing has to be taken apart.
        return Ok(vec![Step::new(filter.clone(), columns, cost)]);
    }
    let conjuncts = filter.conjuncts()?;
    let mut steps: Vec<Step> = Vec::new();
    for conjunct in conjuncts.total {
        let mut step = Step::new(conjunct.predicate, columns, conjunct.cost);
        // Conditions that share a column are one step.
        let mut apart = Vec::new();
        for other in steps {
            if other.places.iter().any(|place| step.places.contains(place)) {
                let cost = step.cost.saturating_add(other.cost);
                step = Step::new(other.predicate.and(&step.predicate)?, columns, cost);
            } else {
                apart.push(other);
            }
        }
        apart.push(step);
        steps = apart;
    }
    if let Some(rest) = conjuncts.rest {
        let read: BTreeSet<usize> = steps.iter().flat_map(|step| step.places.iter().copied()).collect();
        let mut step = Step::new(rest, columns, 0);
        step.places.retain(|place| !read.contains(place));
        step.may_fail = true;
        step.by_value = false;
        steps.push(step);
    }
    let has_constant = steps.iter().any(|step| step.places.is_empty() && !step.may_fail);
    // Conditions may fall away where they are put together (`b = 1 AND (c = 2 OR b = 1)`), and their columns with them, which the scan
    // counts on.
    let read: BTreeSet<usize> = steps.iter().flat_map(|step| step.places.iter().copied()).collect();
    if together || steps.len() < 2 || has_constant || read.len() < columns.len() {
        return Ok(vec![Step {
            by_value: filter.columns().len() == 1 && steps.iter().all(Step::is_by_value),
            ..whole(filter, columns)
        }]);
    }
    Ok(steps)
}

/// The filter in one step, which may fail as far as is known here.
fn whole(filter: &Predicate, columns: &[String]) -> Step {
    Step {
        may_fail: true,
        by_value: false,
        ..Step::new(filter.clone(), columns, 0)
    }
}

/// The order of the steps; `bytes` are those of a row of each step's columns.
pub(super) fn order(steps: &[Step], bytes: &[u64]) -> Vec<usize> {
    let mut ranks: Vec<(bool, f64, usize)> = steps
        .iter()
        .zip(bytes)
        .enumerate()
        .map(|(number, (step, bytes))| (step.may_fail, step.cost_of_a_drop(*bytes), number))
        .collect();
    ranks.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    ranks.into_iter().map(|(_, _, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn steps(filter: &str) -> Vec<Step> {
        let columns = ["a", "b", "c"];
        let fields = columns.map(|name| Field::new(name, DataType::Int64, true));
        let filter = Predicate::parse_sql(filter, &Schema::new(fields.to_vec())).unwrap();
        let read: Vec<String> = filter.columns().to_vec();
        steps_of(&filter, &read, false).unwrap()
    }

    #[test]
    fn test_conditions_of_other_columns_are_steps_of_their_own() {
        let places = |filter| steps(filter).iter().map(|step| step.places.clone()).collect::<Vec<_>>();
        assert_eq!(places("a > 1 AND b < 5"), [vec![0], vec![1]]);
        assert_eq!(places("a > 1 AND a < 5"), [vec![0]]);
        assert_eq!(places("a > 1 AND b < 5 AND a < 9"), [vec![1], vec![0]]);
        assert_eq!(places("a > 1 OR b < 5"), [vec![0, 1]]);
        assert_eq!(places("a > b AND c < 5"), [vec![0, 1], vec![2]]);
        // What may fail stays behind what stands before it, and reads only what is new.
        assert_eq!(places("a <> 0 AND 10 / a > b AND c < 5"), [vec![0], vec![1, 2]]);
        assert_eq!(places("10 / a > b AND c < 5"), [vec![0, 1, 2]]);
        let by_value = |filter| steps(filter).iter().map(Step::is_by_value).collect::<Vec<_>>();
        assert_eq!(by_value("a > 1 AND b < 5 AND 10 / c > 1"), [true, true, false]);
        assert_eq!(by_value("a > 1 AND a < 5"), [true]);
        assert_eq!(by_value("a > b AND c < 5"), [false, true]);
        assert_eq!(by_value("10 / a > 1"), [false]);
        assert_eq!(by_value("a > 1 AND 10 / a > 1"), [true, false]);
        // A column that falls away with its condition is read all the same.
        assert_eq!(places("a > 1 AND b = 3 AND (c = 2 OR b = 3)"), [vec![0, 1, 2]]);
    }

    #[test]
    fn test_what_drops_more_for_its_cost_comes_first() {
        let steps = steps("a > 1 AND b < 5 AND 10 / c > 1");
        assert_eq!(order(&steps, &[8, 2, 1]), [1, 0, 2]);
        steps[1].note(&BooleanBuffer::from(vec![true; 1000]));
        steps[0].note(&BooleanBuffer::from(vec![false; 1000]));
        assert_eq!(order(&steps, &[8, 2, 1]), [0, 1, 2]);
    }
}
