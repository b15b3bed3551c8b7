//! Long work that looks whether Python got a signal, such as Ctrl-C.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_store::{block_on, StoreError};
use esker_table::TableError;
use pyo3::prelude::*;

use crate::error::python;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// Runs work that ends soon after `stop` is set, which a signal does; returns its result, and the signal's exception.
pub(crate) fn stopping_at_signals<T: Send, F: Future<Output = T>>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> F + Send,
) -> crate::error::Result<(T, Option<PyErr>)> {
    let done = py.detach(|| {
        block_on(async {
            let mut work = pin!(work());
            let mut signal: Option<PyErr> = None;
            loop {
                tokio::select! {
                    done = &mut work => return Ok::<_, TableError>((done, signal)),
                    () = tokio::time::sleep(EVERY), if signal.is_none() => {
                        signal = Python::attach(|py| py.check_signals()).err();
                        stop.store(signal.is_some(), Ordering::Relaxed);
                    }
                }
            }
        })
    });
    let (done, signal) = done?;
    // One that came at the end.
    let signal = signal.or_else(|| py.check_signals().err());
    Ok((done, signal))
}

/// Runs work that changes nothing, and gives it up at a signal.
pub(crate) fn until_signals<T: Send, F: Future<Output = Result<T, TableError>>>(
    py: Python<'_>,
    work: impl FnOnce() -> F + Send,
) -> crate::error::Result<T> {
    Ok(or_signal(py, work)??)
}

/// The same of work that fails in its own way: its result, or the signal's exception.
pub(crate) fn or_signal<T: Send, E: From<StoreError> + Send, F: Future<Output = Result<T, E>>>(
    py: Python<'_>,
    work: impl FnOnce() -> F + Send,
) -> crate::error::Result<Result<T, E>> {
    let done = py.detach(|| {
        block_on(async {
            let mut work = pin!(work());
            loop {
                tokio::select! {
                    done = &mut work => return done.map(Ok),
                    () = tokio::time::sleep(EVERY) => {
                        if let Err(signal) = Python::attach(|py| py.check_signals()) {
                            return Ok(Err(signal));
                        }
                    }
                }
            }
        })
    });
    match done {
        Ok(Ok(done)) => Ok(Ok(done)),
        Ok(Err(signal)) => Err(python(signal)),
        Err(error) => Ok(Err(error)),
    }
}
