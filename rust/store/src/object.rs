//! A store over any `object_store` implementation.

mod outcome;
mod writer;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{stream, StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use crate::cloud::Secrets;
use crate::coalesce::{coalesce, Coalesced};
use crate::error::{Result, StoreError};
use crate::path::{check_folder, check_object};
use crate::stats::StatsCounters;
use crate::store::{FirstPaths, ListedBatches, ObjectMeta, ObjectWriter, PutOutcome, Store, Tail, LISTED_AT_ONCE};

/// How often an idempotent request is sent that `object_store` itself does not retry.
const TRIES: usize = 4;

/// A read whose replies broke off for longer is not begun again: `object_store` has asked for the rest all the while.
const PATIENCE: Duration = Duration::from_secs(180);

/// The most objects that one request deletes: S3's limit. For stores with a lower one, `object_store` sends more requests.
const MOST_DELETED: usize = 1000;

/// How requests to an object store are made. The defaults are for one behind a network.
#[derive(Debug, Clone)]
pub struct ObjectOptions {
    /// Ranges with at most this many bytes between them are read in one request.
    pub coalesce_gap: u64,
    /// The longest read that joined ranges make, in bytes.
    pub coalesce_limit: u64,
    /// How many requests one call makes concurrently.
    pub concurrency: usize,
    /// Objects longer than this are written in pieces of this many bytes.
    pub part_size: usize,
    /// Whether a reply can be lost or a request be sent twice, so that "already exists" may mean our own write.
    pub replies_may_be_lost: bool,
    /// Whether the store serves suffix ranges (the last n bytes).
    pub counts_from_the_end: bool,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            coalesce_gap: 1 << 20,
            coalesce_limit: 16 << 20,
            concurrency: 16,
            part_size: 16 << 20,
            replies_may_be_lost: true,
            counts_from_the_end: true,
        }
    }
}

/// A store over an `object_store` implementation, below a prefix of it.
#[derive(Clone)]
pub struct ObjectAdapter {
    uri: String,
    prefix: String,
    inner: Arc<dyn ObjectStore>,
    options: ObjectOptions,
    stats: Arc<StatsCounters>,
    /// For listings by the page.
    pages: Option<Arc<dyn PaginatedListStore>>,
    /// Whether the store lists in byte order, and by what is no whole folder.
    is_ordered: bool,
    secrets: Arc<Secrets>,
}

