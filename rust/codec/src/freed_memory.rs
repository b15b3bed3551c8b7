//! How long memory that was freed is kept before the system gets it back.
#![allow(unsafe_code)]

use std::ffi::c_long;
use std::time::Duration;

use crate::large_blocks;

/// The option of mimalloc 3 for it, in milliseconds; its bindings do not name it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// What users say it with, in milliseconds.
const SAID: &str = "MIMALLOC_PURGE_DELAY";

/// From now on the allocator keeps freed memory for that long, if the user does not say otherwise (`MIMALLOC_PURGE_DELAY`, in milliseconds).
pub fn keep_for(time: Duration) {
    if let Some(said) = std::env::var_os(SAID) {
        let milliseconds = said.to_str().and_then(|said| said.trim().parse().ok());
        large_blocks::keep_for(milliseconds.map_or(time, Duration::from_millis));
        return;
    }
    let milliseconds = c_long::try_from(time.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: `mi_option_set` takes no pointer, and checks the number of the option.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) };
    large_blocks::keep_for(time);
}

/// Gives back what the allocator kept of freed memory, of this thread and of the buffers of all threads.
///
/// Keeping it is right for scans, whose next batch takes the same memory again. Work that is bounded in memory and whose buffers differ in
/// size, such as a compaction, would hold several times what it uses.
pub fn give_back() {
    large_blocks::give_back();
    // SAFETY: `mi_collect` takes no pointer, may be called by any thread at any time, and frees nothing that is in use.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
