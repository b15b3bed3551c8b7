//! Rebases a change over a concurrent one that deleted other rows of the same fragment, instead of computing it again.
//!
//! ```text
//! before (the read version of ours)      ..x.......
//! theirs (the latest version)            ..x...x...
//! ours                                   x.x.......
//! ours on top of theirs                  x.x...x...
//! ```

use std::collections::HashMap;

use esker_store::store::StoreRef;

use crate::deletion::{write_deletions, DeletionVector};
use crate::error::Result;
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::operation::{Operation, OperationKind, Rewrite, RewriteGroup, Update, UpdateMode};
use crate::read::TableFiles;
use crate::transaction::Transaction;

impl Transaction {
    /// Rebases this Delete, or Update that moves rows, from `before` onto `theirs`. Writes deletion files with the rows of both. `None` if
    /// it must be computed again: both deleted the same row, or a fragment was removed or has other files.
    ///
    /// A Rewrite loses the groups that `change`, their transaction, or one of unknown kind, did more to than delete rows; `None` if that
    /// is all of them. The deleted rows of the others are carried when it is applied ([`Transaction::carried`]).
    pub async fn reconcile(
        &self,
        store: &StoreRef,
        before: &Manifest,
        theirs: &Manifest,
        change: Option<&Self>,
    ) -> Result<Option<Self>> {
        let merge = Merge {
            files: TableFiles::new(store.clone()),
            before: fragments(before)?,
            theirs: fragments(theirs)?,
            version: theirs.version(),
        };
        let operation = match self.operation()? {
            Operation::Delete {
                updated_fragments,
                deleted_fragment_ids,
                predicate,
            } => {
                let Some((updated_fragments, emptied)) = merge.all(updated_fragments, &deleted_fragment_ids).await?
                else {
                    return Ok(None);
                };
                Operation::Delete {
                    updated_fragments,
                    deleted_fragment_ids: [deleted_fragment_ids, emptied].concat(),
                    predicate,
                }
            }
            Operation::Update(update)
                if update.update_mode == UpdateMode::RewriteRows && update.fields_modified.is_empty() =>
            {
                let updated = update.updated_fragments.clone();
                let Some((updated_fragments, emptied)) = merge.all(updated, &update.removed_fragment_ids).await? else {
                    return Ok(None);
                };
                Operation::Update(Update {
                    updated_fragments,
                    removed_fragment_ids: [update.removed_fragment_ids.clone(), emptied].concat(),
                    ..update
                })
            }
            Operation::Rewrite(rewrite) => {
                let lost = merge.lost_groups(&rewrite, change.map(Self::kind));
                if lost.is_empty() {
                    return Ok(Some(self.clone()));
                }
                let groups = rewrite.groups.into_iter().zip(0_usize..);
                let groups: Vec<RewriteGroup> = groups
                    .filter(|(_, place)| !lost.contains(place))
                    .map(|(group, _)| group)
                    .collect();
                if groups.is_empty() {
                    return Ok(None);
                }
                Operation::Rewrite(Rewrite { groups, ..rewrite })
            }
            _ => return Ok(None),
        };
        let adapted = Self::new(self.read_version(), &operation, self.properties().clone())?;
        adapted.with_uuid(self.uuid()).map(Some)
    }
}

fn fragments(manifest: &Manifest) -> Result<HashMap<u64, Fragment>> {
    let all = manifest.fragments();
    all.map(|fragment| fragment.map(|fragment| (fragment.id(), fragment)))
        .collect()
}

/// Whether both have the same values in the same rows, but for those that are deleted.
fn holds_same_rows(old: &Fragment, now: &Fragment) -> bool {
    let same_file = |(old, now): (&DataFile, &DataFile)| {
        (&old.path, old.base_id, &old.fields) == (&now.path, now.base_id, &now.fields)
    };
    old.physical_rows() == now.physical_rows()
        && old.files().len() == now.files().len()
        && old.files().iter().zip(now.files()).all(same_file)
}

struct Merge {
    files: TableFiles,
    before: HashMap<u64, Fragment>,
    theirs: HashMap<u64, Fragment>,
    version: u64,
}

impl Merge {
    /// The places of the groups of a Rewrite that a change to another version costs.
    fn lost_groups(&self, rewrite: &Rewrite, change: Option<OperationKind>) -> Vec<usize> {
        let deletes = matches!(change, Some(OperationKind::Delete | OperationKind::Update));
        let is_unknown = matches!(
            change,
            Some(OperationKind::Unknown(_) | OperationKind::DataOverlay | OperationKind::Composite)
        );
        let is_lost = |old: &Fragment| match (self.before.get(&old.id()), self.theirs.get(&old.id())) {
            _ if is_unknown => true,
            (_, Some(now)) => !holds_same_rows(old, now),
            // An earlier change deleted all of its rows.
            (None, None) => false,
            (Some(_), None) => !deletes,
        };
        let groups = rewrite.groups.iter().enumerate();
        groups
            .filter(|(_, group)| group.old_fragments.iter().any(is_lost))
            .map(|(place, _)| place)
            .collect()
    }

    /// The updated fragments rebased onto theirs, and the ids of those that lost all rows by the two together.
    async fn all(&self, updated: Vec<Fragment>, removed: &[u64]) -> Result<Option<(Vec<Fragment>, Vec<u64>)>> {
        // A fragment that ours removes must be unchanged: a row that they moved out of it may be one that ours deletes.
        if removed.iter().any(|id| self.before.get(id) != self.theirs.get(id)) {
            return Ok(None);
        }
        let (mut merged, mut emptied) = (Vec::with_capacity(updated.len()), Vec::new());
        for fragment in updated {
            let id = fragment.id();
            let (Some(before), Some(theirs)) = (self.before.get(&id), self.theirs.get(&id)) else {
                return Ok(None);
            };
            if before == theirs {
                merged.push(fragment);
                continue;
            }
            if before.files() != theirs.files() {
                return Ok(None);
            }
            let Some(rows) = self.rows(&fragment, before, theirs).await? else {
                return Ok(None);
            };
            if theirs.physical_rows().is_some_and(|physical| physical == rows.len()) {
                emptied.push(id);
            } else {
                merged.push(write_deletions(&self.files, theirs, &rows, self.version).await?);
            }
        }
        Ok(Some((merged, emptied)))
    }

    /// The union of the deleted rows; `None` if both deleted the same row.
    async fn rows(&self, ours: &Fragment, before: &Fragment, theirs: &Fragment) -> Result<Option<DeletionVector>> {
        let before = self.files.deletions(before).await?.unwrap_or_default();
        let ours = self.files.deletions(ours).await?.unwrap_or_default();
        let theirs = self.files.deletions(theirs).await?.unwrap_or_default();
        let (new_ours, new_theirs) = (ours.rows() - before.rows(), theirs.rows() - before.rows());
        Ok(new_ours
            .is_disjoint(&new_theirs)
            .then(|| DeletionVector::new(ours.rows() | theirs.rows())))
    }
}