// A derived Debug would print the inner store's settings with its credentials.
impl std::fmt::Debug for ObjectAdapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectAdapter")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl ObjectAdapter {
    /// A store over all objects of `inner` below the folder `prefix` (without a trailing `/`; empty for all). `uri` is for error
    /// messages and holds no credentials.
    pub fn new(
        uri: impl Into<String>,
        inner: Arc<dyn ObjectStore>,
        prefix: &str,
        options: ObjectOptions,
    ) -> Result<Self> {
        let mut prefix = prefix.to_owned();
        if !prefix.is_empty() {
            check_object(&prefix)?;
            prefix.push('/');
        }
        Ok(Self {
            uri: uri.into(),
            prefix,
            inner,
            options,
            stats: Arc::default(),
            pages: None,
            is_ordered: false,
            secrets: Arc::default(),
        })
    }

    /// Adds listings by the page from the same store; of first paths, and of those that start alike, only if it is `ordered`.
    pub(crate) fn with_pages(mut self, pages: Arc<dyn PaginatedListStore>, ordered: bool) -> Self {
        self.pages = Some(pages);
        self.is_ordered = ordered;
        self
    }

    fn ordered_pages(&self) -> Option<&Arc<dyn PaginatedListStore>> {
        self.pages.as_ref().filter(|_| self.is_ordered)
    }

    /// Adds secrets that messages must not show.
    pub(crate) fn hiding(mut self, secrets: Arc<Secrets>) -> Self {
        self.secrets = secrets;
        self
    }

    fn location(&self, path: &str) -> Result<Path> {
        check_object(path)?;
        Path::parse(format!("{}{path}", self.prefix)).map_err(|error| self.invalid(path, &error))
    }

    fn invalid(&self, path: &str, error: &object_store::path::Error) -> StoreError {
        StoreError::invalid_argument(self.full(path), error.to_string())
    }

    /// The path as error messages show it.
    fn full(&self, path: &str) -> String {
        format!("{}/{path}", self.uri.trim_end_matches('/'))
    }

    fn fail(&self, path: &str, doing: &str, error: object_store::Error) -> StoreError {
        outcome::sort_error(self.full(path), doing, error, &self.secrets)
    }

    async fn read_run(&self, path: &str, location: &Path, run: Range<u64>) -> Result<Bytes> {
        match self.read(path, location, Some(GetRange::Bounded(run.clone()))).await {
            // Stores answer a range that starts past the end with a generic error.
            Err(error @ StoreError::Io { .. }) => Err(self.past_the_end(path, location, &run).await.unwrap_or(error)),
            Ok((bytes, size)) if bytes.len() as u64 != run.end - run.start => {
                Err(short_read(&self.full(path), &run, size))
            }
            read => read.map(|(bytes, _)| bytes),
        }
    }

    /// The bytes of an object or of a range of it, and the object's size. Where a reply breaks off, `object_store` asks for the rest; but
    /// the object may be another one by then, or gone, or the store answers with more than that: then all is read again.
    async fn read(&self, path: &str, location: &Path, range: Option<GetRange>) -> Result<(Bytes, u64)> {
        let (mut tries, started) = (0, Instant::now());
        loop {
            tries += 1;
            let options = GetOptions::new().with_range(range.clone());
            let reply = self
                .inner
                .get_opts(location, options)
                .await
                .map_err(|error| self.fail(path, "read", error))?;
            let (size, promised) = (reply.meta.size, reply.range.end - reply.range.start);
            let error = match reply.bytes().await {
                Ok(bytes) => {
                    self.stats.add_read(bytes.len() as u64);
                    if bytes.len() as u64 == promised {
                        return Ok((bytes, size));
                    }
                    let found = bytes.len();
                    let message = format!("cannot read: expected {promised} bytes, found {found}; the reply broke off");
                    StoreError::io(self.full(path), message)
                }
                Err(error) => self.fail(path, "read", error),
            };
            if tries >= TRIES || started.elapsed() > PATIENCE {
                return Err(error);
            }
            pause(tries).await;
        }
    }

    /// A page of a listing.
    async fn page(
        &self,
        pages: &Arc<dyn PaginatedListStore>,
        prefix: &str,
        wanted: &str,
        (max_keys, page_token): (Option<usize>, Option<String>),
    ) -> Result<PaginatedListResult> {
        let mut tries = 0;
        loop {
            tries += 1;
            let options = PaginatedListOptions {
                max_keys,
                page_token: page_token.clone(),
                ..PaginatedListOptions::default()
            };
            self.stats.add_list();
            match pages.list_paginated(Some(wanted), options).await {
                Ok(page) => return Ok(page),
                Err(error) if tries < TRIES && outcome::is_broken_listing(&error) => pause(tries).await,
                Err(error) => return Err(self.fail(prefix, "list", error)),
            }
        }
    }

    /// The objects of the next page of a listing, and where it goes on.
    async fn next_batch(
        (store, prefix, token): (Self, String, Option<Option<String>>),
    ) -> Result<Option<(Vec<ObjectMeta>, (Self, String, Option<Option<String>>))>> {
        let (Some(pages), Some(mut token)) = (&store.pages, token) else {
            return Ok(None);
        };
        let wanted = format!("{}{prefix}", store.prefix);
        loop {
            // As many as the store gives at most: a request more costs a round trip.
            let page = store.page(pages, &prefix, &wanted, (None, token)).await?;
            let objects = page.result.objects.into_iter();
            let found: Vec<_> = objects.filter_map(|meta| described(&store.prefix, meta)).collect();
            token = page.page_token;
            if !found.is_empty() || token.is_none() {
                let next = token.map(Some);
                return Ok((!found.is_empty()).then_some((found, (store, prefix, next))));
            }
        }
    }

    async fn tail_of(&self, path: &str, nbytes: u64, size: u64) -> Result<Tail> {
        let range = size.saturating_sub(nbytes)..size;
        let mut bytes = self.get_ranges(path, std::slice::from_ref(&range)).await?;
        Ok(Tail {
            bytes: bytes.pop().unwrap_or_default(),
            size,
        })
    }

    async fn past_the_end(&self, path: &str, location: &Path, run: &Range<u64>) -> Option<StoreError> {
        let size = self.inner.head(location).await.ok()?.size;
        (run.end > size).then(|| short_read(&self.full(path), run, size))
    }

    async fn create(&self, location: &Path, bytes: Bytes) -> object_store::Result<()> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..Default::default()
        };
        self.inner.put_opts(location, bytes.into(), options).await.map(|_| ())
    }
}

