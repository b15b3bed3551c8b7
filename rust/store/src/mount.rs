//! A store with other stores mounted in it: the base paths of a Lance table, whose files may lie outside of the table's root.
//!
//! | path | what it names |
//! |---|---|
//! | `_bases/{id}/{rest}` | `{rest}` in the store mounted as `id` |
//! | `_bases/{id}/data/{name}` | `{name}` there, if that store holds nothing but data files |
//! | `_bases/{id}//{rest}` | `{rest}` there, whatever else it holds |
//! | any other | the same path in the root |
//!
//! Mounts never shadow the root's own folders, since a table keeps nothing under `_bases/`. A listing covers the root or one mount.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use crate::error::{Result, StoreError};
use crate::stats::{IoStats, StatsCounters};
use crate::store::{FirstPaths, ListedBatches, ObjectMeta, ObjectWriter, PutOutcome, Store, StoreRef, Tail};
use crate::uri;

const FOLDER: &str = "_bases/";
const DATA: &str = "data/";

/// The path, in a store with mounts, of `path` in the store mounted as `id`.
pub fn mounted_path(id: u32, path: &str) -> String {
    format!("{FOLDER}{id}/{path}")
}

/// The path, in a store with mounts, of an object that is no file of a table.
pub fn mounted_object(id: u32, path: &str) -> String {
    format!("{FOLDER}{id}//{path}")
}

/// A path without its mount: what the mounted store calls it.
pub fn path_at_home(path: &str) -> &str {
    let mounted = path.strip_prefix(FOLDER).and_then(|rest| rest.split_once('/'));
    mounted.map_or(path, |(_, rest)| rest)
}

/// A mounted store.
#[derive(Debug, Clone)]
struct Mount {
    declared: String,
    store: StoreRef,
    holds_data_alone: bool,
}

/// A root and the stores mounted in it.
#[derive(Debug)]
pub struct Mounts {
    root: StoreRef,
    mounts: RwLock<BTreeMap<u32, Mount>>,
}

impl Mounts {
    /// A root in which nothing is mounted yet.
    pub fn new(root: StoreRef) -> Self {
        Self {
            root,
            mounts: RwLock::default(),
        }
    }

    /// Mounts `store` as `id`. `declared` is the base path as the table spells it; with `holds_data_alone`, data files lie in it directly
    /// and not in its folder `data/`, and it holds no other files.
    ///
    /// An id stands for one base path for good: it is an error if it stands for another one already.
    pub fn mount(&self, id: u32, declared: &str, store: StoreRef, holds_data_alone: bool) -> Result<()> {
        let mut mounts = self.mounts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = mounts.get(&id) {
            if known.declared == declared && known.holds_data_alone == holds_data_alone {
                return Ok(());
            }
            let message = format!(
                "expected base path {id} to be '{}' as before, found '{declared}'; open the table anew for this version",
                known.declared
            );
            return Err(StoreError::invalid_argument(self.root.uri(), message));
        }
        let declared = declared.to_owned();
        mounts.insert(
            id,
            Mount {
                declared,
                store,
                holds_data_alone,
            },
        );
        Ok(())
    }

    /// The store mounted as `id`: its base path as declared, and whether data files lie in it directly.
    pub fn mounted(&self, id: u32) -> Option<(String, bool)> {
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        mounts
            .get(&id)
            .map(|mount| (mount.declared.clone(), mount.holds_data_alone))
    }

    /// The counts of the root and all mounts since the last call.
    pub fn take_stats(&self) -> IoStats {
        self.sum(StatsCounters::take)
    }

    /// The counts of the root and all mounts since the last [`Mounts::take_stats`], without resetting them.
    pub fn peek_stats(&self) -> IoStats {
        self.sum(StatsCounters::peek)
    }

    fn sum(&self, count: fn(&StatsCounters) -> IoStats) -> IoStats {
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        let of_mounts = mounts.values().map(|mount| count(mount.store.stats()));
        of_mounts.fold(count(self.root.stats()), IoStats::plus)
    }

