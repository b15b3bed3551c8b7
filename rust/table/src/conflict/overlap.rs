//! The questions that some cells of the conflict matrix ask of two transactions.
//!
//! Each compares what both transactions name: fragments, indices, columns, keys. A set that cannot be decoded overlaps with everything.

use std::collections::BTreeSet;

use esker_proto::lance::table::transaction as op;
use esker_proto::lance::table::IndexMetadata;
use prost::Message;

use crate::merge::KeyFilter;
use crate::operation::OperationKind as Kind;
use crate::transaction::Transaction;

/// What a transaction names; `None` if unknown.
type Names<T> = Option<BTreeSet<T>>;

fn intersect<T: Ord>(ours: Names<T>, theirs: Names<T>) -> bool {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => !ours.is_disjoint(&theirs),
        _ => true,
    }
}

pub(super) fn decode<M: Message + Default>(transaction: &Transaction) -> Option<M> {
    M::decode(transaction.message().clone()).ok()
}

/// Whether both change or remove a fragment that was there before.
pub(super) fn fragments(ours: &Transaction, theirs: &Transaction) -> bool {
    intersect(touched_fragments(ours), touched_fragments(theirs))
}

fn touched_fragments(transaction: &Transaction) -> Names<u64> {
    match transaction.kind() {
        Kind::Delete => {
            let delete: op::Delete = decode(transaction)?;
            let updated = delete.updated_fragments.iter().map(|fragment| fragment.id);
            Some(updated.chain(delete.deleted_fragment_ids.iter().copied()).collect())
        }
        Kind::Update => {
            let update: op::Update = decode(transaction)?;
            let updated = update.updated_fragments.iter().map(|fragment| fragment.id);
            Some(updated.chain(update.removed_fragment_ids.iter().copied()).collect())
        }
        Kind::Rewrite => {
            let rewrite: op::Rewrite = decode(transaction)?;
            let grouped = rewrite.groups.iter().flat_map(|group| &group.old_fragments);
            Some(
                grouped
                    .chain(&rewrite.old_fragments)
                    .map(|fragment| fragment.id)
                    .collect(),
            )
        }
        Kind::DataReplacement => {
            let replacement: op::DataReplacement = decode(transaction)?;
            Some(replacement.replacements.iter().map(|group| group.fragment_id).collect())
        }
        _ => None,
    }
}

/// Whether both may have inserted a row with the same key, by the key filter of ours.
pub(super) fn inserted_keys(ours: &Transaction, theirs: &Transaction) -> bool {
    if theirs.kind() == Kind::Append {
        return ours.kind() == Kind::Update && has_declared_keys(ours);
    }
    let update =
        |transaction: &Transaction| decode::<op::Update>(transaction).filter(|_| transaction.kind() == Kind::Update);
    let (Some(ours), Some(theirs)) = (update(ours), update(theirs)) else {
        return ours.kind() == Kind::Update && theirs.kind() == Kind::Update;
    };
    if ours.inserted_rows.is_empty() {
        return false;
    }
    if theirs.inserted_rows.is_empty() {
        // Theirs has no key filter: any row that it wrote may be an inserted one.
        let nothing = KeyFilter::decode(&ours.inserted_rows).is_ok_and(|keys| keys.is_empty());
        return !nothing && !theirs.new_fragments.is_empty();
    }
    match (
        KeyFilter::decode(&ours.inserted_rows),
        KeyFilter::decode(&theirs.inserted_rows),
    ) {
        (Ok(ours), Ok(theirs)) => ours.overlaps(&theirs),
        _ => true,
    }
}

/// Whether an Update inserted rows under the declared primary key, of which it has a Bloom filter: an Append tells no keys, and any of its
/// rows may have one of them.
fn has_declared_keys(update: &Transaction) -> bool {
    let Some(update) = decode::<op::Update>(update) else {
        return true;
    };
    let keys = KeyFilter::decode(&update.inserted_rows);
    !update.inserted_rows.is_empty() && keys.map_or(true, |keys| keys.is_bloom() && !keys.is_empty())
}

fn index_metadata(transaction: &Transaction) -> Option<Vec<IndexMetadata>> {
    let mut create: op::CreateIndex = decode(transaction)?;
    create.new_indices.append(&mut create.removed_indices);
    Some(create.new_indices)
}

/// Whether both add, replace or drop an index of one name.
pub(super) fn indices(ours: &Transaction, theirs: &Transaction) -> bool {
    let names = |transaction| -> Names<String> {
        Some(
            index_metadata(transaction)?
                .into_iter()
                .map(|index| index.name)
                .collect(),
        )
    };
    intersect(names(ours), names(theirs))
}