/// The error for a read past an object's end.
pub(crate) fn short_read(path: &str, run: &Range<u64>, size: u64) -> StoreError {
    let message = format!(
        "expected bytes {}..{}, found an object of {size} bytes; it was cut short or something else was written over it",
        run.start, run.end
    );
    StoreError::corrupt(path, message)
}

#[async_trait]
impl Store for ObjectAdapter {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn stats(&self) -> &StatsCounters {
        &self.stats
    }

    fn is_far(&self) -> bool {
        self.options.replies_may_be_lost
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let location = self.location(path)?;
        let Coalesced { runs, pieces } = coalesce(
            &self.full(path),
            ranges,
            self.options.coalesce_gap,
            self.options.coalesce_limit,
        )?;
        let reads = futures::stream::iter(runs.into_iter().map(|run| self.read_run(path, &location, run)));
        let buffers: Vec<Bytes> = reads.buffered(self.options.concurrency.max(1)).try_collect().await?;
        Ok(pieces.iter().map(|piece| piece.cut(&buffers)).collect())
    }

    async fn get_tail_of(&self, path: &str, nbytes: u64, size: Option<u64>) -> Result<Tail> {
        match size {
            Some(size) if !self.options.counts_from_the_end => self.tail_of(path, nbytes, size).await,
            _ => self.get_tail(path, nbytes).await,
        }
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail> {
        let location = self.location(path)?;
        if !self.options.counts_from_the_end {
            let size = self.head(path).await?.size;
            return self.tail_of(path, nbytes, size).await;
        }
        let options = GetOptions::new().with_range(Some(GetRange::Suffix(nbytes)));
        match self.inner.get_opts(&location, options).await {
            Ok(reply) => {
                let size = reply.meta.size;
                let bytes = reply
                    .bytes()
                    .await
                    .map_err(|error| self.fail(path, "read the end", error))?;
                self.stats.add_read(bytes.len() as u64);
                if bytes.len() as u64 != nbytes.min(size) {
                    return self.tail_of(path, nbytes, size).await;
                }
                Ok(Tail { bytes, size })
            }
            // Not every store serves suffix ranges, and some refuse them for an empty object.
            Err(error) if outcome::may_be_of_range(&error) => {
                let size = self.head(path).await?.size;
                self.tail_of(path, nbytes, size).await
            }
            Err(error) => Err(self.fail(path, "read the end", error)),
        }
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        let location = self.location(path)?;
        let (bytes, _) = self.read(path, &location, None).await?;
        Ok(bytes)
    }

    async fn head(&self, path: &str) -> Result<ObjectMeta> {
        let location = self.location(path)?;
        let meta = self
            .inner
            .head(&location)
            .await
            .map_err(|error| self.fail(path, "look up", error))?;
        self.stats.add_read(0);
        let last_modified_us = Some(meta.last_modified.timestamp_micros());
        Ok(ObjectMeta {
            path: path.to_owned(),
            size: meta.size,
            last_modified_us,
        })
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        let location = self.location(path)?;
        self.stats.add_write(bytes.len() as u64);
        self.inner
            .put(&location, bytes.into())
            .await
            .map_err(|error| self.fail(path, "write", error))?;
        Ok(())
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        let location = self.location(path)?;
        let mut tries = 0;
        loop {
            tries += 1;
            self.stats.add_write(bytes.len() as u64);
            let error = match self.create(&location, bytes.clone()).await {
                Ok(()) => return Ok(PutOutcome::Created),
                Err(error) => error,
            };
            let exists = matches!(
                error,
                object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }
            );
            if !self.options.replies_may_be_lost && exists {
                return Ok(PutOutcome::Exists);
            }
            if !exists && !outcome::is_ambiguous(&error) {
                return Err(self.fail(path, "create", error));
            }
            match self.get(path).await {
                Ok(found) if found == bytes => return Ok(PutOutcome::Created),
                Ok(_) => return Ok(PutOutcome::Exists),
                // S3 may answer concurrent puts with 409, and then it may be that none of them has won.
                Err(missing) if exists && missing.is_not_found() && tries < TRIES => pause(tries).await,
                Err(unread) if exists && !unread.is_not_found() => return Ok(PutOutcome::Exists),
                Err(_) => return Err(self.fail(path, "create", error)),
            }
        }
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let location = self.location(path)?;
        Ok(Box::new(writer::PartWriter::new(
            Arc::clone(&self.inner),
            location,
            self.full(path),
            self.options.clone(),
            Arc::clone(&self.stats),
            Arc::clone(&self.secrets),
        )))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        let folder = Path::parse(format!("{}{prefix}", self.prefix)).map_err(|error| self.invalid(prefix, &error))?;
        let mut tries = 0;
        let listed = loop {
            tries += 1;
            self.stats.add_list();
            match self.inner.list(Some(&folder)).try_collect::<Vec<_>>().await {
                Ok(listed) => break listed,
                Err(error) if tries < TRIES && outcome::is_broken_listing(&error) => pause(tries).await,
                Err(error) => return Err(self.fail(prefix, "list", error)),
            }
        };
        let mut found: Vec<ObjectMeta> = listed
            .into_iter()
            .filter_map(|meta| described(&self.prefix, meta))
            .collect();
        found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    async fn list_batches(&self, prefix: &str) -> Result<ListedBatches> {
        check_folder(prefix)?;
        let folder = Path::parse(format!("{}{prefix}", self.prefix)).map_err(|error| self.invalid(prefix, &error))?;
        if self.pages.is_some() {
            let start = (self.clone(), prefix.to_owned(), Some(None));
            return Ok(stream::try_unfold(start, Self::next_batch).boxed());
        }
        self.stats.add_list();
        let (below, shown, secrets) = (self.prefix.clone(), self.full(prefix), Arc::clone(&self.secrets));
        let pages = self.inner.list(Some(&folder)).try_chunks(LISTED_AT_ONCE);
        let batches = pages.map(move |page| match page {
            Ok(page) => Ok(page.into_iter().filter_map(|meta| described(&below, meta)).collect()),
            Err(error) => Err(outcome::sort_error(shown.clone(), "list", error.1, &secrets)),
        });
        Ok(batches.boxed())
    }

    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        check_folder(prefix)?;
        let folder = Path::parse(format!("{}{prefix}", self.prefix)).map_err(|error| self.invalid(prefix, &error))?;
        let mut tries = 0;
        let found = loop {
            tries += 1;
            self.stats.add_list();
            match self.inner.list_with_delimiter(Some(&folder)).await {
                Ok(found) => break found,
                Err(error) if tries < TRIES && outcome::is_broken_listing(&error) => pause(tries).await,
                Err(error) => return Err(self.fail(prefix, "list", error)),
            }
        };
        let mut folders: Vec<String> = found
            .common_prefixes
            .iter()
            .filter_map(|path| Some(format!("{}/", path.as_ref().strip_prefix(&self.prefix)?)))
            .collect();
        folders.sort_unstable();
        Ok(folders)
    }