    /// The store that holds `path`, and the path there.
    fn find<'a>(&self, path: &'a str) -> Result<(StoreRef, &'a str)> {
        let Some(mounted) = path.strip_prefix(FOLDER) else {
            return Ok((self.root.clone(), path));
        };
        let of_mount = mounted
            .split_once('/')
            .and_then(|(id, rest)| Some((id.parse::<u32>().ok()?, rest)));
        let refuse = |message: String| Err(StoreError::invalid_argument(path, message));
        let Some((id, rest)) = of_mount else {
            return refuse("expected _bases/ID/PATH".into());
        };
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mount) = mounts.get(&id) else {
            return refuse(format!(
                "expected a base path that the table declares, found {id}; the manifest that names it is damaged"
            ));
        };
        if let Some(object) = rest.strip_prefix('/') {
            return Ok((mount.store.clone(), object));
        }
        if !mount.holds_data_alone {
            return Ok((mount.store.clone(), rest));
        }
        match rest.strip_prefix(DATA) {
            Some(name) => Ok((mount.store.clone(), name)),
            None => refuse(format!(
                "expected a data file under base path {id} ('{}'), which is not the root of a table",
                mount.declared
            )),
        }
    }
}

#[async_trait]
impl Store for Mounts {
    fn uri(&self) -> &str {
        self.root.uri()
    }

    fn base_of(&self, uri: &str) -> Option<(u32, String)> {
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        // The root of another table is none, as in pylance.
        let others = mounts.iter().filter(|(_, mount)| mount.holds_data_alone);
        let below = others.filter_map(|(id, mount)| Some((*id, uri::path_below(&mount.declared, uri)?)));
        below.min_by_key(|(_, path)| path.len())
    }

    fn stats(&self) -> &StatsCounters {
        self.root.stats()
    }

