//! The next version of a table: a transaction applied to the version before it.
//!
//! | field | append | overwrite |
//! |---|---|---|
//! | schema, its metadata | as before | the transaction's |
//! | fragments | as before, and the new ones | the new ones |
//! | fragment ids | count on from the highest ever given out | likewise |
//! | index section | as before | none |
//! | config | as before | as before, and the transaction's |
//! | data format | as before | as asked for |
//! | flag of mixed file versions | set once a file of another version comes in | as the new files are |
//! | table metadata, branch, fields of newer writers | as before | as before |
//! | tag, auxiliary data, inline transaction | gone: they belong to one version | likewise |

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use esker_file::version::FileVersion;
use esker_proto::lance::table as pb;
use prost::Message;

use crate::error::{Result, TableError};
use crate::flags;
use crate::fragment::Fragment;
use crate::fragment_list::FragmentList;
use crate::manifest::{field, Manifest};
use crate::operation::Operation;
use crate::raw::RawMessage;
use crate::transaction::Transaction;

const LIBRARY: &str = "esker";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// What a commit decides that the transaction does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitParams {
    /// The number of the new version.
    pub version: u64,
    /// The time of the commit, in nanoseconds since 1970 (UTC).
    pub timestamp_ns: i64,
    /// The version of the table's data files; `None`: as before; as its files for a new table,
    /// and 2.0 if it has none.
    pub data_storage_version: Option<FileVersion>,
}

impl Transaction {
    /// The version that this change makes of `base`, the latest one; of nothing if it creates the table.
    pub fn apply(&self, base: Option<&Manifest>, params: &CommitParams) -> Result<Manifest> {
        let expected = base.map_or(1, |base| base.version().saturating_add(1));
        if params.version != expected {
            return Err(TableError::invalid(format!(
                "expected to commit version {expected}, found {}; read the latest version again",
                params.version
            )));
        }
        if let Some(base) = base {
            base.check_writable()?;
        }
        match (self.operation()?, base) {
            (Operation::Append { fragments }, Some(base)) => append(self, base, &fragments, params),
            (Operation::Append { .. }, None) => Err(TableError::invalid(
                "expected a table to append to, found none; create it by an overwrite",
            )),
            (Operation::Overwrite { initial_bases, .. }, _) if initial_bases > 0 => Err(TableError::unsupported(
                "base paths are not supported yet: create the table under one root",
            )),
            (
                Operation::Overwrite {
                    fragments,
                    schema,
                    schema_metadata,
                    config,
                    ..
                },
                base,
            ) => {
                let contents = Contents {
                    fragments: &fragments,
                    schema,
                    schema_metadata,
                    config,
                };
                overwrite(self, base, contents, params)
            }
            (Operation::Other { kind, .. }, _) => Err(TableError::unsupported(format!(
                "expected an Append or Overwrite to commit, found {}",
                kind.name()
            ))),
        }
    }
}

/// What an overwrite puts in place.
struct Contents<'a> {
    fragments: &'a [Fragment],
    schema: Vec<Bytes>,
    schema_metadata: BTreeMap<String, Bytes>,
    config: BTreeMap<String, String>,
}

fn append(transaction: &Transaction, base: &Manifest, new: &[Fragment], params: &CommitParams) -> Result<Manifest> {
    check_appendable(base)?;
    let version = base.data_storage_version()?;
    if let Some(asked) = params.data_storage_version.filter(|asked| *asked != version) {
        return Err(TableError::invalid(format!(
            "expected data_storage_version {version} as the table has, found {asked}; leave it out, or overwrite the table"
        )));
    }
    let ids: HashSet<i32> = base.schema_fields().iter().map(|field| field.id).collect();
    let adds_others = check_fragments(new, version, &ids)?;
    let mut fragments = base.fragments.clone();
    let max_id = push_fragments(&mut fragments, new, base.max_fragment_id()?)?;
    let mut raw = base.raw.clone();
    if base.raw.get(field::DATA_FORMAT).is_none() {
        set_data_format(&mut raw, version);
    }
    let holds = flags::Contents {
        deletions: base.has_deletions()? || new.iter().any(|fragment| fragment.deletion_file().is_some()),
        mixed_files: adds_others || base.reader_feature_flags() & flags::MIXED_FILE_VERSIONS != 0,
    };
    let mut next = finish(raw, fragments, holds, max_id, transaction, params)?;
    next.index_section = base.index_section.clone();
    Ok(next)
}

