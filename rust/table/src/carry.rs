//! Brings a Rewrite on top of a version in which rows of the fragments that it replaces were deleted since it was computed.
//!
//! ```text
//! old fragments, read version   ab.def   ghij     x: deleted, . deleted before
//! new fragment                  abdefghij         the live rows in order: the rank of a row among them is its place
//! old fragments, base           ab.dxf   ghxj
//! new fragment                  abdxfghxj         with a deletion file
//! ```
//!
//! An old fragment that is gone lost all rows: the conflict rules refuse a Rewrite whose fragments were replaced. What became of the old
//! addresses is noted in the fragment reuse index where an index may still hold them.

use std::collections::{HashMap, HashSet};

use esker_file::Dictionaries;
use esker_store::store::StoreRef;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::apply::CommitParams;
use crate::deletion::{write_deletions, DeletionVector};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_reuse::{entry_of, ids_of, FragmentReuse, MovedGroup, ReuseVersion};
use crate::index::Index;
use crate::manifest::Manifest;
use crate::operation::{Operation, Rewrite, RewriteGroup};
use crate::read::TableFiles;
use crate::transaction::Transaction;

const MILLIS: i64 = 1_000_000;

/// A Rewrite as it is right on top of one version, and what it does to the fragment reuse index.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedRewrite {
    pub(crate) rewrite: Rewrite,
    pub(crate) reuse: Reuse,
}

/// The fragment reuse index around a Rewrite.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reuse {
    /// What it said before.
    pub before: FragmentReuse,
    /// For each group of the Rewrite, if the moves of its rows are noted, all of its old fragments.
    pub noted: Vec<Option<RoaringBitmap>>,
    /// Its new entry.
    pub entry: Option<Index>,
}

/// A group with the survivors of its old fragments: their offsets that have a row in a new fragment.
struct Carried {
    group: RewriteGroup,
    /// As of the read version, those that are gone included.
    old: Vec<Fragment>,
    survivors: RoaringTreemap,
    /// For each new fragment its deleted rows.
    deleted: Vec<RoaringBitmap>,
}

impl Transaction {
    /// This change as it is on top of `base`, if it is a Rewrite: rows deleted since its read version are deleted in its new fragments.
    /// Writes their deletion files.
    pub async fn carried(
        &self,
        store: &StoreRef,
        base: &Manifest,
        params: &CommitParams,
    ) -> Result<Option<CarriedRewrite>> {
        let Operation::Rewrite(rewrite) = self.operation()? else {
            return Ok(None);
        };
        let files = TableFiles::new(store.clone());
        let mut there = HashMap::new();
        for fragment in base.fragments() {
            let fragment = fragment?;
            there.insert(fragment.id(), fragment);
        }
        let is_behind = self.read_version() < base.version();
        let changed = |old: &Fragment| {
            let now = there.get(&old.id());
            now.map_or(is_behind, |now| now.deletion_file() != old.deletion_file())
        };
        let mut olds = rewrite.groups.iter().flat_map(|group| &group.old_fragments);
        let counts = |old: &Fragment| old.physical_rows().is_some();
        // Which rows were live matters only if some are not any more, or if an index is told where they are now.
        let reads = olds.clone().any(changed) || (notes_moves(base, &rewrite)? && olds.all(counts));
        let mut groups = Vec::with_capacity(rewrite.groups.len());
        for group in &rewrite.groups {
            groups.push(carry(&files, group, &there, (is_behind, reads)).await?);
        }
        let mut carried = Rewrite {
            groups: groups.iter().map(|carried| carried.group.clone()).collect(),
            ..rewrite
        };
        let numbered = carried.numbered(base)?;
        for ((group, numbered), carried) in carried.groups.iter_mut().zip(&numbered).zip(&groups) {
            let new = group.new_fragments.iter_mut().zip(&numbered.new_fragments);
            for ((fragment, numbered), deleted) in new.zip(&carried.deleted) {
                if !deleted.is_empty() {
                    let rows = DeletionVector::new(deleted.clone());
                    let written = write_deletions(&files, numbered, &rows, base.version()).await?;
                    *fragment = fragment.clone().with_deletion_file(written.deletion_file().cloned());
                }
            }
        }
        let reuse = reuse(store, base, &carried, &groups, params).await?;
        Ok(Some(CarriedRewrite {
            rewrite: carried,
            reuse,
        }))
    }

    /// Like [`Transaction::apply_with`], with the table's store: a Rewrite is carried ([`Transaction::carried`]), and spilled lineage is
    /// read where the change needs it.
    pub async fn apply_in(
        &self,
        store: &StoreRef,
        base: Option<&Manifest>,
        params: &CommitParams,
        dictionaries: &Dictionaries,
    ) -> Result<Manifest> {
        if let Some(base) = base {
            if let Some(carried) = self.carried(store, base, params).await? {
                return self.apply_rewrite(base, carried, params, dictionaries);
            }
        }
        let operation = with_lineage_inline(store, self.operation()?).await?;
        let needed = match base {
            Some(base) if base.fragments.has_spilled_lineage()? => {
                needed_lineage(&operation)?.map(|needed| (base, needed))
            }
            _ => None,
        };
        let Some((spilled, needed)) = needed else {
            return self.apply_operation(operation, base, params, dictionaries);
        };
        let inline = spilled.with_lineage_inline(store, |id| needed.holds(id)).await?;
        let next = self.apply_operation(operation, Some(&inline), params, dictionaries)?;
        next.with_lineage_spilled(spilled, &inline)
    }
}

