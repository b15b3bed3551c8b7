//! The fragment reuse index: how rows moved at compactions, for indices that still hold their old addresses.
//!
//! ```text
//! version 8   {0, 1, 2, 3} -> {6}   {4, 5} -> {7}     old addresses that survived, by rank, are the rows of the new fragments
//! version 12  {7, 8} -> {9}
//! an index built over {0, 1, 2, 3} answers for {6}
//! ```
//!
//! It is an entry among the indices of a version, in tables without stable row ids. Its details (`FragmentReuseIndexDetails`) lie in the
//! entry, or in a file of its folder if they are large.

use std::collections::HashSet;

use bytes::Bytes;
use esker_store::store::StoreRef;
use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use crate::below::check_below;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::index::{Index, NewIndex};
use crate::manifest::Manifest;
use crate::raw::{push_length_delimited, push_varint, walk};

/// The name of its entry.
pub const NAME: &str = "__lance_frag_reuse";
const TYPE_URL: &str = "/lance.table.FragmentReuseIndexDetails";
/// Details above this go into a file.
const INLINE_BYTES: usize = 200 * 1024;
const FILE_NAME: &str = "details.binpb";
const WHAT: &str = "fragment reuse index";

const INLINE: u32 = 1;
const EXTERNAL: u32 = 2;
const VERSIONS: u32 = 1;
const DATASET_VERSION: u32 = 1;
const GROUPS: u32 = 3;
const ADDRESSES: u32 = 1;
const OLD: u32 = 2;
const NEW: u32 = 3;

/// All compactions that it knows, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FragmentReuse {
    versions: Vec<ReuseVersion>,
}

/// One compaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReuseVersion {
    /// The version that was compacted.
    dataset_version: u64,
    groups: Vec<ReuseGroup>,
    encoded: Bytes,
}

/// Fragments that others took the place of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReuseGroup {
    old: RoaringBitmap,
    new: RoaringBitmap,
}

/// What becomes of one group of fragments.
#[derive(Debug, Clone)]
pub(crate) struct MovedGroup<'a> {
    /// The rows that moved: for each old fragment the offsets that survived.
    pub survivors: RoaringTreemap,
    pub old: &'a [Fragment],
    pub new: &'a [Fragment],
}

/// The ids of fragments as a bitmap, as indices have them.
pub(crate) fn ids_of(fragments: &[Fragment]) -> RoaringBitmap {
    let ids = fragments
        .iter()
        .filter_map(|fragment| u32::try_from(fragment.id()).ok());
    ids.collect()
}

impl ReuseVersion {
    /// The compaction of `groups` on top of version `dataset_version`.
    pub fn new(dataset_version: u64, groups: &[MovedGroup<'_>]) -> Result<Self> {
        let mut out = Vec::new();
        push_number(&mut out, DATASET_VERSION, dataset_version);
        let digest = |fragment: &Fragment| {
            let mut out = Vec::new();
            push_number(&mut out, 1, fragment.id());
            push_number(&mut out, 2, fragment.physical_rows().unwrap_or(0));
            push_number(&mut out, 3, fragment.num_deletions().unwrap_or(0));
            out
        };
        for group in groups {
            let (mut message, mut addresses) = (Vec::new(), Vec::new());
            let failed = |error: std::io::Error| TableError::corrupt(WHAT, error.to_string());
            group.survivors.serialize_into(&mut addresses).map_err(failed)?;
            push_length_delimited(&mut message, ADDRESSES, &addresses);
            for fragment in group.old {
                push_length_delimited(&mut message, OLD, &digest(fragment));
            }
            for fragment in group.new {
                push_length_delimited(&mut message, NEW, &digest(fragment));
            }
            push_length_delimited(&mut out, GROUPS, &message);
        }
        Self::decode(&Bytes::from(out))
    }

    fn decode(message: &Bytes) -> Result<Self> {
        let (mut dataset_version, mut groups) = (0, Vec::new());
        for record in walk(message) {
            let record = record.map_err(|error| error.of(WHAT))?;
            match record.number {
                DATASET_VERSION => dataset_version = record.varint,
                GROUPS => groups.push(ReuseGroup::decode(&message.slice(record.payload))?),
                _ => {}
            }
        }
        Ok(Self {
            dataset_version,
            groups,
            encoded: message.clone(),
        })
    }
}

impl ReuseGroup {
    fn decode(message: &Bytes) -> Result<Self> {
        let (mut old, mut new) = (RoaringBitmap::new(), RoaringBitmap::new());
        for record in walk(message) {
            let record = record.map_err(|error| error.of(WHAT))?;
            let side = match record.number {
                OLD => &mut old,
                NEW => &mut new,
                _ => continue,
            };
            let mut id = 0;
            for inner in walk(message.get(record.payload).unwrap_or_default()) {
                let inner = inner.map_err(|error| error.of(WHAT))?;
                if inner.number == 1 {
                    id = inner.varint;
                }
            }
            let too_high = |_| TableError::corrupt(WHAT, format!("expected fragment ids below 2^32, found {id}"));
            side.insert(u32::try_from(id).map_err(too_high)?);
        }
        Ok(Self { old, new })
    }
}

fn push_number(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        push_varint(out, u64::from(number) << 3);
        push_varint(out, value);
    }
}

