//! A stack that is large enough to plan any expression within the depth limits.
//!
//! Parser and planner recurse for each level of an expression and take up to 20 kB each time: a hundred levels may overflow a thread's
//! stack. Evaluation recurses, too, but takes far less.

use crate::error::{ExprError, Result};

/// Expressions of at most this many levels are planned on the caller's stack.
const SHALLOW: usize = 10;

/// The stack's size: reserved, but committed only as far as the recursion goes.
const STACK_BYTES: usize = 64 << 20;

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