fn overwrite(
    transaction: &Transaction,
    base: Option<&Manifest>,
    contents: Contents<'_>,
    params: &CommitParams,
) -> Result<Manifest> {
    let version = match (params.data_storage_version, base) {
        (Some(asked), _) => asked,
        (None, Some(base)) => base.data_storage_version()?,
        (None, None) => match contents.fragments.iter().flat_map(Fragment::files).next() {
            Some(file) => file.version()?,
            None => FileVersion::V2_0,
        },
    };
    let fields = contents
        .schema
        .iter()
        .map(|field| esker_proto::lance::file::Field::decode(field.clone()));
    let ids = fields
        .map(|field| field.map(|field| field.id))
        .collect::<Result<HashSet<_>, _>>();
    let ids = ids.map_err(|error| TableError::corrupt("Overwrite", error.to_string()))?;
    let mixed_files = check_fragments(contents.fragments, version, &ids)?;
    let mut fragments = FragmentList::default();
    let highest = base.map(Manifest::max_fragment_id).transpose()?.flatten();
    let max_id = push_fragments(&mut fragments, contents.fragments, highest)?;
    let mut raw = base.map(|base| base.raw.clone()).unwrap_or_default();
    raw.set_all_bytes(field::SCHEMA, contents.schema.iter().map(AsRef::as_ref));
    let message = pb::Manifest {
        schema_metadata: contents.schema_metadata,
        ..Default::default()
    };
    set_map(&mut raw, field::SCHEMA_METADATA, &message)?;
    if !contents.config.is_empty() {
        let mut config = base.map(|base| base.config().clone()).unwrap_or_default();
        config.extend(contents.config);
        set_map(
            &mut raw,
            field::CONFIG,
            &pb::Manifest {
                config,
                ..Default::default()
            },
        )?;
    }
    set_data_format(&mut raw, version);
    let deletions = contents
        .fragments
        .iter()
        .any(|fragment| fragment.deletion_file().is_some());
    let holds = flags::Contents { deletions, mixed_files };
    finish(raw, fragments, holds, max_id, transaction, params)
}