/// The entry among `indices`, if there is one.
pub(crate) fn entry_of(indices: &[Index]) -> Option<&Index> {
    indices.iter().find(|index| index.name() == NAME)
}

impl FragmentReuse {
    /// What the entry among `indices` says; empty if there is none.
    pub async fn load(store: &StoreRef, indices: &[Index]) -> Result<Self> {
        let Some(entry) = entry_of(indices) else {
            return Ok(Self::default());
        };
        if let Some(inline) = Self::inline(entry)? {
            return Ok(inline);
        }
        let details = details_of(entry)?;
        let (mut path, mut start, mut size) = (FILE_NAME.to_string(), 0, None);
        for record in walk(&details) {
            let record = record.map_err(|error| error.of(WHAT))?;
            if record.number != EXTERNAL {
                continue;
            }
            let place = details.slice(record.payload);
            for inner in walk(&place) {
                let inner = inner.map_err(|error| error.of(WHAT))?;
                match inner.number {
                    1 => path = String::from_utf8_lossy(&place.slice(inner.payload)).into_owned(),
                    2 => start = inner.varint,
                    3 => size = Some(inner.varint),
                    _ => {}
                }
            }
        }
        check_below(&path, "the details", WHAT)?;
        let path = format!("{}{path}", entry.folder());
        let length = store.head(&path).await?.size;
        let end = start.checked_add(size.unwrap_or_else(|| length.saturating_sub(start)));
        let end = end.filter(|end| *end <= length).ok_or_else(|| {
            TableError::corrupt(
                &path,
                format!("expected details from {start} on, found a file of {length} bytes"),
            )
        })?;
        let parts = store.get_ranges(&path, &[start..end]).await?;
        Self::decode(parts.first().unwrap_or(&Bytes::new()))
    }

    /// What an entry says; `None` if its details lie in a file.
    pub(crate) fn inline(entry: &Index) -> Result<Option<Self>> {
        if let Some(version) = entry.metadata().index_version.filter(|version| *version != 0) {
            return Err(TableError::unsupported(format!(
                "expected a fragment reuse index of version 0, found {version}; use a newer esker"
            )));
        }
        let details = details_of(entry)?;
        for record in walk(&details) {
            let record = record.map_err(|error| error.of(WHAT))?;
            match record.number {
                INLINE => return Self::decode(&details.slice(record.payload)).map(Some),
                EXTERNAL => return Ok(None),
                _ => {}
            }
        }
        Ok(Some(Self::default()))
    }

    fn decode(content: &Bytes) -> Result<Self> {
        let mut versions = Vec::new();
        for record in walk(content) {
            let record = record.map_err(|error| error.of(WHAT))?;
            if record.number != VERSIONS {
                return Err(TableError::unsupported(format!(
                    "expected a fragment reuse index of version 0, found field {} in it; use a newer esker",
                    record.number
                )));
            }
            versions.push(ReuseVersion::decode(&content.slice(record.payload))?);
        }
        Ok(Self { versions })
    }

