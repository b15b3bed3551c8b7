//! Applies a transaction to the latest version (the base) and returns the next version's manifest.
//!
//! | operation | schema | fragments | indices | other |
//! |---|---|---|---|---|
//! | Append | as before | and the new ones | as before | the flag of mixed file versions where a new file is of another |
//! | Delete | as before | new deletion files, some gone | as before | |
//! | Update | as before | some changed, some gone, and the new ones | without the fragments whose column changed | |
//! | Rewrite | as before | others in their place | those that follow the rows over the new fragments, others without the old ones | |
//! | Overwrite | the transaction's | the new ones | none | config merged, data format as asked for |
//! | Merge | the transaction's | the transaction's | without those on columns that are gone | |
//! | Project | the transaction's | without the files of columns that are gone | likewise | |
//! | DataReplacement | as before | other files | without the fragments whose column changed | |
//! | CreateIndex | as before | as before | the transaction's | |
//! | UpdateConfig, UpdateBases, ReserveFragments | key-values of it | as before | as before | what they are about |
//! | Clone | as in the source | those of the source, under a base path if it is shallow | likewise | the number of the source's version |
//! | Restore | the older version's | the older version's | the older version's | all the older version's |
//!
//! In a table with stable row ids, new rows get ids, and changed rows get this version as their last update; see [`crate::row_ids`].
//!
//! Always: fragment ids continue from the highest ever given out; tag and auxiliary data are dropped, as they belong to one version, and the
//! transaction stands in it where it is small; fields of newer writers stay. A transaction with an application's id and number leaves that number in the config.

mod bases;
mod columns;
mod contents;
mod draft;
mod field_ids;
mod fragments;
mod indices;
pub(crate) mod repair;
mod rewrite;
mod rows;
mod settings;

use esker_file::version::FileVersion;
use esker_file::Dictionaries;

use crate::carry::CarriedRewrite;
use crate::dictionary;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::naming::is_detached_version;
use crate::operation::Operation;
use crate::transaction::Transaction;

/// What the commit decides and the transaction does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitParams {
    /// The number of the new version: the one after the latest, or any detached one.
    pub version: u64,
    /// The time of the commit, in nanoseconds since 1970 (UTC).
    pub timestamp_ns: i64,
    /// The version of the table's data files; `None`: as before; as its files for a new table,
    /// and 2.0 if it has none.
    pub data_storage_version: Option<FileVersion>,
    /// Whether a table that this creates has stable row ids. Ignored for an existing table, which has them for good or never.
    pub stable_row_ids: bool,
}

impl Transaction {
    /// Applies this change to `base`, the latest version, or to nothing if it creates the table.
    pub fn apply(&self, base: Option<&Manifest>, params: &CommitParams) -> Result<Manifest> {
        self.apply_with(base, params, &Dictionaries::new())
    }

    /// Like [`Transaction::apply`], with the dictionaries that new files of version 0.1 share: the manifest will hold them.
    pub fn apply_with(
        &self,
        base: Option<&Manifest>,
        params: &CommitParams,
        dictionaries: &Dictionaries,
    ) -> Result<Manifest> {
        self.apply_operation(self.operation()?, base, params, dictionaries)
    }

    /// Like [`Transaction::apply_with`], of a change that was computed from the version `read`. Of what a CreateIndex has indexed, fragments
    /// in which its columns lie in other files by now are left out.
    pub fn apply_since(
        &self,
        read: &Manifest,
        base: &Manifest,
        params: &CommitParams,
        dictionaries: &Dictionaries,
    ) -> Result<Manifest> {
        let mut operation = self.operation()?;
        if let Operation::CreateIndex { new_indices, .. } = &mut operation {
            *new_indices = columns::without_moved(std::mem::take(new_indices), read, base)?;
        }
        self.apply_operation(operation, Some(base), params, dictionaries)
    }

    /// Like [`Transaction::apply_with`], with the operation of this transaction, in which some may be added that its writer left out.
    pub(crate) fn apply_operation(
        &self,
        operation: Operation,
        base: Option<&Manifest>,
        params: &CommitParams,
        dictionaries: &Dictionaries,
    ) -> Result<Manifest> {
        check_version(base, params)?;
        dictionary::check(base, &operation)?;
        let keeps = !matches!(operation, Operation::Overwrite { .. });
        let next = self.build(operation, base, params)?;
        dictionary::complete(next, base.filter(|_| keeps), dictionaries)
    }

    pub(crate) fn apply_rewrite(
        &self,
        base: &Manifest,
        carried: CarriedRewrite,
        params: &CommitParams,
        dictionaries: &Dictionaries,
    ) -> Result<Manifest> {
        check_version(Some(base), params)?;
        dictionary::check(Some(base), &Operation::Rewrite(carried.rewrite.clone()))?;
        draft::check_storage_version(base, params)?;
        draft::check_changeable(base)?;
        let next = rewrite::rewrite(base, &carried)?.finish(self, params)?;
        dictionary::complete(next, Some(base), dictionaries)
    }

