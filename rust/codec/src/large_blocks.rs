//! The process's allocator: mimalloc, in front of which large blocks that were freed wait for whoever wants one of about their size.
//!
//! mimalloc looks for room near where a thread found some last. Pages of a file are encoded by one thread and freed by another, in blocks of
//! megabytes that hardly ever have the same size: it took new memory instead of what it kept, and a write that uses 30 MB grew by 80. Here
//! all threads share what was freed. Where nothing fits, the oldest goes back to the system: as much as is taken while somebody is [`Sparing`],
//! and what would make the process much larger than its blocks in use ever did, as those of a scan of texts do not fit each other; before it
//! goes, a block that is rather too large is taken.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::hint::spin_loop;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libmimalloc_sys::{mi_free, mi_malloc_aligned, mi_realloc_aligned, mi_usable_size, mi_zalloc_aligned};

/// Smaller blocks are mimalloc's alone.
const LARGE: usize = 128 * 1024;

/// So are blocks that want to lie at multiples of more.
const WIDEST: usize = 4096;

/// The most blocks that wait.
const MOST: usize = 512;

/// The most bytes of blocks that wait.
const MOST_BYTES: usize = 1 << 30;

/// Blocks in use and those that wait may always have so many bytes together,
const LEAST_BYTES: usize = 48 << 20;

/// and so many more than there ever were in use, but no more than a quarter of those: blocks that fit are found more often.
const SPARE_BYTES: usize = 96 << 20;

/// Blocks that wait are taken for so many times fewer bytes, where new memory would take the place of others.
const ROOMY: usize = 2;

/// Blocks of so many bytes that grow are moved piece by piece, so that they are not in memory twice.
const HUGE: usize = 32 << 20;
const PIECE: usize = 4 << 20;

/// How often one looks whether another thread is done with the blocks, before one does without.
const LOOKS: usize = 256;

/// The allocator of the process. For `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Allocator;

/// While one of these is there, new memory takes the place of what waits: work that is bounded in memory. Scans rather keep it, as the next
/// one takes the same blocks.
#[derive(Debug)]
pub struct Sparing {
    /// Bytes that may wait nevertheless.
    kept: usize,
}

impl Sparing {
    /// Begins to spare memory.
    #[must_use]
    pub fn begin() -> Sparing {
        Sparing::keeping(0)
    }

    /// Begins to spare memory but for some bytes, which may wait: new memory has to be cleared, which takes time.
    #[must_use]
    pub fn keeping(kept: usize) -> Sparing {
        SHARED.kept.fetch_add(kept, Ordering::Relaxed);
        SHARED.sparing.fetch_add(1, Ordering::Relaxed);
        Sparing { kept }
    }
}

impl Drop for Sparing {
    fn drop(&mut self) {
        SHARED.sparing.fetch_sub(1, Ordering::Relaxed);
        SHARED.kept.fetch_sub(self.kept, Ordering::Relaxed);
    }
}

/// A block that waits. It is nobody else's.
#[derive(Clone, Copy)]
struct Block {
    memory: *mut u8,
    /// What can be used of it.
    size: usize,
    since: Option<Instant>,
}

impl Block {
    const NONE: Block = Block {
        memory: null_mut(),
        size: 0,
        since: None,
    };
}

/// The blocks that wait, the oldest first.
struct Blocks {
    blocks: [Block; MOST],
    len: usize,
    bytes: usize,
}

impl Blocks {
    const NONE: Blocks = Blocks {
        blocks: [Block::NONE; MOST],
        len: 0,
        bytes: 0,
    };

    /// The block that is the least too large for some bytes, of `most` bytes at most; of equals the youngest, which is in the caches.
    fn take(&mut self, size: usize, most: usize, align: usize) -> Option<Block> {
        let mut best: Option<(usize, usize)> = None;
        for (index, block) in self.blocks.iter().enumerate().take(self.len).rev() {
            let fits = (size..=most).contains(&block.size) && block.memory.align_offset(align) == 0;
            if fits && best.is_none_or(|(_, least)| block.size < least) {
                best = Some((index, block.size));
                if block.size - size <= size / 16 {
                    break;
                }
            }
        }
        self.remove(best?.0)
    }

    fn remove(&mut self, index: usize) -> Option<Block> {
        let block = *self.blocks.get(index).filter(|_| index < self.len)?;
        self.blocks.copy_within(index + 1..self.len, index);
        self.len -= 1;
        self.bytes -= block.size;
        Some(block)
    }