/// The fragments whose ids and versions a change needs.
enum Needed {
    All,
    Of(HashSet<u64>),
}

impl Needed {
    fn holds(&self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::Of(ids) => ids.contains(&id),
        }
    }
}

/// An Update whose writer does not say which versions created the rows that moved needs them of all rows that are there; one that changed
/// some rows in place needs the versions of the others. No other change needs any.
fn needed_lineage(operation: &Operation) -> Result<Option<Needed>> {
    let Operation::Update(update) = operation else {
        return Ok(None);
    };
    for fragment in &update.new_fragments {
        if fragment.has_row_ids() && !fragment.has_moved_lineage()? {
            return Ok(Some(Needed::All));
        }
    }
    let changed: HashSet<u64> = update.updated_fragment_offsets.keys().copied().collect();
    Ok((!changed.is_empty()).then_some(Needed::Of(changed)))
}

/// The change with the ids of its new rows inline, as another writer may have spilled them. Where it says all of rows that moved, they stay.
async fn with_lineage_inline(store: &StoreRef, mut operation: Operation) -> Result<Operation> {
    let is_update = matches!(operation, Operation::Update(_));
    let new = match &mut operation {
        Operation::Append { fragments } | Operation::Overwrite { fragments, .. } => fragments,
        Operation::Update(update) => &mut update.new_fragments,
        _ => return Ok(operation),
    };
    for fragment in new.iter_mut().filter(|fragment| fragment.has_spilled_lineage()) {
        if is_update && fragment.has_moved_lineage()? {
            continue;
        }
        *fragment = fragment.clone().with_lineage_inline(store).await?;
    }
    Ok(operation)
}

async fn carry(
    files: &TableFiles,
    group: &RewriteGroup,
    there: &HashMap<u64, Fragment>,
    (is_behind, reads): (bool, bool),
) -> Result<Carried> {
    let mut survivors = Vec::with_capacity(group.old_fragments.len());
    let mut gone = RoaringTreemap::new();
    let (mut rows, mut left) = (0_u64, Vec::new());
    for old in &group.old_fragments {
        let now = there.get(&old.id());
        left.extend(now.cloned());
        if now.is_none() && !is_behind {
            // The commit says that it is missing.
            left.push(old.clone());
        }
        if !reads {
            continue;
        }
        let before = files.deletions(old).await?.unwrap_or_default();
        let physical = old.physical_rows().ok_or_else(|| unknown_rows(old))?;
        let live = live_rows(before.rows(), physical)?;
        match now {
            Some(now) if now.deletion_file() == old.deletion_file() => {}
            Some(now) => {
                let after = files.deletions(now).await?.unwrap_or_default();
                if !before.rows().is_subset(after.rows()) {
                    return Err(TableError::invalid(format!(
                        "expected the deleted rows of fragment {} to stay deleted until it is replaced, found others; rewrite it again",
                        old.id()
                    )));
                }
                let deleted = after.rows() - before.rows();
                let places = deleted.iter().map(|row| row_rank(&live, row));
                gone.extend(places.map(|place| rows.saturating_add(place)));
            }
            None if is_behind => {
                gone.insert_range(rows..rows.saturating_add(live.len()));
            }
            None => {}
        }
        rows = rows.saturating_add(live.len());
        if let Ok(id) = u32::try_from(old.id()) {
            survivors.push((id, live));
        }
    }
    let mut carried = Carried {
        old: group.old_fragments.clone(),
        group: RewriteGroup {
            old_fragments: left,
            new_fragments: Vec::new(),
        },
        survivors: RoaringTreemap::from_bitmaps(survivors),
        deleted: Vec::new(),
    };
    let held: Option<u64> = group.new_fragments.iter().map(Fragment::physical_rows).sum();
    if !gone.is_empty() && held != Some(rows) {
        return Err(TableError::invalid(format!(
            "expected new fragments with the {rows} live rows of those that they replace, found {}; rewrite them again",
            held.unwrap_or_default()
        )));
    }
    let mut start = 0_u64;
    let mut dropped = RoaringTreemap::new();
    let mut gone = gone.iter().peekable();
    for new in &group.new_fragments {
        let physical = new.physical_rows().unwrap_or(0);
        let end = start.saturating_add(physical);
        let mut deleted = RoaringBitmap::new();
        while let Some(row) = gone.next_if(|row| *row < end) {
            deleted.extend(u32::try_from(row - start));
        }
        if !deleted.is_empty() && new.deletion_file().is_some() {
            return Err(TableError::invalid(
                "expected new fragments without deleted rows, found one with a deletion file; rewrite them again",
            ));
        }
        if physical > 0 && deleted.len() == physical {
            dropped.insert_range(start..end);
        } else {
            carried.group.new_fragments.push(new.clone());
            carried.deleted.push(deleted);
        }
        start = end;
    }
    if !dropped.is_empty() {
        carried.survivors = without_ranks(&carried.survivors, &dropped);
    }
    Ok(carried)
}