    async fn list_first(&self, prefix: &str, count: usize) -> Result<FirstPaths> {
        check_folder(prefix)?;
        if let Some(pages) = self.ordered_pages() {
            let wanted = format!("{}{prefix}", self.prefix);
            let page = self.page(pages, prefix, &wanted, (Some(count), None)).await?;
            let objects = page.result.objects.into_iter();
            let paths: Vec<String> = objects
                .filter_map(|meta| Some(meta.location.as_ref().strip_prefix(&self.prefix)?.to_owned()))
                .collect();
            let complete = page.page_token.is_none();
            // If a store that claims to list in byte order does not, the whole folder is listed.
            if complete || (!paths.is_empty() && paths.is_sorted()) {
                let mut paths = paths;
                paths.sort_unstable();
                return Ok(FirstPaths { paths, complete });
            }
        }
        let paths = self.list_paths(prefix).await?;
        Ok(FirstPaths { paths, complete: true })
    }

    async fn list_starting(&self, prefix: &str, start: &str) -> Result<Vec<String>> {
        check_folder(prefix)?;
        let wanted = format!("{}{prefix}{start}", self.prefix);
        let Some(pages) = self.ordered_pages() else {
            let mut found = self.list_paths(prefix).await?;
            found.retain(|path| path.strip_prefix(prefix).is_some_and(|name| name.starts_with(start)));
            return Ok(found);
        };
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let page = self.page(pages, prefix, &wanted, (None, token)).await?;
            let paths = page.result.objects.iter().map(|meta| meta.location.as_ref());
            let wanted = paths.filter(|path| path.starts_with(&wanted));
            found.extend(wanted.filter_map(|path| Some(path.strip_prefix(&self.prefix)?.to_owned())));
            token = page.page_token;
            if token.is_none() {
                break;
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let location = self.location(path)?;
        let mut tries = 0;
        loop {
            tries += 1;
            self.stats.add_write(0);
            match self.inner.delete(&location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => return Ok(()),
                Err(error) if tries < TRIES && outcome::is_worth_another_try(&error) => pause(tries).await,
                Err(error) if tries == 1 => return Err(self.fail(path, "delete", error)),
                // What is denied now may have been done by a try before, whose reply was none.
                Err(error) => return Err(self.fail(path, "delete", error).in_doubt()),
            }
        }
    }

    async fn delete_all(&self, paths: &[String]) -> Result<()> {
        let locations: Result<Vec<Path>> = paths.iter().map(|path| self.location(path)).collect();
        let mut left = paths;
        for batch in locations?.chunks(MOST_DELETED) {
            let (now, later) = left.split_at(batch.len());
            left = later;
            self.stats.add_write(0);
            let sent = futures::stream::iter(batch.to_vec()).map(Ok).boxed();
            let mut replies = self.inner.delete_stream(sent);
            let mut failed = false;
            while let Some(reply) = replies.next().await {
                failed |= !matches!(reply, Ok(_) | Err(object_store::Error::NotFound { .. }));
            }
            if failed {
                // Not every store deletes many at once, and a bulk delete may have refused some: single deletes tell why.
                let mut waiting = futures::stream::FuturesUnordered::new();
                for path in now {
                    waiting.push(self.delete(path));
                    if waiting.len() >= self.options.concurrency.max(1) {
                        waiting.try_next().await?;
                    }
                }
                while waiting.try_next().await?.is_some() {}
            }
        }
        Ok(())
    }
}

/// The metadata of a listed object, its path relative to the prefix.
fn described(below: &str, meta: object_store::ObjectMeta) -> Option<ObjectMeta> {
    Some(ObjectMeta {
        path: meta.location.as_ref().strip_prefix(below)?.to_owned(),
        size: meta.size,
        last_modified_us: Some(meta.last_modified.timestamp_micros()),
    })
}

/// Waits before try number `tries` + 1: exponential backoff with jitter.
async fn pause(tries: usize) {
    let most = 50_u64 << tries.min(6);
    tokio::time::sleep(Duration::from_millis(rand::random_range(most / 2..most))).await;
}
