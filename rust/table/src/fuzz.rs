//! Bodies for fuzzing: any bytes end in a part of a table or in an error, and what was read is written and read again as the same.
//!
//! `cargo test` replays `fuzz/corpus` and seeded mutations of it; `cargo fuzz` calls the same function, see `fuzz/README.md`.

use arrow_array::Array;
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;

use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::DeletionFileType;
use crate::manifest::Manifest;
use crate::row_ids::{RowIdSequence, RowVersions};
use crate::transaction::Transaction;
use crate::zones;

/// Their names, which are those of folders in `fuzz/corpus`.
pub const TARGETS: [&str; 7] = [
    "lance_manifest",
    "lance_transaction",
    "lance_deletions_arrow",
    "lance_deletions_bitmap",
    "lance_row_ids",
    "lance_row_versions",
    "lance_zone_seed",
];

const NAME: &str = "fuzz";

/// The most rows of a sequence that are looked at: a few bytes may declare any number.
const ROWS: u64 = 2000;

/// The types of columns of zone seeds, by the first byte of an input.
const SEED_TYPES: [DataType; 10] = [
    DataType::Int64,
    DataType::Utf8,
    DataType::Float64,
    DataType::Boolean,
    DataType::Decimal128(20, 3),
    DataType::Timestamp(TimeUnit::Microsecond, None),
    DataType::LargeBinary,
    DataType::FixedSizeBinary(5),
    DataType::Date32,
    DataType::UInt8,
];

/// The outcome of an input.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it could not be read.
    pub error: Option<TableError>,
    /// Fragments, rows or zones that were read.
    pub records: u64,
    /// Whether what was read is another thing after it was written: a fault of ours.
    pub differs: bool,
}

/// Runs a body. An unknown name is no target and ends in an error.
pub fn run(target: &str, data: &[u8]) -> Outcome {
    let data = Bytes::copy_from_slice(data);
    let found = match target {
        "lance_manifest" => manifest(&data),
        "lance_transaction" => transaction(&data),
        "lance_deletions_arrow" => deletions(DeletionFileType::Arrow, &data),
        "lance_deletions_bitmap" => deletions(DeletionFileType::Bitmap, &data),
        "lance_row_ids" => row_ids(&data),
        "lance_row_versions" => row_versions(&data),
        "lance_zone_seed" => zone_seed(&data),
        other => Err(TableError::corrupt(other, "expected the name of a body")),
    };
    match found {
        Ok((records, differs)) => Outcome {
            error: None,
            records,
            differs,
        },
        Err(error) => Outcome {
            error: Some(error),
            ..Outcome::default()
        },
    }
}

fn manifest(data: &Bytes) -> Result<(u64, bool)> {
    let manifest = Manifest::decode(data, NAME)?;
    manifest.schema()?;
    let mut records = 1_u64;
    let mut fragments = Vec::new();
    for fragment in manifest.fragments() {
        let fragment = fragment?;
        records = records.saturating_add(fragment.files().len() as u64);
        fragments.push(fragment.encode());
    }
    manifest.num_rows()?;
    manifest.indices()?;
    manifest.goal()?;
    manifest.dictionaries()?;
    manifest.data_storage_version()?;
    if let Some(transaction) = manifest.inline_transaction()? {
        transaction.operation()?;
    }
    let again = Manifest::decode(&manifest.encode()?, NAME)?;
    let kept = again
        .fragments()
        .map(|fragment| Ok(fragment?.encode()))
        .collect::<Result<Vec<_>>>()?;
    let differs = kept != fragments
        || again.version() != manifest.version()
        || again.config() != manifest.config()
        || again.num_rows()? != manifest.num_rows()?;
    Ok((records, differs))
}

fn transaction(data: &Bytes) -> Result<(u64, bool)> {
    let found = Transaction::decode(data)?;
    let operation = found.operation()?;
    found.application_record()?;
    let made = Transaction::new(found.read_version(), &operation, found.properties().clone())?;
    // What is written of it is read as the same kind of operation.
    let again = Transaction::decode(&made.encode())?;
    let differs = again.kind() != found.kind() || Transaction::decode(&found.encode())?.uuid() != found.uuid();
    Ok((1, differs))
}

fn deletions(file_type: DeletionFileType, data: &Bytes) -> Result<(u64, bool)> {
    let found = DeletionVector::decode(file_type, data, NAME)?;
    found.check(Some(found.len()), None, NAME)?;
    let counted = found.rows().iter().take(50).count() as u64;
    let differs = counted != found.len().min(50) || found.rows().iter().take(50).any(|row| !found.contains(row));
    Ok((found.len(), differs))
}

fn row_ids(data: &Bytes) -> Result<(u64, bool)> {
    let found = RowIdSequence::decode(data, NAME)?;
    let rows = found.len();
    let some = found.slice(0..rows.min(ROWS));
    let mut ids = Vec::new();
    found.extend_into(0..rows.min(ROWS), &mut ids);
    let again = RowIdSequence::decode(&Bytes::from(found.encode()), NAME)?;
    let last = rows.checked_sub(1);
    // An id may lie at several places of a sequence that lies; the first one counts.
    let differs = some.ids() != ids
        || again.len() != rows
        || last.is_some_and(|last| again.get(last) != found.get(last))
        || ids
            .iter()
            .take(50)
            .any(|id| found.position(*id).and_then(|place| found.get(place)) != Some(*id));
    Ok((rows, differs))
}

fn row_versions(data: &Bytes) -> Result<(u64, bool)> {
    let found = RowVersions::decode(data, NAME)?;
    let rows = found.len();
    let some = found.slice(0..rows.min(ROWS)).rows();
    let again = RowVersions::decode(&Bytes::from(found.encode()), NAME)?;
    let differs = again.len() != rows
        || some
            .iter()
            .zip(0..)
            .take(50)
            .any(|(version, place)| found.get(place) != Some(*version) || again.get(place) != Some(*version));
    Ok((rows, differs))
}

/// An input is the number of a type, the rows of the file in eight bytes, then the seed.
fn zone_seed(data: &Bytes) -> Result<(u64, bool)> {
    let refused = || TableError::corrupt(NAME, "expected a zone map, found none");
    let (number, rest) = data.split_first().ok_or_else(refused)?;
    let (rows, seed) = rest.split_first_chunk::<8>().ok_or_else(refused)?;
    let data_type = SEED_TYPES
        .get(usize::from(*number) % SEED_TYPES.len())
        .ok_or_else(refused)?;
    let rows = u64::from_le_bytes(*rows);
    let found = zones::decode(seed, data_type, rows).ok_or_else(refused)?;
    let zones = found.null_count.len();
    let differs = found.offsets.last() != Some(&rows)
        || found.offsets.len() != zones.saturating_add(1)
        || [&found.min, &found.max]
            .into_iter()
            .any(|bounds| bounds.len() != zones || bounds.data_type() != data_type)
        || [&found.min, &found.max]
            .into_iter()
            .any(|bounds| bounds.to_data().validate_full().is_err());
    Ok((zones as u64, differs))
}
