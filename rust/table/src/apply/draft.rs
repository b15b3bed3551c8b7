//! The draft of a new version, and what every commit sets on it.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_file::version::FileVersion;
use esker_proto::lance::table as pb;
use prost::Message;

use super::repair::storage_version;
use super::{field_ids, CommitParams};
use crate::error::{Result, TableError};
use crate::flags;
use crate::fragment_list::FragmentList;
use crate::manifest::{field, Manifest};
use crate::raw::RawMessage;
use crate::row_ids::RowIdAllocator;
use crate::transaction::Transaction;

const LIBRARY: &str = "esker";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The draft of a new version.
#[derive(Debug)]
pub(super) struct Draft {
    /// All fields of the manifest but the fragments.
    pub raw: RawMessage,
    pub fragments: FragmentList,
    /// The encoded index section.
    pub index_section: Option<Bytes>,
    /// The highest fragment id given out so far.
    pub max_fragment_id: Option<u32>,
    /// Whether a file is of another version than the table's.
    pub mixed_files: bool,
    /// Gives out ids to new rows, if the table has stable ones.
    pub row_ids: Option<RowIdAllocator>,
    /// The highest field id among the removed columns and files.
    pub gone_field_id: i32,
}

impl Draft {
    /// A draft with the contents of `base`.
    pub fn of(base: &Manifest) -> Result<Self> {
        // Before the list is cloned, which takes along what was found out about it.
        let max_fragment_id = base.max_fragment_id()?;
        let mut raw = base.raw.clone();
        let version = storage_version(base)?;
        if raw.get(field::DATA_FORMAT).is_none() || version != base.data_storage_version()? {
            set_data_format(&mut raw, version);
        }
        Ok(Self {
            raw,
            fragments: base.fragments.clone(),
            index_section: base.index_section.clone(),
            max_fragment_id,
            mixed_files: base.reader_feature_flags() & flags::MIXED_FILE_VERSIONS != 0,
            row_ids: RowIdAllocator::new(Some(base), false),
            gone_field_id: -1,
        })
    }

    /// The finished version.
    pub fn finish(self, transaction: &Transaction, params: &CommitParams) -> Result<Manifest> {
        let Self {
            mut raw,
            fragments,
            index_section,
            max_fragment_id,
            mixed_files,
            row_ids,
            gone_field_id,
        } = self;
        for of_one_version in [
            field::VERSION_AUX_DATA,
            field::INDEX_SECTION,
            field::TAG,
            field::TRANSACTION_SECTION_OLD,
            field::TRANSACTION_SECTION,
        ] {
            raw.remove(of_one_version);
        }
        if let Some((key, value)) = transaction.application_record()? {
            let mut config = config_of(&raw)?;
            config.insert(key, value);
            set_config(&mut raw, config)?;
        }
        field_ids::remember(&mut raw, gone_field_id)?;
        let holds = flags::Contents {
            deletions: fragments.has_deletions()?,
            row_ids: row_ids.is_some(),
            mixed_files,
            base_paths: raw.get(field::BASE_PATHS).is_some(),
            spilled_lineage: fragments.has_spilled_lineage()?,
        };
        if let Some(row_ids) = &row_ids {
            raw.set_varint(field::NEXT_ROW_ID, row_ids.next_row_id());
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
        let mut next = Manifest::from_parts(raw, fragments, "")?;
        next.index_section = index_section;
        next.inline_transaction = transaction.is_inline().then(|| transaction.encode());
        Ok(next)
    }
}

pub(super) fn timestamp(nanoseconds: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(nanoseconds.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0);
    prost_types::Timestamp {
        seconds: nanoseconds.div_euclid(NANOS_PER_SECOND),
        nanos,
    }
}

pub(super) fn set_data_format(raw: &mut RawMessage, version: FileVersion) {
    let format = pb::manifest::DataStorageFormat {
        file_format: "lance".into(),
        version: version.to_string(),
    };
    raw.set_bytes(field::DATA_FORMAT, &format.encode_to_vec());
}

/// Replaces the map in field `number` by the one in `message`.
pub(super) fn set_map(raw: &mut RawMessage, number: u32, message: &impl Message) -> Result<()> {
    let encoded = Bytes::from(message.encode_to_vec());
    let entries = RawMessage::decode(&encoded).map_err(|error| error.of("manifest"))?;
    raw.set_all_bytes(number, entries.all(number).map(|entry| entry.payload().as_ref()));
    Ok(())
}

/// The config among the fields of a manifest.
pub(super) fn config_of(raw: &RawMessage) -> Result<BTreeMap<String, String>> {
    let mut entries = RawMessage::default();
    let config: Vec<&Bytes> = raw.all(field::CONFIG).map(|entry| entry.payload()).collect();
    entries.set_all_bytes(field::CONFIG, config.into_iter().map(AsRef::as_ref));
    let decoded = pb::Manifest::decode(entries.encode().as_slice());
    Ok(decoded
        .map_err(|error| TableError::corrupt("manifest", error.to_string()))?
        .config)
}

pub(super) fn set_config(raw: &mut RawMessage, config: BTreeMap<String, String>) -> Result<()> {
    let message = pb::Manifest {
        config,
        ..Default::default()
    };
    set_map(raw, field::CONFIG, &message)
}

/// Refuses another file version than the table's: only an overwrite changes it.
pub(super) fn check_storage_version(base: &Manifest, params: &CommitParams) -> Result<()> {
    let version = storage_version(base)?;
    match params.data_storage_version.filter(|asked| *asked != version) {
        None => Ok(()),
        Some(asked) => Err(TableError::invalid(format!(
            "expected data_storage_version {version} as the table has, found {asked}; leave it out, or overwrite the table"
        ))),
    }
}

/// Refuses to change tables of old releases of Lance whose bugs may have left wrong metadata.
pub(super) fn check_changeable(base: &Manifest) -> Result<()> {
    let refused = |why: &str| {
        Err(TableError::unsupported(format!(
            "the table cannot be changed: {why}; overwrite it, or write it anew"
        )))
    };
    match base.writer_version() {
        None if base.num_fragments() > 0 => {
            refused("a release of Lance before 0.8 wrote it, whose row counts may be wrong")
        }
        Some(("lance", version)) if base.has_indices() && is_older_than(version, [0, 8, 15]) => refused(
            "a release of Lance before 0.8.15 wrote its indices, which may claim fragments that they do not cover",
        ),
        _ => Ok(()),
    }
}

/// Whether a release of Lance is older than another one.
pub(super) fn is_older_than(version: &str, other: [u64; 3]) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers = core.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>();
    // An unparsable release may be of any age.
    numbers.map_or(true, |numbers| numbers.as_slice() < other.as_slice())
}
