//! One Tokio runtime for the whole process, created on first use.
//!
//! A fork copies memory but no threads: a child that inherits a runtime would wait for workers that do not exist. So each process id has
//! a runtime of its own, in a chain that only grows; a parent's runtime stays in the child's chain, unused, and is never dropped there,
//! for a drop would wait for its workers. No lock is held while a runtime is made: a fork in that moment would leave it locked for ever.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Result, StoreError};

struct Link {
    process: u32,
    runtime: Runtime,
    next: OnceLock<Box<Link>>,
}

static FIRST: OnceLock<Box<Link>> = OnceLock::new();

/// The process's runtime, with as many workers as there are cores.
pub fn runtime() -> Result<&'static Runtime> {
    let process = std::process::id();
    let mut made: Option<Box<Link>> = None;
    let mut place = &FIRST;
    loop {
        if place.get().is_none() {
            let link = match made.take() {
                Some(link) => link,
                None => Box::new(Link {
                    process,
                    runtime: build()?,
                    next: OnceLock::new(),
                }),
            };
            // Another thread may have set this place first; then ours moves on to the next place, or is dropped below.
            made = place.set(link).err();
        }
        let Some(link) = place.get() else { continue };
        if link.process == process {
            if let Some(unused) = made {
                unused.runtime.shutdown_background();
            }
            return Ok(&link.runtime);
        }
        place = &link.next;
    }
}

/// How many threads can run at once. Asked of the system once: it reads a dozen files for the answer.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn build() -> Result<Runtime> {
    let workers = cores();
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("esker")
        .enable_all()
        .build()
        .map_err(|error| StoreError::from_io("runtime", &format!("start {workers} worker threads"), error))
}

/// Waits for a future on the process's runtime. Not to be called from inside the runtime: there, await it.
pub fn block_on<T, E: From<StoreError>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    runtime()?.block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_all_threads_share_one_runtime() {
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| std::ptr::from_ref(runtime().unwrap()) as usize))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    }

    #[test]
    fn test_block_on_hands_back_the_result() {
        assert_eq!(block_on(async { Ok::<_, StoreError>(7) }).unwrap(), 7);
    }
}