/// The fields that every commit sets.
fn finish(
    mut raw: RawMessage,
    fragments: FragmentList,
    holds: flags::Contents,
    max_fragment_id: Option<u32>,
    transaction: &Transaction,
    params: &CommitParams,
) -> Result<Manifest> {
    for of_one_version in [
        field::VERSION_AUX_DATA,
        field::INDEX_SECTION,
        field::TAG,
        field::TRANSACTION_SECTION_OLD,
        field::TRANSACTION_SECTION,
    ] {
        raw.remove(of_one_version);
    }
    let flags_of = |raw: &RawMessage, number| raw.get(number).map_or(0, |field| field.varint());
    let reader = flags::next_flags(flags_of(&raw, field::READER_FLAGS), holds);
    let mut writer = flags::next_flags(flags_of(&raw, field::WRITER_FLAGS), holds);
    if raw.get(field::CONFIG).is_some() {
        writer |= flags::TABLE_CONFIG;
    }
    raw.set_varint(field::VERSION, params.version);
    raw.set_bytes(field::TIMESTAMP, &timestamp(params.timestamp_ns).encode_to_vec());
    if let Some(tag) = transaction.tag() {
        raw.set_bytes(field::TAG, tag.as_bytes());
    }
    raw.set_varint(field::READER_FLAGS, reader);
    raw.set_varint(field::WRITER_FLAGS, writer);
    raw.set_optional_varint(field::MAX_FRAGMENT_ID, max_fragment_id.map(u64::from));
    raw.set_bytes(field::TRANSACTION_FILE, transaction.file_name().as_bytes());
    let (library, version) = (LIBRARY.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let writer = pb::manifest::WriterVersion {
        library,
        version,
        ..Default::default()
    };
    raw.set_bytes(field::WRITER_VERSION, &writer.encode_to_vec());
    Manifest::from_parts(raw, fragments, "")
}

fn timestamp(nanoseconds: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(nanoseconds.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0);
    prost_types::Timestamp {
        seconds: nanoseconds.div_euclid(NANOS_PER_SECOND),
        nanos,
    }
}

fn set_data_format(raw: &mut RawMessage, version: FileVersion) {
    let format = pb::manifest::DataStorageFormat {
        file_format: "lance".into(),
        version: version.to_string(),
    };
    raw.set_bytes(field::DATA_FORMAT, &format.encode_to_vec());
}

/// Replaces a map by the one that `message` holds under the same number.
fn set_map(raw: &mut RawMessage, number: u32, message: &pb::Manifest) -> Result<()> {
    let encoded = Bytes::from(message.encode_to_vec());
    let entries = RawMessage::decode(&encoded).map_err(|error| error.of("manifest"))?;
    raw.set_all_bytes(number, entries.all(number).map(|entry| entry.payload().as_ref()));
    Ok(())
}

/// Gives the new fragments their ids and returns the highest id given out so far.
fn push_fragments(list: &mut FragmentList, new: &[Fragment], highest: Option<u32>) -> Result<Option<u32>> {
    let mut highest = highest;
    let mut encoded = Vec::with_capacity(new.len());
    for fragment in new {
        let id = highest.map_or(Some(0), |highest| highest.checked_add(1));
        let id = id.ok_or_else(|| TableError::unsupported("the table has used up all 2^32 fragment ids"))?;
        encoded.push(fragment.clone().with_id(u64::from(id)).encode());
        highest = Some(id);
    }
    list.push_all(encoded.iter().map(Vec::as_slice))
        .map_err(|error| error.of("manifest"))?;
    Ok(highest)
}

/// What readers rely on, and whether a file is of another version than the table's. Files of 0.1 and later ones do not mix: a reader
/// chooses between two ways of reading by the table's version alone.
fn check_fragments(fragments: &[Fragment], version: FileVersion, field_ids: &HashSet<i32>) -> Result<bool> {
    let mut mixed = false;
    for (index, fragment) in fragments.iter().enumerate() {
        let wrong = |message: String| Err(TableError::invalid(format!("new fragment {index}: {message}")));
        if fragment.physical_rows().is_none() {
            return wrong("expected its number of rows, found none; leave an empty fragment out".into());
        }
        if fragment.has_row_ids() {
            return Err(TableError::unsupported(format!(
                "new fragment {index}: stable row ids cannot be written yet"
            )));
        }
        for file in fragment.files() {
            let found = file.version()?;
            if (found == FileVersion::V0_1) != (version == FileVersion::V0_1) {
                return wrong(format!(
                    "expected files that can stand beside those of version {version}, found {found} in {}; overwrite the table",
                    file.path
                ));
            }
            mixed |= found != version;
            if file.base_id.is_some() {
                return Err(TableError::unsupported(format!(
                    "{}: base paths are not supported yet",
                    file.path
                )));
            }
            if version != FileVersion::V0_1 && file.column_indices.len() != file.fields.len() {
                let (columns, fields) = (file.column_indices.len(), file.fields.len());
                return wrong(format!(
                    "expected a column for each of {fields} fields, found {columns} in {}",
                    file.path
                ));
            }
            if let Some(id) = file.fields.iter().find(|id| !field_ids.contains(id)) {
                return wrong(format!(
                    "expected fields of the table's schema, found field {id} in {}",
                    file.path
                ));
            }
        }
    }
    Ok(mixed)
}

/// Tables that only a library that knows the bugs of their writers can continue.
fn check_appendable(base: &Manifest) -> Result<()> {
    let refused = |why: &str| {
        Err(TableError::unsupported(format!(
            "the table cannot be appended to: {why}; overwrite it, or write it anew"
        )))
    };
    if base
        .schema_fields()
        .iter()
        .any(|field| field.dictionary.is_some_and(|values| values.length > 0))
    {
        return refused("its manifest file holds the values of dictionary columns");
    }
    match base.writer_version() {
        None if base.num_fragments() > 0 => {
            refused("a release of Lance before 0.8 wrote it, whose row counts may be wrong")
        }
        Some(("lance", version)) if base.has_indices() && is_older_than_0_8_15(version) => refused(
            "a release of Lance before 0.8.15 wrote its indices, which may claim fragments that they do not cover",
        ),
        _ => Ok(()),
    }
}

fn is_older_than_0_8_15(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers = core.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>();
    // A version that is no version may be of any age.
    numbers.map_or(true, |numbers| numbers.as_slice() < [0, 8, 15].as_slice())
}

#[cfg(test)]
mod tests;
