//! Decoders that may panic on invalid bytes: a panic is an error of the file, and nothing of it is printed.
//!
//! The `parquet` crate asserts what it expects of footers and pages. Its panics are caught; the hook of the process that would print them
//! is asked of the others alone.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::error::{DeltaError, Result};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

thread_local! {
    /// How many decoders of this thread run, one within the other.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
}

/// While it lives panics of its thread are not printed.
struct Quiet;

impl Quiet {
    fn new() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| set_hook(hushed(take_hook())));
        GUARDED.set(GUARDED.get().saturating_add(1));
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        GUARDED.set(GUARDED.get().saturating_sub(1));
    }
}

/// A hook that prints as another does, but no panic that is caught here.
fn hushed(printed: Hook) -> Hook {
    Box::new(move |panic| {
        if GUARDED.get() == 0 {
            printed(panic);
        }
    })
}

/// Runs a decoder: a panic means that the file is corrupt.
pub(crate) fn guarded<T>(path: &str, decode: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    let quiet = Quiet::new();
    let done = catch_unwind(AssertUnwindSafe(decode));
    drop(quiet);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(DeltaError::corrupt(path, format!("expected Parquet, found: {error}"))),
        Err(panic) => Err(DeltaError::corrupt(
            path,
            format!("expected Parquet, found bytes that no reader takes: {}", said(&*panic)),
        )),
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it gave up")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Arc;

    #[test]
    fn test_a_panic_of_a_decoder_is_an_error_and_is_not_printed() {
        let printed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&printed);
        // The hook of other tests stays behind it.
        guarded("x", || Ok(())).unwrap();
        let before = take_hook();
        set_hook(hushed(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() == Some(&"counted") {
                counted.fetch_add(1, Ordering::SeqCst);
            } else {
                before(panic);
            }
        })));
        let error = guarded::<()>("a.parquet", || panic!("counted")).unwrap_err();
        assert_eq!(printed.load(Ordering::SeqCst), 0);
        assert!(error.to_string().contains("a.parquet"), "{error}");
        assert!(error.to_string().contains("no reader takes: counted"), "{error}");
        let nested = guarded("x", || {
            assert!(guarded::<()>("y", || panic!("counted")).is_err());
            panic!("counted");
            #[allow(unreachable_code)]
            Ok(())
        });
        assert!(nested.is_err());
        assert_eq!(printed.load(Ordering::SeqCst), 0);
        assert!(catch_unwind(|| panic!("counted")).is_err());
        assert_eq!(printed.load(Ordering::SeqCst), 1);
    }
}