    /// Whether it knows no compaction.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    pub(crate) fn push(&mut self, version: ReuseVersion) {
        self.versions.push(version);
    }

    /// The fragments that an index covers, from those that its entry lists. An index that covers a part of a group only does not cover
    /// what became of it.
    pub fn covered(&self, listed: &RoaringBitmap) -> RoaringBitmap {
        let mut covered = listed.clone();
        for group in self.versions.iter().flat_map(|version| &version.groups) {
            if covered.is_disjoint(&group.old) {
                continue;
            }
            let whole = group.old.is_subset(&covered);
            covered -= &group.old;
            if whole {
                covered |= &group.new;
            }
        }
        covered
    }

    /// `fragments` and all those that they were made from: an index may list these instead.
    pub fn with_ancestors(&self, fragments: &HashSet<u64>) -> HashSet<u64> {
        let mut all: RoaringBitmap = fragments.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
        for group in self
            .versions
            .iter()
            .rev()
            .flat_map(|version| version.groups.iter().rev())
        {
            if !all.is_disjoint(&group.new) {
                all |= &group.old;
            }
        }
        fragments
            .iter()
            .copied()
            .chain(all.into_iter().map(u64::from))
            .collect()
    }

    /// Drops the compactions that no index needs: an index needs one if it was built before and covers what became of its fragments.
    pub(crate) fn trim(&mut self, indices: &[Index]) -> Result<()> {
        let mut kept = Vec::with_capacity(self.versions.len());
        for (place, version) in self.versions.iter().enumerate() {
            let mut made = RoaringBitmap::new();
            for group in &version.groups {
                made |= &group.new;
            }
            for group in self.versions.iter().skip(place + 1).flat_map(|later| &later.groups) {
                if !made.is_disjoint(&group.old) {
                    made |= &group.new;
                }
            }
            let mut needed = false;
            for index in indices.iter().filter(|index| !index.is_system()) {
                let is_older = index.metadata().dataset_version <= version.dataset_version;
                let covers = match index.fragment_bitmap()? {
                    Some(listed) => !self.covered(&listed).is_disjoint(&made),
                    None => true,
                };
                needed |= is_older && covers;
            }
            if needed {
                kept.push(version.clone());
            }
        }
        self.versions = kept;
        Ok(())
    }

    /// Its entry over the fragments `ids`, with its file if that is needed; `None` if it knows nothing.
    pub(crate) async fn write(
        &self,
        store: &StoreRef,
        dataset_version: u64,
        ids: RoaringBitmap,
        created_at: u64,
    ) -> Result<Option<Index>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut content = Vec::new();
        for version in &self.versions {
            push_length_delimited(&mut content, VERSIONS, &version.encoded);
        }
        let uuid = Uuid::new_v4();
        let mut details = Vec::new();
        if content.len() <= INLINE_BYTES {
            push_length_delimited(&mut details, INLINE, &content);
        } else {
            let mut place = Vec::new();
            push_length_delimited(&mut place, 1, FILE_NAME.as_bytes());
            push_number(&mut place, 3, content.len().try_into().unwrap_or(u64::MAX));
            push_length_delimited(&mut details, EXTERNAL, &place);
            let path = format!("_indices/{uuid}/{FILE_NAME}");
            store.put(&path, Bytes::from(content)).await?;
        }
        let entry = Index::new(NewIndex {
            uuid,
            name: NAME.into(),
            dataset_version,
            fragment_ids: ids.into_iter().collect(),
            created_at: Some(created_at),
            details: Some((TYPE_URL.into(), details)),
            ..NewIndex::default()
        })?;
        Ok(Some(entry))
    }
}

fn details_of(entry: &Index) -> Result<Bytes> {
    let missing = || TableError::corrupt(WHAT, "expected details of it, found none");
    let details = entry.metadata().index_details.as_ref().ok_or_else(missing)?;
    Ok(Bytes::from(details.value.clone()))
}

impl Manifest {
    /// For each fragment of this version the UUIDs of the index segments that cover it, sorted; through the fragment reuse index.
    pub async fn index_coverage(&self, store: &StoreRef) -> Result<Vec<(u64, Vec<String>)>> {
        let indices = self.indices()?;
        let reuse = FragmentReuse::load(store, &indices).await?;
        let mut covers = Vec::new();
        for index in indices.iter().filter(|index| !index.is_system()) {
            if let (Some(listed), Some(uuid)) = (index.fragment_bitmap()?, index.uuid()) {
                covers.push((uuid.to_string(), reuse.covered(&listed)));
            }
        }
        covers.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut out = Vec::with_capacity(self.num_fragments());
        for summary in self.fragments.summaries() {
            let id = summary?.id;
            let covering = covers
                .iter()
                .filter(|(_, covered)| u32::try_from(id).is_ok_and(|id| covered.contains(id)));
            out.push((id, covering.map(|(uuid, _)| uuid.clone()).collect()));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