fn unknown_rows(fragment: &Fragment) -> TableError {
    TableError::unsupported(format!(
        "fragment {} cannot be rewritten: its old writer did not note how many rows it has; write the table anew",
        fragment.id()
    ))
}

/// The offsets below `physical` that are not deleted.
fn live_rows(deleted: &RoaringBitmap, physical: u64) -> Result<RoaringBitmap> {
    let end = u32::try_from(physical)
        .map_err(|_| TableError::unsupported(format!("a fragment of {physical} rows cannot be rewritten")))?;
    let mut live = RoaringBitmap::new();
    live.insert_range(0..end);
    live -= deleted;
    Ok(live)
}

/// How many of `live` come before `row`, which is one of them.
fn row_rank(live: &RoaringBitmap, row: u32) -> u64 {
    live.rank(row).saturating_sub(1)
}

/// `rows` without those whose ranks are in `ranks`.
fn without_ranks(rows: &RoaringTreemap, ranks: &RoaringTreemap) -> RoaringTreemap {
    let kept = rows.iter().zip(0_u64..).filter(|(_, rank)| !ranks.contains(*rank));
    kept.map(|(row, _)| row).collect()
}

/// Whether an index of `base` holds addresses that the fragment reuse index is to translate.
fn notes_moves(base: &Manifest, rewrite: &Rewrite) -> Result<bool> {
    let indices = base.indices()?;
    let is_rewritten = |index: &Index| {
        rewrite
            .rewritten_indices
            .iter()
            .any(|one| Some(one.old_id) == index.uuid())
    };
    let follows = |index: &Index| index.holds_addresses_of_rows() && !is_rewritten(index);
    Ok(!base.has_stable_row_ids() && indices.iter().any(follows))
}

/// Notes the moves of the groups that an index covers, and forgets what no index needs.
async fn reuse(
    store: &StoreRef,
    base: &Manifest,
    rewrite: &Rewrite,
    groups: &[Carried],
    params: &CommitParams,
) -> Result<Reuse> {
    let indices = base.indices()?;
    let before = FragmentReuse::load(store, &indices).await?;
    let mut reuse = Reuse {
        noted: vec![None; groups.len()],
        before,
        entry: entry_of(&indices).cloned(),
    };
    if base.has_stable_row_ids() {
        return Ok(reuse);
    }
    let mut covered = Vec::new();
    for index in &indices {
        let is_rewritten = rewrite
            .rewritten_indices
            .iter()
            .any(|one| Some(one.old_id) == index.uuid());
        if index.holds_addresses_of_rows() && !is_rewritten {
            covered.extend(index.fragment_bitmap()?.map(|listed| reuse.before.covered(&listed)));
        }
    }
    reuse.noted = groups
        .iter()
        .map(|group| {
            let old = ids_of(&group.old);
            // The index translates addresses in ascending order.
            let in_order = group.old.windows(2).all(|pair| match pair {
                [left, right] => left.id() < right.id(),
                _ => true,
            });
            let is_covered = covered.iter().any(|covered| old.is_subset(covered));
            (!group.survivors.is_empty() && in_order && is_covered).then_some(old)
        })
        .collect();
    let numbered = rewrite.numbered(base)?;
    let moved: Vec<MovedGroup<'_>> = groups
        .iter()
        .zip(&numbered)
        .zip(&reuse.noted)
        .filter(|(_, noted)| noted.is_some())
        .map(|((carried, numbered), _)| MovedGroup {
            survivors: optimized(&carried.survivors),
            old: &carried.old,
            new: &numbered.new_fragments,
        })
        .collect();
    if moved.is_empty() && reuse.before.is_empty() {
        return Ok(reuse);
    }
    let mut after = reuse.before.clone();
    if !moved.is_empty() {
        after.push(ReuseVersion::new(base.version(), &moved)?);
    }
    after.trim(&indices)?;
    if after == reuse.before {
        return Ok(reuse);
    }
    let listed = reuse.entry.as_ref().map(Index::fragment_bitmap).transpose()?.flatten();
    let mut ids = listed.unwrap_or_default();
    for group in &numbered {
        ids |= ids_of(&group.new_fragments);
    }
    let created_at = u64::try_from(params.timestamp_ns / MILLIS).unwrap_or(0);
    reuse.entry = after.write(store, base.version(), ids, created_at).await?;
    Ok(reuse)
}

/// With runs of rows as runs, which take a few bytes each.
fn optimized(rows: &RoaringTreemap) -> RoaringTreemap {
    let mut rows = rows.clone();
    rows.optimize();
    rows
}
