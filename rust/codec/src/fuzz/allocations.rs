//! A counting allocator, with which tests assert that no input causes a huge allocation.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts the bytes that each thread holds. For `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct CountingAllocator;

fn add(bytes: usize) {
    // A thread that is ending may have dropped its counts already.
    let _ = CURRENT.try_with(|current| {
        current.set(current.get().wrapping_add(bytes));
        // Freeing what other threads allocated takes the count below zero, where it wraps to huge numbers, which are no peak.
        let held = current.get();
        let _ = PEAK.try_with(|peak| {
            if held > peak.get() && held <= usize::MAX / 2 {
                peak.set(held);
            }
        });
    });
}

fn remove(bytes: usize) {
    let _ = CURRENT.try_with(|current| current.set(current.get().wrapping_sub(bytes)));
}

// SAFETY: all memory is the system allocator's, asked for and given back with the caller's own layouts; the counts allocate nothing
// (constant thread locals without a destructor).
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is the one that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        remove(layout.size());
        add(new_size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, new_size) }
    }
}

/// Runs `run`; returns the peak of the bytes that this thread held meanwhile, beyond those it held before.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = CURRENT.with(|current| {
        // From zero, so that earlier frees of other threads' memory do not count.
        let before = current.get();
        current.set(0);
        before
    });
    PEAK.with(|peak| peak.set(0));
    let result = run();
    let peak = PEAK.with(Cell::get);
    CURRENT.with(|current| current.set(before.wrapping_add(current.get())));
    (result, peak)
}
