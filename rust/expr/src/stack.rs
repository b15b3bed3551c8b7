//! A stack that is large enough to plan any expression within the depth limits.
//!
//! Parser and planner recurse for each level of an expression and take up to 20 kB each time: a hundred levels may overflow a thread's
//! stack. Evaluation recurses, too, but takes far less.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;

use crate::error::{ExprError, Result};

/// Expressions of at most this many levels are planned on the caller's stack.
const SHALLOW: usize = 6;

/// The stack's size: reserved, but committed only as far as the recursion goes.
const STACK_BYTES: usize = 64 << 20;

/// The levels of an expression that has few, and more than any that is planned on the caller's stack otherwise.
pub(crate) fn depth_of(expr: &Expr) -> usize {
    levels(expr, SHALLOW).unwrap_or(usize::MAX)
}

/// The levels of an expression that has at most `most`.
fn levels(expr: &Expr, most: usize) -> Option<usize> {
    let below = most.checked_sub(1)?;
    let mut deepest = Some(0);
    // The visitor never fails.
    let _ = expr.apply_children(|child| {
        deepest = deepest.zip(levels(child, below)).map(|(one, other)| one.max(other));
        Ok(match deepest {
            Some(_) => TreeNodeRecursion::Continue,
            None => TreeNodeRecursion::Stop,
        })
    });
    deepest.map(|deepest| deepest + 1)
}

/// Runs `work`, on a thread with a large stack if the expression is deep.
pub(crate) fn run<T: Send>(depth: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if depth <= SHALLOW {
        return work();
    }
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("esker-expr".to_owned())
            .stack_size(STACK_BYTES);
        let worker = worker
            .spawn_scoped(scope, work)
            .map_err(|error| ExprError::unsupported(format!("cannot start a thread to plan an expression: {error}")))?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use datafusion_expr::lit;

    use super::*;

    #[test]
    fn test_few_levels_are_counted() {
        let deep = |levels: usize| (1..levels).fold(lit(true), |expr, _| expr.is_not_true());
        for depth in 1..=SHALLOW {
            assert_eq!(depth_of(&deep(depth)), depth);
            assert_eq!(
                depth_of(&deep(depth).and(lit(true))),
                if depth < SHALLOW { depth + 1 } else { usize::MAX }
            );
        }
        assert_eq!(depth_of(&deep(SHALLOW + 1)), usize::MAX);
        assert_eq!(depth_of(&deep(100)), usize::MAX);
    }

    #[test]
    fn test_what_is_shallow_stays_on_its_thread() {
        let here = std::thread::current().id();
        let runs_here = |depth| run(depth, || Ok(std::thread::current().id() == here)).unwrap();
        assert!(runs_here(SHALLOW));
        assert!(!runs_here(SHALLOW + 1));
    }
}