    /// The oldest one, if more bytes wait than may.
    fn oldest_beyond(&mut self, kept: usize) -> Option<Block> {
        if self.bytes <= kept {
            return None;
        }
        self.remove(0)
    }

    /// The oldest one, if it has to make room for a new block of some bytes, or has waited for too long.
    fn outdated(&mut self, size: usize, now: Instant, kept_for: Duration) -> Option<Block> {
        let oldest = self.blocks.first().filter(|_| self.len > 0)?;
        let waited = oldest
            .since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let full = self.len == MOST || self.bytes.saturating_add(size) > MOST_BYTES;
        if full || waited > kept_for {
            return self.remove(0);
        }
        None
    }

    fn put(&mut self, block: Block) -> bool {
        let Some(place) = self.blocks.get_mut(self.len).filter(|_| block.size <= MOST_BYTES) else {
            return false;
        };
        *place = block;
        self.len += 1;
        self.bytes += block.size;
        true
    }
}

/// The blocks of all threads. Nobody waits for them: another thread may have been within them when the process was forked.
struct Shared {
    busy: AtomicBool,
    blocks: UnsafeCell<Blocks>,
    kept_for_ms: AtomicU64,
    /// How many are sparing.
    sparing: AtomicUsize,
    /// Bytes that may wait while somebody is.
    kept: AtomicUsize,
    /// Bytes of the large blocks that are in use, and the most that ever were.
    used: AtomicUsize,
    most_used: AtomicUsize,
}

// SAFETY: `with` alone looks at the blocks, and `busy` lets one thread at a time do so. A block's memory is nobody's while it waits, so that any
// thread may take it.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    busy: AtomicBool::new(false),
    blocks: UnsafeCell::new(Blocks::NONE),
    kept_for_ms: AtomicU64::new(10_000),
    sparing: AtomicUsize::new(0),
    kept: AtomicUsize::new(0),
    used: AtomicUsize::new(0),
    most_used: AtomicUsize::new(0),
};

impl Shared {
    /// What `run` makes of the blocks; nothing if others are always at them. `run` neither panics nor allocates.
    fn with<T>(&self, run: impl FnOnce(&mut Blocks) -> T) -> Option<T> {
        let free = |_: &usize| {
            let was_busy = self.busy.swap(true, Ordering::Acquire);
            if was_busy {
                spin_loop();
            }
            !was_busy
        };
        (0..LOOKS).find(free)?;
        // SAFETY: `busy` was false and is true by us, so no other thread is here until it is set back below; `run` is no closure that comes
        // back here, as it allocates nothing.
        let made = run(unsafe { &mut *self.blocks.get() });
        self.busy.store(false, Ordering::Release);
        Some(made)
    }

    /// A block of so many bytes or some more, with whatever is in it.
    fn take(&self, size: usize, align: usize) -> Option<*mut u8> {
        let (mut found, waiting) = self.with(|blocks| {
            let found = blocks.take(size, size.saturating_add(size / 4), align);
            (found, blocks.bytes)
        })?;
        if found.is_none() {
            let used = self.used.load(Ordering::Relaxed).saturating_add(size);
            let most = self.most_used.load(Ordering::Relaxed);
            let most = most.saturating_add(SPARE_BYTES.min(most / 4)).max(LEAST_BYTES);
            let kept = most.saturating_sub(used);
            if waiting > kept {
                // New memory would take the place of some that waits: one that is rather too large costs less than that.
                found = self.with(|blocks| blocks.take(size, size.saturating_mul(ROOMY), align))?;
            }
            if found.is_some() {
                return found.map(|block| block.memory);
            }
            self.release_beyond(kept, usize::MAX);
            if self.sparing.load(Ordering::Relaxed) > 0 {
                self.release_beyond(self.kept.load(Ordering::Relaxed), size);
            }
        }
        found.map(|block| block.memory)
    }

    /// Gives the oldest blocks back to the system, `bytes` at least, while those that are left have more bytes than may wait.
    fn release_beyond(&self, kept: usize, bytes: usize) {
        let mut released = 0_usize;
        while released < bytes {
            let Some(block) = self.with(|blocks| blocks.oldest_beyond(kept)).flatten() else {
                break;
            };
            released = released.saturating_add(block.size);
            release(block);
        }
    }