    fn build(&self, operation: Operation, base: Option<&Manifest>, params: &CommitParams) -> Result<Manifest> {
        let Some(base) = base else {
            return match operation {
                Operation::Overwrite { .. } => contents::overwrite(None, operation, params)?.finish(self, params),
                Operation::Append { .. } => Err(TableError::invalid(
                    "expected a table to append to, found none; create it by an overwrite",
                )),
                other => Err(TableError::invalid(format!(
                    "expected a table to commit {} to, found none; create it by an overwrite",
                    other.kind().name()
                ))),
            };
        };
        if !matches!(operation, Operation::Overwrite { .. }) {
            draft::check_storage_version(base, params)?;
            draft::check_changeable(base)?;
        }
        let draft = match operation {
            Operation::Overwrite { .. } => contents::overwrite(Some(base), operation, params)?,
            Operation::Append { fragments } => rows::append(base, fragments, self.read_version())?,
            Operation::Delete {
                updated_fragments,
                deleted_fragment_ids,
                ..
            } => rows::delete(base, updated_fragments, &deleted_fragment_ids)?,
            Operation::Update(update) => rows::update(base, update, self.read_version())?,
            Operation::Rewrite(rewrite) => {
                let reuse = rewrite::reuse_as_before(base)?;
                rewrite::rewrite(base, &CarriedRewrite { rewrite, reuse })?
            }
            Operation::Merge { fragments, schema, .. } => columns::merge(base, &fragments, &schema)?,
            Operation::Project { schema, .. } => columns::project(base, &schema)?,
            Operation::DataReplacement { replacements } => {
                columns::replace_data(base, &replacements, self.read_version())?
            }
            Operation::CreateIndex {
                new_indices,
                removed_indices,
            } => settings::create_index(base, new_indices, &removed_indices)?,
            Operation::UpdateConfig(update) => settings::update_config(base, &update)?,
            Operation::ReserveFragments { num_fragments } => settings::reserve_fragments(base, num_fragments)?,
            Operation::UpdateBases { new_bases } => bases::update_bases(base, new_bases)?,
            Operation::Restore { version } => {
                return Err(TableError::invalid(format!(
                    "expected the manifest of version {version} to restore, found none"
                )))
            }
            Operation::Clone(_) => {
                return Err(TableError::invalid(
                    "expected no table where a clone is made, found one; choose another place",
                ))
            }
            Operation::Other { kind, .. } => {
                return Err(TableError::unsupported(format!(
                    "expected an operation that this release can commit, found {}",
                    kind.name()
                )))
            }
        };
        draft.finish(self, params)
    }

    /// The first version of a clone of `source`, if this is a Clone. It keeps the source version's number.
    pub fn apply_clone(&self, source: &Manifest, params: &CommitParams) -> Result<Manifest> {
        source.check_readable()?;
        draft::check_changeable(source)?;
        match self.operation()? {
            Operation::Clone(clone) if clone.ref_version == source.version() && params.version == source.version() => {
                let draft = match clone.is_shallow {
                    true => bases::shallow_clone(source, &clone.ref_path, clone.ref_name.as_deref())?,
                    false => bases::deep_clone(source)?,
                };
                let next = draft.finish(self, params)?;
                Ok(next.with_dictionary_section(source.dictionary_section.clone()))
            }
            Operation::Clone(clone) => Err(TableError::invalid(format!(
                "expected the manifest of version {} to clone, found that of version {}",
                clone.ref_version,
                source.version()
            ))),
            other => Err(TableError::invalid(format!(
                "expected a Clone, found {}",
                other.kind().name()
            ))),
        }
    }

    /// Applies this change to `base`, if it is a Restore: the contents of `restored` under a new version number.
    pub fn apply_restore(&self, base: &Manifest, restored: &Manifest, params: &CommitParams) -> Result<Manifest> {
        check_version(Some(base), params)?;
        match self.operation()? {
            Operation::Restore { version } if version == restored.version() => {
                restored.check_writable()?;
                draft::check_changeable(restored)?;
                let next = contents::restore(base, restored)?.finish(self, params)?;
                Ok(next.with_dictionary_section(restored.dictionary_section.clone()))
            }
            Operation::Restore { version } => Err(TableError::invalid(format!(
                "expected the manifest of version {version} to restore, found that of version {}",
                restored.version()
            ))),
            other => Err(TableError::invalid(format!(
                "expected a Restore, found {}",
                other.kind().name()
            ))),
        }
    }
}

fn check_version(base: Option<&Manifest>, params: &CommitParams) -> Result<()> {
    if is_detached_version(params.version) && base.is_some() {
        return base.map_or(Ok(()), Manifest::check_writable);
    }
    let expected = base.map_or(1, |base| base.version().saturating_add(1));
    if params.version != expected {
        return Err(TableError::invalid(format!(
            "expected to commit version {expected}, found {}; read the latest version again",
            params.version
        )));
    }
    base.map_or(Ok(()), Manifest::check_writable)
}

#[cfg(test)]
mod tests;