    fn is_far(&self) -> bool {
        self.root.is_far()
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (store, path) = self.find(path)?;
        store.get_ranges(path, ranges).await
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail> {
        let (store, path) = self.find(path)?;
        store.get_tail(path, nbytes).await
    }

    async fn get_tail_of(&self, path: &str, nbytes: u64, size: Option<u64>) -> Result<Tail> {
        let (store, path) = self.find(path)?;
        store.get_tail_of(path, nbytes, size).await
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        let (store, path) = self.find(path)?;
        store.get(path).await
    }

    async fn head(&self, path: &str) -> Result<ObjectMeta> {
        let (store, path) = self.find(path)?;
        store.head(path).await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        let (store, path) = self.find(path)?;
        store.put(path, bytes).await
    }

    async fn put_unsynced(&self, path: &str, bytes: Bytes) -> Result<()> {
        let (store, path) = self.find(path)?;
        store.put_unsynced(path, bytes).await
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        let (store, path) = self.find(path)?;
        store.put_if_absent(path, bytes).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let (store, path) = self.find(path)?;
        store.writer(path).await
    }

    async fn staging_writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let (store, path) = self.find(path)?;
        store.staging_writer(path).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list(there).await?;
        for meta in &mut found {
            meta.path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn list_batches(&self, prefix: &str) -> Result<ListedBatches> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default().to_owned();
        let found = store.list_batches(there).await?;
        if outside.is_empty() {
            return Ok(found);
        }
        let named = found.map_ok(move |mut batch| {
            for meta in &mut batch {
                meta.path.insert_str(0, &outside);
            }
            batch
        });
        Ok(named.boxed())
    }

    async fn list_paths(&self, prefix: &str) -> Result<Vec<String>> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list_paths(there).await?;
        for path in &mut found {
            path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list_folders(there).await?;
        for path in &mut found {
            path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn list_first(&self, prefix: &str, count: usize) -> Result<FirstPaths> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list_first(there, count).await?;
        for path in &mut found.paths {
            path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn list_starting(&self, prefix: &str, start: &str) -> Result<Vec<String>> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list_starting(there, start).await?;
        for path in &mut found {
            path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let (store, path) = self.find(path)?;
        store.delete(path).await
    }

    async fn delete_all(&self, paths: &[String]) -> Result<()> {
        if paths.iter().any(|path| path.starts_with(FOLDER)) {
            for path in paths {
                self.delete(path).await?;
            }
            return Ok(());
        }
        self.root.delete_all(paths).await
    }

    async fn list_unfinished(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let (store, there) = self.find(prefix)?;
        let outside = prefix.strip_suffix(there).unwrap_or_default();
        let mut found = store.list_unfinished(there).await?;
        for meta in &mut found {
            meta.path.insert_str(0, outside);
        }
        Ok(found)
    }

    async fn delete_unfinished(&self, path: &str) -> Result<()> {
        let (store, path) = self.find(path)?;
        store.delete_unfinished(path).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::block_on;

    fn memory(name: &str) -> StoreRef {
        let uri = format!("memory://mounts-{name}-{}", uuid::Uuid::new_v4().simple());
        uri::open(&uri, &Default::default(), false).unwrap()
    }

    #[test]
    fn test_a_path_leads_to_the_root_or_to_what_is_mounted() {
        let (root, base, flat) = (memory("root"), memory("base"), memory("flat"));
        let mounts = Arc::new(Mounts::new(root.clone()));
        mounts.mount(0, "base", base.clone(), false).unwrap();
        mounts.mount(7, "flat", flat.clone(), true).unwrap();
        block_on(async {
            let store: StoreRef = mounts.clone();
            for (path, holder, there) in [
                ("data/a", &root, "data/a"),
                ("_bases/0/data/a", &base, "data/a"),
                ("_bases/0/_deletions/b", &base, "_deletions/b"),
                ("_bases/7/data/a/x", &flat, "a/x"),
            ] {
                store.put(path, Bytes::from(path.to_owned())).await.unwrap();
                assert_eq!(holder.get(there).await.unwrap(), path.as_bytes());
                assert_eq!(store.get(path).await.unwrap(), path.as_bytes());
                assert_eq!(store.head(path).await.unwrap().size, path.len() as u64);
            }
            assert_eq!(store.list_paths("").await.unwrap(), ["data/a"]);
            assert_eq!(store.list_paths("_bases/0/data/").await.unwrap(), ["_bases/0/data/a"]);
            assert_eq!(
                store.list_paths("_bases/7/data/a/").await.unwrap(),
                ["_bases/7/data/a/x"]
            );
            assert_eq!(path_at_home("_bases/7/data/a/x"), "data/a/x");
            for path in ["_bases/1/data/a", "_bases/x/a", "_bases/0", "_bases/7/_deletions/b"] {
                assert_eq!(store.get(path).await.unwrap_err().kind(), "invalid_argument", "{path}");
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
        assert_eq!(mounts.take_stats().write_requests, 4);
        assert_eq!(mounts.peek_stats().write_requests, 0);
    }

    #[test]
    fn test_an_id_stands_for_one_place() {
        let mounts = Mounts::new(memory("root"));
        mounts.mount(1, "a", memory("a"), false).unwrap();
        mounts.mount(1, "a", memory("a"), false).unwrap();
        assert!(mounts.mount(1, "b", memory("b"), false).is_err());
        assert!(mounts.mount(1, "a", memory("a"), true).is_err());
        assert_eq!(mounts.mounted(1), Some(("a".into(), false)));
    }

    #[test]
    fn test_a_uri_lies_below_the_nearest_base_that_is_no_table() {
        let mounts = Mounts::new(memory("root"));
        for (id, declared, alone) in [
            (1, "file:///a", true),
            (2, "/a/b/", true),
            (3, "/a/b/c", false),
            (4, "s3a://bucket/x", true),
        ] {
            mounts.mount(id, declared, memory("base"), alone).unwrap();
        }
        for (uri, found) in [
            ("file:///a/y%20z", Some((1, "y z"))),
            ("/a/y%20z", Some((1, "y%20z"))),
            ("file:/a/b/c/d", Some((2, "c/d"))),
            ("s3://bucket/x/y", Some((4, "y"))),
            ("/ab", None),
            ("/a", None),
            ("/a/", None),
            ("/a/../b", None),
            ("/a//b", None),
            ("file:///a/%zz", None),
            ("gs://bucket/x/y", None),
        ] {
            let expected = found.map(|(id, path): (u32, &str)| (id, path.to_owned()));
            assert_eq!(mounts.base_of(uri), expected, "{uri}");
        }
    }

    #[test]
    fn test_objects_of_a_base_lie_beside_its_data_files() {
        let (mounts, base) = (Mounts::new(memory("root")), memory("base"));
        mounts.mount(7, "elsewhere", base.clone(), true).unwrap();
        block_on(async {
            base.put("a/b", "in it".into()).await.unwrap();
            assert_eq!(
                mounts.get_ranges(&mounted_object(7, "a/b"), &[0..5]).await.unwrap(),
                ["in it"]
            );
            assert!(mounts.get_ranges(&mounted_path(7, "a/b"), &[0..5]).await.is_err());
            for sneaky in ["../a", "/a/b", "a/../../b", ""] {
                assert!(
                    mounts.get_ranges(&mounted_object(7, sneaky), &[0..1]).await.is_err(),
                    "{sneaky}"
                );
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    }
}
