//! Values that are found when they are first asked for, and kept.
//!
//! A fork copies memory but no threads: a cell within which a thread finds its value is locked in the child for ever. So nobody finds a value
//! within a cell: what was found is put into it, and two threads may find the same at once.

use std::future::Future;
use std::sync::OnceLock;

use tokio::sync::OnceCell;

/// What is in the cell, or what `find` finds.
pub fn kept<T>(cell: &OnceLock<T>, find: impl FnOnce() -> T) -> &T {
    if let Some(known) = cell.get() {
        return known;
    }
    let found = find();
    cell.get_or_init(|| found)
}

/// A value that takes long to find: one task does, and the others of its process wait for it. In a forked child nobody waits, as the task may
/// be one of the parent's.
#[derive(Debug, Clone)]
pub struct FoundOnce<T> {
    process: u32,
    found: OnceCell<T>,
    in_fork: OnceLock<T>,
}

impl<T> Default for FoundOnce<T> {
    fn default() -> Self {
        FoundOnce {
            process: std::process::id(),
            found: OnceCell::new(),
            in_fork: OnceLock::new(),
        }
    }
}

impl<T> FoundOnce<T> {
    /// The value, which `find` finds if nobody has.
    pub async fn get_or_try_init<E, F: Future<Output = Result<T, E>>>(
        &self,
        find: impl FnOnce() -> F,
    ) -> Result<&T, E> {
        if let Some(known) = self.found.get().or_else(|| self.in_fork.get()) {
            return Ok(known);
        }
        if std::process::id() == self.process {
            return self.found.get_or_try_init(find).await;
        }
        let found = find().await?;
        Ok(self.in_fork.get_or_init(|| found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_value_is_found_once() {
        let cell = OnceLock::new();
        assert_eq!((*kept(&cell, || 1), *kept(&cell, || 2)), (1, 1));
    }

    #[test]
    fn test_one_task_finds_what_others_wait_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cell = FoundOnce::default();
        let get = |value: Result<u8, &'static str>| runtime.block_on(cell.get_or_try_init(|| async { value })).copied();
        assert_eq!(get(Err("fails")), Err("fails"));
        assert_eq!((get(Ok(1)), get(Ok(2))), (Ok(1), Ok(1)));
    }

    #[test]
    fn test_a_forked_process_does_not_wait_for_its_parents_tasks() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cell = FoundOnce {
            process: 0,
            ..FoundOnce::default()
        };
        runtime.block_on(async {
            // A task that is in the midst of it, and stays there.
            let stuck = cell.found.get_or_try_init(std::future::pending::<Result<u8, ()>>);
            let found = async { cell.get_or_try_init(|| async { Ok::<_, ()>(3) }).await.copied() };
            tokio::select! {
                biased;
                _ = stuck => panic!("it never ends"),
                found = found => assert_eq!(found, Ok(3)),
            }
        });
        assert_eq!(
            runtime.block_on(cell.get_or_try_init(|| async { Err("asked") })),
            Ok(&3)
        );
    }
}
