//! The adapter over an object store whose replies get lost.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::conformance::{paths, put};
use crate::object::{ObjectAdapter, ObjectOptions};
use crate::{block_on, PutOutcome, Store, StoreRef};

/// A store that loses the reply of each put while a flag is set, and that serves no suffix ranges.
#[derive(Debug, Default)]
struct Lossy {
    inner: InMemory,
    loses_replies: AtomicBool,
    sends_twice: AtomicBool,
    deletes_singly: AtomicBool,
    conflicts: AtomicBool,
    /// How many replies to deletes are lost, until all others are denied.
    denies_behind: Option<AtomicUsize>,
    /// How many replies to reads and listings break off.
    broken: AtomicUsize,
}

impl Lossy {
    fn breaks_off(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.broken.fetch_update(SeqCst, SeqCst, one_less).is_ok()
    }
}

impl fmt::Display for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lossy")
    }
}

#[async_trait]
impl ObjectStore for Lossy {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if self.conflicts.load(SeqCst) && matches!(opts.mode, PutMode::Create) {
            return Err(Error::AlreadyExists {
                path: location.to_string(),
                source: "409 Conflict".into(),
            });
        }
        let reply = self.inner.put_opts(location, payload.clone(), opts.clone()).await;
        if self.sends_twice.load(SeqCst) {
            return self.inner.put_opts(location, payload, opts).await;
        }
        if self.loses_replies.load(SeqCst) {
            return Err(Error::Generic {
                store: "lossy",
                source: "connection reset".into(),
            });
        }
        reply
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if matches!(options.range, Some(GetRange::Suffix(_))) {
            return Err(Error::NotSupported {
                source: "no suffix ranges".into(),
            });
        }
        let mut reply = self.inner.get_opts(location, options).await?;
        if self.breaks_off() {
            // As a part and the whole: the rest was asked for, from a store that serves no ranges.
            let both = Bytes::from("0120123456789");
            reply.payload = GetResultPayload::Stream(stream::once(async move { Ok(both) }).boxed());
        }
        Ok(reply)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if let Some(lost) = &self.denies_behind {
            let is_lost = lost.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
            let error = match is_lost {
                true => Error::Generic {
                    store: "lossy",
                    source: "no reply".into(),
                },
                false => Error::PermissionDenied {
                    path: "x".into(),
                    source: "status code: 403 Forbidden".into(),
                },
            };
            return stream::once(async move { Err(error) }).boxed();
        }
        if !self.deletes_singly.load(SeqCst) {
            return self.inner.delete_stream(locations);
        }
        // Only the first delete of a request succeeds.
        let refused = |at: usize, location: Result<Path>| match at {
            0 => location,
            _ => Err(Error::Generic {
                store: "lossy",
                source: "one at a time".into(),
            }),
        };
        let singly = locations.enumerate().map(move |(at, location)| refused(at, location));
        self.inner.delete_stream(singly.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.breaks_off() {
            let error = Error::Generic {
                store: "lossy",
                source: "Error getting list response body: connection reset".into(),
            };
            return stream::once(async move { Err(error) }).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn lossy() -> (Arc<Lossy>, StoreRef) {
    let inner = Arc::new(Lossy::default());
    let options = ObjectOptions {
        part_size: 1000,
        ..ObjectOptions::default()
    };
    let store = ObjectAdapter::new("lossy://bucket", inner.clone(), "t", options).unwrap();
    (inner, Arc::new(store))
}

#[test]
fn test_our_own_write_is_found_again_after_a_lost_reply() {
    let (inner, store) = lossy();
    inner.loses_replies.store(true, SeqCst);
    let create = |bytes: &'static str| block_on(store.put_if_absent("v/1", Bytes::from(bytes)));
    assert_eq!(create("ours").unwrap(), PutOutcome::Created);
    assert_eq!(create("theirs").unwrap(), PutOutcome::Exists);
    assert_eq!(block_on(store.get("v/1")).unwrap(), "ours");
}

#[test]
fn test_a_store_that_deletes_one_at_a_time_is_asked_for_each() {
    let (inner, store) = lossy();
    let named: Vec<String> = (0..2500).map(|n| format!("d/{n}")).collect();
    for singly in [false, true] {
        for path in &named {
            put(&store, path, "x");
        }
        inner.deletes_singly.store(singly, SeqCst);
        store.stats().take();
        block_on(store.delete_all(&named)).unwrap();
        assert_eq!(paths(&store, "d/"), Vec::<String>::new());
        assert_eq!(store.stats().take().write_requests, if singly { 2503 } else { 3 });
    }
}

#[test]
fn test_a_request_that_was_sent_twice_is_not_a_conflict() {
    let (inner, store) = lossy();
    inner.sends_twice.store(true, SeqCst);
    assert_eq!(
        block_on(store.put_if_absent("v/1", Bytes::from("ours"))).unwrap(),
        PutOutcome::Created
    );
    assert_eq!(
        block_on(store.put_if_absent("v/1", Bytes::from("other"))).unwrap(),
        PutOutcome::Exists
    );
}

#[test]
fn test_a_reply_that_breaks_off_is_asked_for_again() {
    let (inner, store) = lossy();
    put(&store, "x", "0123456789");
    inner.broken.store(1, SeqCst);
    assert_eq!(block_on(store.get("x")).unwrap(), "0123456789");
    inner.broken.store(1, SeqCst);
    let range = 2..5_u64;
    let read = block_on(store.get_ranges("x", std::slice::from_ref(&range))).unwrap();
    assert_eq!(read, [Bytes::from("234")]);
    inner.broken.store(1, SeqCst);
    assert_eq!(paths(&store, ""), ["x"]);
    inner.broken.store(usize::MAX, SeqCst);
    assert_eq!(block_on(store.get("x")).unwrap_err().kind(), "io");
    assert_eq!(block_on(store.list("")).unwrap_err().kind(), "io");
}

#[test]
fn test_a_delete_that_is_denied_may_have_been_done_before() {
    for (lost, code) in [(0, Some(13)), (1, None)] {
        let inner = Lossy {
            denies_behind: Some(AtomicUsize::new(lost)),
            ..Lossy::default()
        };
        let store = ObjectAdapter::new("lossy://bucket", Arc::new(inner), "t", ObjectOptions::default()).unwrap();
        let store: StoreRef = Arc::new(store);
        let error = block_on(store.delete("x")).unwrap_err();
        assert_eq!((error.kind(), error.os_code()), ("io", code), "{error}");
    }
}

#[test]
fn test_a_conflict_with_nothing_is_an_error() {
    let (inner, store) = lossy();
    inner.conflicts.store(true, SeqCst);
    let create = || block_on(store.put_if_absent("x", Bytes::from("ours")));
    assert_eq!(create().unwrap_err().kind(), "io");
    put(&store, "x", "theirs");
    assert_eq!(create().unwrap(), PutOutcome::Exists);
}

#[test]
fn test_a_store_that_cannot_count_from_the_end_is_asked_for_the_size_first() {
    let (_, store) = lossy();
    put(&store, "x", "0123456789");
    store.stats().take();
    let tail = block_on(store.get_tail("x", 3)).unwrap();
    assert_eq!((tail.bytes, tail.size), (Bytes::from("789"), 10));
    assert_eq!(store.stats().take().read_requests, 2);
}

#[test]
fn test_a_size_that_is_known_saves_the_question_for_it() {
    let options = ObjectOptions {
        counts_from_the_end: false,
        ..ObjectOptions::default()
    };
    let store = ObjectAdapter::new("lossy://bucket", Arc::new(Lossy::default()), "t", options).unwrap();
    let store: StoreRef = Arc::new(store);
    put(&store, "x", "0123456789");
    for (size, requests) in [(Some(10), 1), (None, 2)] {
        store.stats().take();
        let tail = block_on(store.get_tail_of("x", 3, size)).unwrap();
        assert_eq!((tail.bytes, tail.size), (Bytes::from("789"), 10));
        assert_eq!(store.stats().take().read_requests, requests);
    }
    // A wrong size gives other bytes or an error.
    assert_eq!(block_on(store.get_tail_of("x", 3, Some(9))).unwrap().bytes, "678");
    assert_eq!(
        block_on(store.get_tail_of("x", 3, Some(11))).unwrap_err().kind(),
        "corrupt"
    );
}

/// An object store whose pages of listings come in a given order.
#[derive(Debug)]
struct Pages {
    names: Vec<&'static str>,
    more: bool,
}

#[async_trait]
impl PaginatedListStore for Pages {
    async fn list_paginated(&self, _: Option<&str>, opts: PaginatedListOptions) -> Result<PaginatedListResult> {
        let described = |name: &&str| object_store::ObjectMeta {
            location: Path::from(format!("t/v/{name}")),
            last_modified: Default::default(),
            size: 1,
            e_tag: None,
            version: None,
        };
        let taken = opts.max_keys.unwrap_or(1000);
        Ok(PaginatedListResult {
            result: ListResult {
                common_prefixes: Vec::new(),
                objects: self.names.iter().take(taken).map(described).collect(),
            },
            page_token: self.more.then(|| "more".to_owned()),
        })
    }
}

#[test]
fn test_the_first_paths_are_one_page_unless_the_store_lists_out_of_order() {
    let open = |names: Vec<&'static str>, more: bool, ordered: bool| {
        let inner = Arc::new(InMemory::new());
        let store = ObjectAdapter::new("pages://b", inner, "t", ObjectOptions::default()).unwrap();
        let store: StoreRef = Arc::new(store.with_pages(Arc::new(Pages { names, more }), ordered));
        for name in ["v/1", "v/2", "v/3", "v/4"] {
            put(&store, name, "x");
        }
        block_on(store.list_first("v/", 2)).unwrap()
    };
    let first = open(vec!["1", "2", "3"], true, true);
    assert_eq!(
        (first.paths, first.complete),
        (vec!["v/1".to_owned(), "v/2".into()], false)
    );
    let all = vec!["v/1".to_owned(), "v/2".into(), "v/3".into(), "v/4".into()];
    for (names, more, ordered) in [
        // Out of order, empty though there is more, or from a store that is known not to list in order.
        (vec!["3", "1"], true, true),
        (vec![], true, true),
        (vec!["1", "2"], true, false),
    ] {
        let found = open(names, more, ordered);
        assert_eq!((found.paths, found.complete), (all.clone(), true));
    }
    // A whole listing needs no order.
    let whole = open(vec!["2", "1"], false, true);
    assert_eq!(
        (whole.paths, whole.complete),
        (vec!["v/1".to_owned(), "v/2".into()], true)
    );
}

/// An object store of twenty objects, the replies to whose listings break off at times.
#[derive(Debug)]
struct BrokenPages {
    /// Of which page, and how often.
    broken: (usize, AtomicUsize),
}

#[async_trait]
impl PaginatedListStore for BrokenPages {
    async fn list_paginated(&self, _: Option<&str>, opts: PaginatedListOptions) -> Result<PaginatedListResult> {
        let start = opts.page_token.map_or(0, |token| token.parse().unwrap());
        let (page, left) = &self.broken;
        if start == *page && left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(Error::Generic {
                store: "pages",
                source: "Error getting list response body: connection reset".into(),
            });
        }
        let end = (start + opts.max_keys.unwrap_or(7)).min(20);
        // A page may be empty though there is more.
        let shown = if start == 0 { 0..0 } else { start..end };
        let described = |n: usize| object_store::ObjectMeta {
            location: Path::from(format!("t/v/{n:02}")),
            last_modified: Default::default(),
            size: 1,
            e_tag: None,
            version: None,
        };
        Ok(PaginatedListResult {
            result: ListResult {
                common_prefixes: Vec::new(),
                objects: shown.map(described).collect(),
            },
            page_token: (end < 20).then(|| end.to_string()),
        })
    }
}

#[test]
fn test_a_page_of_a_listing_in_batches_that_breaks_off_is_asked_for_again() {
    let listed = |page: usize, times: usize, ordered: bool| {
        let pages = BrokenPages {
            broken: (page, AtomicUsize::new(times)),
        };
        let store = ObjectAdapter::new("pages://b", Arc::new(InMemory::new()), "t", ObjectOptions::default()).unwrap();
        let store = store.with_pages(Arc::new(pages), ordered);
        block_on(async { store.list_batches("v/").await?.try_collect::<Vec<_>>().await })
    };
    for (page, ordered) in [(0, true), (7, true), (14, false)] {
        let batches = listed(page, 2, ordered).unwrap();
        assert_eq!(batches.len(), 2);
        let found: Vec<String> = batches.concat().into_iter().map(|meta| meta.path).collect();
        assert_eq!(found, (7..20).map(|n| format!("v/{n:02}")).collect::<Vec<_>>());
        assert_eq!(listed(page, usize::MAX, ordered).unwrap_err().kind(), "io");
    }
}

#[test]
fn test_paths_that_start_alike_are_asked_for_alone() {
    for paginated in [true, false] {
        let inner = Arc::new(InMemory::new());
        let store = ObjectAdapter::new("pages://b", inner, "t", ObjectOptions::default()).unwrap();
        let names = vec!["ab2", "ab1", "b"];
        let store: StoreRef = match paginated {
            true => Arc::new(store.with_pages(Arc::new(Pages { names, more: false }), true)),
            false => Arc::new(store),
        };
        for name in ["v/ab2", "v/ab1", "v/b", "va"] {
            put(&store, name, "x");
        }
        store.stats().take();
        let found = block_on(store.list_starting("v/", "ab")).unwrap();
        assert_eq!(found, ["v/ab1", "v/ab2"]);
        assert_eq!(block_on(store.list_starting("v/", "zz")).unwrap(), [""; 0]);
    }
}

#[test]
fn test_a_long_object_is_written_in_parts() {
    let (inner, store) = lossy();
    let mut writer = block_on(store.writer("data/x")).unwrap();
    let wanted: Vec<u8> = (0..12_345_u32).map(|at| (at % 251) as u8).collect();
    for piece in wanted.chunks(777) {
        block_on(writer.write(Bytes::copy_from_slice(piece))).unwrap();
    }
    assert_eq!(block_on(writer.finish()).unwrap(), wanted.len() as u64);
    assert_eq!(block_on(store.get("data/x")).unwrap(), wanted);
    assert_eq!(paths(&store, "data/"), ["data/x"]);
    let stats = store.stats().take();
    assert_eq!((stats.bytes_written, stats.write_requests), (12_345, 14));

    inner.loses_replies.store(true, SeqCst);
    assert_eq!(block_on(store.put("y", Bytes::new())).unwrap_err().kind(), "io");
}
