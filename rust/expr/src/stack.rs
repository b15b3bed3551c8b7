//! A stack that is deep enough to plan any expression that the limits let through.
//!
//! Parser and planner call themselves for each level of an expression and take up to 20 kB each time: a hundred levels may be more than a
//! thread has. What they make is walked for each batch as well, but that takes far less.

use crate::error::{ExprError, Result};

/// Expressions of so many levels are planned on the caller's stack.
const SHALLOW: usize = 10;

/// Memory that is reserved, and used only as far as an expression is deep.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work`, on a stack of its own if the expression is deep.
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