    /// Counts a large block that is in use from now on.
    fn count(&self, memory: *mut u8) {
        if !memory.is_null() {
            // SAFETY: the block is mimalloc's.
            let size = unsafe { mi_usable_size(memory.cast::<c_void>()) };
            let used = self.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
            self.most_used.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// Keeps a block. False if it cannot be kept.
    fn put(&self, memory: *mut u8, size: usize) -> bool {
        let now = Instant::now();
        let kept_for = Duration::from_millis(self.kept_for_ms.load(Ordering::Relaxed));
        if kept_for.is_zero() {
            return false;
        }
        while let Some(block) = self.with(|blocks| blocks.outdated(size, now, kept_for)).flatten() {
            release(block);
        }
        let since = Some(now);
        self.with(|blocks| blocks.put(Block { memory, size, since }))
            .unwrap_or(false)
    }
}

/// From now on blocks wait that long at most.
pub(crate) fn keep_for(time: Duration) {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    SHARED.kept_for_ms.store(milliseconds, Ordering::Relaxed);
}

/// Gives all blocks that wait back to the system.
pub(crate) fn give_back() {
    while let Some(block) = SHARED.with(|blocks| blocks.remove(0)).flatten() {
        release(block);
    }
}

/// Gives the memory of a block to the system, and its addresses to mimalloc.
fn release(block: Block) {
    // SAFETY: the block came from mimalloc, is nobody's, and is in no list any more; what is in it is of no use.
    unsafe {
        forget(block.memory, block.size);
        mi_free(block.memory.cast());
    }
}

/// Gives the whole pages of some memory to the system, which stays mapped.
///
/// # Safety
///
/// All of it lies in one block of the caller's, and what is in it is of no use any more.
#[cfg(target_os = "linux")]
unsafe fn forget(memory: *mut u8, size: usize) {
    // SAFETY: it takes no pointer.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .unwrap_or(1 << 16)
        .max(1);
    let skipped = memory.align_offset(page);
    let whole = size.saturating_sub(skipped) / page * page;
    if whole > 0 {
        // SAFETY: the caller's promise.
        unsafe { libc::madvise(memory.add(skipped).cast(), whole, libc::MADV_DONTNEED) };
    }
}

/// Does nothing on other systems.
///
/// # Safety
///
/// None is needed.
#[cfg(not(target_os = "linux"))]
unsafe fn forget(_: *mut u8, _: usize) {}

/// Copies bytes from a block that is freed afterwards, and gives what was copied to the system.
///
/// # Safety
///
/// Both blocks are the caller's, have so many bytes, and are apart.
unsafe fn transfer(from: *mut u8, to: *mut u8, bytes: usize) {
    for start in (0..bytes).step_by(PIECE) {
        let size = PIECE.min(bytes - start);
        // SAFETY: the caller's promise; what was copied is of no use any more.
        unsafe {
            copy_nonoverlapping(from.add(start), to.add(start), size);
            forget(from.add(start), size);
        }
    }
}

/// Sizes of which blocks are asked for: an eighth apart at most, so that more of them fit each other.
fn rounded(size: usize) -> usize {
    let step = (1_usize << size.max(1).ilog2()) / 8;
    size.checked_next_multiple_of(step.max(1)).unwrap_or(size)
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= WIDEST
}

// SAFETY: memory is mimalloc's, or a block of it that was freed and waits, at least as large and as aligned as asked for; it is taken out of the
// list before it is given to anybody, and goes into it, or back to mimalloc, when it is freed. Nothing here panics or allocates.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            // SAFETY: an alignment of a layout is a power of two.
            return unsafe { mi_malloc_aligned(layout.size(), layout.align()) }.cast();
        }
        let memory = match SHARED.take(layout.size(), layout.align()) {
            Some(memory) => memory,
            // SAFETY: as above.
            None => unsafe { mi_malloc_aligned(rounded(layout.size()), layout.align()) }.cast(),
        };
        SHARED.count(memory);
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            if let Some(memory) = SHARED.take(layout.size(), layout.align()) {
                // SAFETY: the block has so many bytes, and is ours.
                unsafe { memory.write_bytes(0, layout.size()) };
                SHARED.count(memory);
                return memory;
            }
        }
        // SAFETY: as above.
        let memory: *mut u8 = unsafe { mi_zalloc_aligned(layout.size(), layout.align()) }.cast();
        if is_large(layout) {
            SHARED.count(memory);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: the caller gives a block back that came from here, so mimalloc knows it.
            let size = unsafe { mi_usable_size(memory.cast::<c_void>()) };
            SHARED.used.fetch_sub(size, Ordering::Relaxed);
            if SHARED.put(memory, size) {
                return;
            }
        }
        // SAFETY: as above; nobody uses it any more.
        unsafe { mi_free(memory.cast()) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !is_large(layout) && !is_large(wanted) {
            // SAFETY: the block is the caller's, with this alignment.
            return unsafe { mi_realloc_aligned(memory.cast(), new_size, layout.align()) }.cast();
        }
        if is_large(layout) && is_large(wanted) {
            // SAFETY: as in `dealloc`.
            let size = unsafe { mi_usable_size(memory.cast::<c_void>()) };
            if new_size <= size && new_size >= size / 2 {
                return memory;
            }
        }
        // SAFETY: the caller's promise is the one that `alloc` and `dealloc` want; both blocks have the bytes that are copied, and are apart.
        unsafe {
            let made = self.alloc(wanted);
            if !made.is_null() && layout.size() >= HUGE && new_size >= layout.size() && is_large(layout) {
                SHARED
                    .used
                    .fetch_sub(mi_usable_size(memory.cast::<c_void>()), Ordering::Relaxed);
                transfer(memory, made, layout.size());
                mi_free(memory.cast());
            } else if !made.is_null() {
                copy_nonoverlapping(memory, made, layout.size().min(new_size));
                self.dealloc(memory, layout);
            }
            made
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All tests of the crate run on it.
    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// A block that is held, and the byte of which it is full.
    struct Held {
        memory: *mut u8,
        layout: Layout,
        fill: u8,
    }

    impl Held {
        fn new(size: usize, align: usize, fill: u8, zeroed: bool) -> Held {
            let layout = Layout::from_size_align(size, align).unwrap();
            let memory = if zeroed {
                unsafe { Allocator.alloc_zeroed(layout) }
            } else {
                unsafe { Allocator.alloc(layout) }
            };
            assert_eq!(memory.align_offset(align), 0);
            if zeroed {
                assert!(unsafe { std::slice::from_raw_parts(memory, size) }
                    .iter()
                    .all(|byte| *byte == 0));
            }
            unsafe { memory.write_bytes(fill, size) };
            Held { memory, layout, fill }
        }

        fn check(&self, len: usize) {
            let bytes = unsafe { std::slice::from_raw_parts(self.memory, len) };
            assert!(
                bytes.iter().all(|byte| *byte == self.fill),
                "another block's bytes in this one"
            );
        }

        fn resize(&mut self, size: usize) {
            self.check(self.layout.size());
            self.memory = unsafe { Allocator.realloc(self.memory, self.layout, size) };
            assert_eq!(self.memory.align_offset(self.layout.align()), 0);
            self.check(self.layout.size().min(size));
            self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
            unsafe { self.memory.write_bytes(self.fill, size) };
        }

        fn free(self) {
            self.check(self.layout.size());
            unsafe { Allocator.dealloc(self.memory, self.layout) };
        }
    }

    fn run(turns: &[(u8, usize, u8, u8)]) {
        let mut held: Vec<Held> = Vec::new();
        for (turn, (what, size, align, fill)) in turns.iter().enumerate() {
            let at = turn.wrapping_mul(7919) % held.len().max(1);
            match what % 5 {
                0 | 1 => held.push(Held::new(*size, 1 << (align % 14), *fill, what % 2 == 1)),
                2 if !held.is_empty() => held[at].resize(*size),
                3 if !held.is_empty() => held.swap_remove(at).free(),
                4 if turn % 16 == 0 => give_back(),
                _ => {}
            }
        }
        held.into_iter().for_each(Held::free);
    }

    fn turns(most: usize) -> impl Strategy<Value = Vec<(u8, usize, u8, u8)>> {
        let size = prop_oneof![1..300_usize, 100_000..200_000_usize, 400_000..2_000_000_usize];
        prop::collection::vec((any::<u8>(), size, any::<u8>(), any::<u8>()), 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn test_blocks_keep_their_bytes(turns in turns(80)) {
            run(&turns);
        }

        #[test]
        fn test_blocks_of_several_threads_keep_their_bytes(all in prop::collection::vec(turns(40), 4)) {
            std::thread::scope(|scope| {
                for turns in &all {
                    scope.spawn(|| run(turns));
                }
            });
        }
    }

    #[test]
    fn test_huge_blocks_keep_their_bytes_as_they_grow() {
        let mut held = Held::new(HUGE - 1, 64, 7, false);
        for size in [HUGE, HUGE + PIECE / 2, 3 * HUGE + 12_345, HUGE / 2] {
            held.resize(size);
        }
        held.free();
    }

    #[test]
    fn test_a_block_that_another_thread_frees_is_taken_again() {
        let mut blocks = Blocks::NONE;
        let block = |size: usize| Block {
            memory: std::ptr::without_provenance_mut(size * 4096),
            size,
            since: Some(Instant::now()),
        };
        for size in [1_000_000, 1_200_000, 2_000_000, 1_100_000] {
            assert!(blocks.put(block(size)));
        }
        // The least too large, and none that is too large by more than a quarter.
        let take = |blocks: &mut Blocks, size: usize| blocks.take(size, size / 4 * 5, 64).map(|block| block.size);
        assert_eq!(take(&mut blocks, 950_000), Some(1_000_000));
        assert_eq!(take(&mut blocks, 1_010_000), Some(1_100_000));
        assert_eq!(take(&mut blocks, 1_010_000), Some(1_200_000));
        assert!(take(&mut blocks, 1_010_000).is_none());
        assert_eq!((blocks.len, blocks.bytes), (1, 2_000_000));
        assert!(blocks.oldest_beyond(2_000_000).is_none());
        assert!(blocks.oldest_beyond(1_999_999).is_some());
        assert!(blocks.oldest_beyond(0).is_none());
        assert!(blocks.put(block(2_000_000)));
        // The oldest goes when it has waited, or where there is no room.
        let now = Instant::now();
        assert!(blocks.outdated(1, now, Duration::from_secs(60)).is_none());
        assert!(blocks.outdated(MOST_BYTES, now, Duration::from_secs(60)).is_some());
        while blocks.put(block(1)) {}
        assert_eq!(blocks.len, MOST);
        assert!(blocks
            .outdated(1, now + Duration::from_secs(61), Duration::from_secs(60))
            .is_some());
    }

    fn empty() -> Shared {
        Shared {
            busy: AtomicBool::new(false),
            blocks: UnsafeCell::new(Blocks::NONE),
            kept_for_ms: AtomicU64::new(60_000),
            sparing: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            most_used: AtomicUsize::new(0),
        }
    }

    #[test]
    fn test_blocks_that_wait_make_nothing_larger_than_it_was() {
        let shared = empty();
        let waiting = || shared.with(|blocks| blocks.bytes).unwrap();
        let mut made = Vec::new();
        // Each is larger than the one before by more than a quarter, and none is used for long.
        let mut size = 1_usize << 20;
        while size < 64 << 20 {
            assert!(shared.take(size, 64).is_none());
            let memory = unsafe { mi_malloc_aligned(size, 64) }.cast::<u8>();
            shared.count(memory);
            made.push(size);
            let usable = unsafe { mi_usable_size(memory.cast()) };
            shared.used.fetch_sub(usable, Ordering::Relaxed);
            assert!(shared.put(memory, usable));
            // Blocks are somewhat larger than asked for.
            assert!(
                waiting() <= LEAST_BYTES.max(usable / 2 * 3) / 4 * 5,
                "{} wait",
                waiting()
            );
            size += size / 2;
        }
        assert!(made.iter().sum::<usize>() > 2 * waiting());
        shared.release_beyond(0, usize::MAX);
        assert_eq!(waiting(), 0);
    }

    #[test]
    fn test_a_block_that_is_rather_too_large_is_taken_before_others_go() {
        let shared = empty();
        let size = LEAST_BYTES / 4;
        for _ in 0..4 {
            let memory = unsafe { mi_malloc_aligned(size, 64) }.cast::<u8>();
            assert!(shared.put(memory, size));
        }
        let waiting = || shared.with(|blocks| (blocks.len, blocks.bytes)).unwrap();
        let taken = shared.take(size / 2, 64).unwrap();
        assert_eq!(waiting(), (3, 3 * size));
        // There is room for new memory beside those that wait, and a block of a third is no use for these.
        assert!(shared.take(size / 2, 64).is_none());
        assert!(shared.take(size / 3, 64).is_none());
        assert_eq!(waiting(), (3, 3 * size));
        // SAFETY: it is mimalloc's, and nobody else's.
        unsafe { mi_free(taken.cast()) };
        shared.release_beyond(0, usize::MAX);
    }

    #[test]
    fn test_who_holds_the_blocks_keeps_nobody_waiting() {
        let shared = Shared {
            busy: AtomicBool::new(true),
            blocks: UnsafeCell::new(Blocks::NONE),
            kept_for_ms: AtomicU64::new(1000),
            sparing: AtomicUsize::new(1),
            kept: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            most_used: AtomicUsize::new(0),
        };
        assert!(shared.take(1_000_000, 64).is_none());
        assert!(!shared.put(null_mut(), 1_000_000));
    }
}