/// Whether one indexes a column that the other replaces.
pub(super) fn indexed_columns(ours: &Transaction, theirs: &Transaction) -> bool {
    intersect(columns(ours), columns(theirs))
}

fn columns(transaction: &Transaction) -> Names<i32> {
    match transaction.kind() {
        Kind::CreateIndex => Some(
            index_metadata(transaction)?
                .into_iter()
                .flat_map(|index| index.fields)
                .collect(),
        ),
        Kind::DataReplacement => {
            let replacement: op::DataReplacement = decode(transaction)?;
            Some(
                replacement
                    .replacements
                    .into_iter()
                    .flat_map(|group| group.new_file.unwrap_or_default().fields)
                    .collect(),
            )
        }
        _ => None,
    }
}

/// Whether it changes the schema without saying that concurrently written rows still fit (`preserves_nullability`).
pub(super) fn may_require_columns(transaction: &Transaction) -> bool {
    match transaction.kind() {
        Kind::Merge => decode(transaction).is_none_or(|merge: op::Merge| !merge.preserves_nullability),
        Kind::Project => decode(transaction).is_none_or(|project: op::Project| !project.preserves_nullability),
        _ => false,
    }
}

/// Whether ours appends values of a column that their Merge replaced by another one, for example of another type: these values would be
/// read as nulls. A Project drops columns on purpose, with the values that others append meanwhile.
pub(super) fn replaced_columns(ours: &Transaction, theirs: &Transaction) -> bool {
    if (ours.kind(), theirs.kind()) != (Kind::Append, Kind::Merge) {
        return false;
    }
    let (Some(ours), Some(theirs)) = (decode::<op::Append>(ours), decode::<op::Merge>(theirs)) else {
        return true;
    };
    let kept: BTreeSet<i32> = theirs.schema.iter().map(|field| field.id).collect();
    let files = ours.fragments.iter().flat_map(|fragment| &fragment.files);
    let mut held = files.flat_map(|file| &file.fields);
    held.any(|id| *id >= 0 && !kept.contains(id))
}

/// A key of the table's config, its metadata, its schema's or a field's.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConfigKey {
    Config(String),
    Table(String),
    Schema(String),
    Field(i64, String),
}

/// Whether both set or remove a key.
pub(super) fn config_keys(ours: &Transaction, theirs: &Transaction) -> bool {
    intersect(changed_keys(ours), changed_keys(theirs))
}

/// The changed keys; `None` if a map is replaced as a whole, which touches keys that it does not name.
fn changed_keys(transaction: &Transaction) -> Names<ConfigKey> {
    let update: op::UpdateConfig = decode(transaction)?;
    let mut keys = BTreeSet::new();
    keys.extend(
        update
            .upsert_values
            .into_keys()
            .chain(update.delete_keys)
            .map(ConfigKey::Config),
    );
    keys.extend(update.schema_metadata.into_keys().map(ConfigKey::Schema));
    for (id, field) in update.field_metadata {
        keys.extend(
            field
                .metadata
                .into_keys()
                .map(|key| ConfigKey::Field(i64::from(id), key)),
        );
    }
    let mut add = |map: Option<op::UpdateMap>, name: &dyn Fn(String) -> ConfigKey| {
        let map = map.unwrap_or_default();
        keys.extend(map.update_entries.into_iter().map(|entry| name(entry.key)));
        (!map.replace).then_some(())
    };
    add(update.config_updates, &ConfigKey::Config)?;
    add(update.table_metadata_updates, &ConfigKey::Table)?;
    add(update.schema_metadata_updates, &ConfigKey::Schema)?;
    for (id, map) in update.field_metadata_updates {
        add(Some(map), &|key| ConfigKey::Field(i64::from(id), key))?;
    }
    Some(keys)
}

/// Whether both add a base path of one chosen id, name or path.
pub(super) fn bases(ours: &Transaction, theirs: &Transaction) -> bool {
    let (Some(ours), Some(theirs)) = (decode::<op::UpdateBases>(ours), decode::<op::UpdateBases>(theirs)) else {
        return true;
    };
    ours.new_bases.iter().any(|ours| {
        theirs.new_bases.iter().any(|theirs| {
            // Id 0: the commit assigns one.
            (ours.id != 0 && ours.id == theirs.id)
                || ours.path == theirs.path
                || (ours.name.is_some() && ours.name == theirs.name)
        })
    })
}
