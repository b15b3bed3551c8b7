//! Dictionaries of tables of version 0.1. All files of a table share the values of a dictionary column, and its manifest holds them; each
//! file holds those that its writer knew.

use std::collections::HashSet;

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use esker_file::schema::Schema;
use esker_file::{Dictionaries, FileReader, FileVersion};
use esker_proto::lance::file;
use esker_store::store::StoreRef;
use prost::Message;

use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::operation::Operation;
use crate::transaction::Transaction;

/// The shared dictionaries of a transaction's new files, read from the files; empty if they have no dictionary columns of version 0.1.
pub async fn dictionaries_of(store: &StoreRef, transaction: &Transaction) -> Result<Dictionaries> {
    let fragments = match transaction.operation()? {
        Operation::Append { fragments } | Operation::Overwrite { fragments, .. } => fragments,
        _ => Vec::new(),
    };
    let mut shared = Dictionaries::new();
    for file in fragments.iter().flat_map(Fragment::files) {
        if file.version()? != FileVersion::V0_1 {
            continue;
        }
        let reader = FileReader::open(store.clone(), &file.location()).await?;
        merge(&mut shared, &reader.dictionaries().await?, &file.path)?;
    }
    Ok(shared)
}

/// Merges in the dictionaries of one more file: for each column the longer one wins, and the shorter one must be its prefix.
fn merge(shared: &mut Dictionaries, more: &Dictionaries, path: &str) -> Result<()> {
    for (id, values) in more {
        match shared.get(id) {
            Some(known) if known.len() >= values.len() => check_prefix(*id, values, known, path)?,
            Some(known) => {
                check_prefix(*id, known, values, path)?;
                shared.insert(*id, values.clone());
            }
            None => {
                shared.insert(*id, values.clone());
            }
        }
    }
    Ok(())
}

fn check_prefix(id: i32, short: &ArrayRef, long: &ArrayRef, path: &str) -> Result<()> {
    if long.slice(0, short.len()).to_data() == short.to_data() {
        return Ok(());
    }
    Err(TableError::invalid(format!(
        "expected the files of a table of version 0.1 to share the dictionary of field {id}, found another one in {path}; \
         write them in one call, append to a table that has the values, or write plain values"
    )))
}

/// Refuses operations that add files of dictionary columns, whose dictionaries may differ from each other and from the table's.
pub(crate) fn check(base: Option<&Manifest>, operation: &Operation) -> Result<()> {
    let Some(base) = base else { return Ok(()) };
    let files = new_files(operation);
    let may_bring = !files.is_empty() && base.data_storage_version()? == FileVersion::V0_1;
    if !may_bring || !brings_dictionaries(base, operation, &files)? {
        return Ok(());
    }
    Err(TableError::unsupported(format!(
        "the table cannot be changed by {}: its manifest file holds the values of dictionary columns of version 0.1, which new files \
         may not share; append to it, delete from it, overwrite it, or write it anew",
        operation.kind().name()
    )))
}

fn brings_dictionaries(base: &Manifest, operation: &Operation, files: &[&DataFile]) -> Result<bool> {
    let schema: Vec<file::Field> = match operation {
        // A new schema does not say where the manifest holds what.
        Operation::Merge { .. } if base.has_dictionaries() => return Ok(true),
        Operation::Merge { schema, .. } => {
            let decode = |field: &Bytes| file::Field::decode(field.as_ref());
            let fields = schema
                .fields()
                .iter()
                .map(decode)
                .collect::<std::result::Result<_, _>>();
            fields.map_err(|error| TableError::invalid(format!("expected a schema, found {error}")))?
        }
        _ => base.schema_fields().to_vec(),
    };
    let words: HashSet<i32> = schema
        .iter()
        .filter(|it| is_dictionary(it))
        .map(|field| field.id)
        .collect();
    if words.is_empty() {
        return Ok(false);
    }
    let mut known: HashSet<String> = HashSet::new();
    for fragment in base.fragments() {
        known.extend(fragment?.files().iter().map(|file| file.path.clone()));
    }
    let is_new = |file: &&&DataFile| !known.contains(&file.path);
    let mut fields = files.iter().filter(is_new).flat_map(|file| &file.fields);
    Ok(fields.any(|field| words.contains(field)))
}

/// The files that an operation names of fragments that it adds or changes, but for those that only append or replace all.
fn new_files(operation: &Operation) -> Vec<&DataFile> {
    fn of(fragments: &[Fragment]) -> Vec<&DataFile> {
        fragments.iter().flat_map(Fragment::files).collect()
    }
    match operation {
        Operation::Update(update) => [of(&update.new_fragments), of(&update.updated_fragments)].concat(),
        Operation::Rewrite(rewrite) => {
            let groups = rewrite.groups.iter();
            groups.flat_map(|group| of(&group.new_fragments)).collect()
        }
        Operation::Merge { fragments, .. } => of(fragments),
        Operation::DataReplacement { replacements } => replacements.iter().map(|(_, file)| file).collect(),
        _ => Vec::new(),
    }
}

fn is_dictionary(field: &file::Field) -> bool {
    field.logical_type.starts_with("dict:")
}

/// Adds the dictionaries to a new version: those of `base` if it keeps the rows of `base`, else those that the new files share.
pub(crate) fn complete(next: Manifest, base: Option<&Manifest>, new: &Dictionaries) -> Result<Manifest> {
    if !next.schema_fields().iter().any(is_dictionary) || next.data_storage_version()? != FileVersion::V0_1 {
        return Ok(next);
    }
    let Some(base) = base.filter(|base| base.has_dictionaries()) else {
        let (fields, section) = place(next.schema_fields(), new)?;
        return next.with_dictionaries(&fields, section.into());
    };
    let mut held = base.dictionaries()?.as_ref().clone();
    let lengths: Vec<usize> = held.values().map(|values| values.len()).collect();
    merge(&mut held, new, "a new file")?;
    let grown = held.values().map(|values| values.len()).ne(lengths);
    if grown {
        return Err(TableError::invalid(
            "expected new files whose dictionaries hold no more than the table's, found a value that is not in it; \
             append known values only, or overwrite the table with the column as plain values",
        ));
    }
    Ok(next.with_dictionary_section(base.dictionary_section.clone()))
}

/// The schema's fields with the positions of their dictionaries, and the section with the values at the start of the manifest file.
fn place(fields: &[file::Field], values: &Dictionaries) -> Result<(Vec<file::Field>, Vec<u8>)> {
    let schema = Schema::from_protos(fields, &Default::default())?;
    let (placed, section) = esker_file::write_dictionaries(&schema, values)?;
    let placed = placed.flat_fields();
    let fields = fields.iter().map(|field| {
        let place = placed.iter().find(|p| p.id == field.id).and_then(|p| p.dictionary);
        file::Field {
            dictionary: place.map(|(offset, length)| file::Dictionary { offset, length }),
            ..field.clone()
        }
    });
    Ok((fields.collect(), section))
}
