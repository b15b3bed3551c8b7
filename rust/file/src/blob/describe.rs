//! Places v2 blobs: inline in the data file, packed in a shared sidecar file, in a dedicated sidecar file, or external (only its URI is
//! kept).

use std::sync::Arc;

use arrow_array::builder::{PrimitiveBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, StructArray};
use bytes::Bytes;

use super::fetch::fetch;
use super::location::{BlobLocation, BlobObject, DEDICATED, EXTERNAL, INLINE, PACKED};
use super::write::{value, wrong, BlobWriter};
use crate::container::ContainerWriter;
use crate::error::{FileError, Result};
use crate::schema::{BlobKind, Field};
use crate::writer::ExternalBlobs;

/// The sizes that decide where a blob is stored, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    /// Blobs of at most this size go into the data file.
    inline: u64,
    /// Larger blobs get a file of their own.
    pub(super) dedicated: u64,
    /// The largest shared file.
    pack: u64,
}

impl Thresholds {
    pub(super) fn of(field: &Field) -> Thresholds {
        let of = |key: &str, default: u64| {
            let text = field.metadata_text(key).and_then(|text| text.parse().ok());
            text.unwrap_or(default)
        };
        Thresholds {
            inline: of("lance-encoding:blob-inline-size-threshold", 64 * 1024),
            dedicated: of("lance-encoding:blob-dedicated-size-threshold", 4 * 1024 * 1024),
            pack: of("lance-encoding:blob-pack-file-size-threshold", 1024 * 1024 * 1024),
        }
    }
}

/// The builder of the columns of descriptions.
#[derive(Default)]
pub(super) struct Descriptions {
    kinds: PrimitiveBuilder<UInt8Type>,
    positions: PrimitiveBuilder<UInt64Type>,
    sizes: PrimitiveBuilder<UInt64Type>,
    ids: PrimitiveBuilder<UInt32Type>,
    uris: StringBuilder,
}

impl Descriptions {
    pub(super) fn push(&mut self, kind: u8, position: u64, size: u64, id: u32, uri: &str) {
        self.kinds.append_value(kind);
        self.positions.append_value(position);
        self.sizes.append_value(size);
        self.ids.append_value(id);
        self.uris.append_value(uri);
    }

    pub(super) fn columns(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.kinds.finish()),
            Arc::new(self.positions.finish()),
            Arc::new(self.sizes.finish()),
            Arc::new(self.ids.finish()),
            Arc::new(self.uris.finish()),
        ]
    }
}

/// Writes the payloads of an array of data, uri, position and size, and returns their descriptions.
pub(super) async fn describe_v2(
    blobs: &mut BlobWriter,
    out: &mut ContainerWriter,
    field: &Field,
    array: &ArrayRef,
) -> Result<ArrayRef> {
    let invalid = |what: String| FileError::invalid(format!("column '{}': {what}", field.name));
    let fields = array.as_struct_opt();
    let column = |index: usize| fields?.columns().get(index);
    let data = column(0).and_then(|data| data.as_binary_opt::<i64>());
    let uris = column(1).and_then(|uris| uris.as_string_opt::<i32>());
    let (Some(fields), Some(data), Some(uris)) = (fields, data, uris) else {
        return Err(invalid(format!(
            "expected blobs as data and uri, found {}",
            array.data_type()
        )));
    };
    let number = |index: usize, row: usize| {
        let numbers = column(index)?.as_primitive_opt::<UInt64Type>()?;
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let thresholds = Thresholds::of(field);
    let mut descriptions = Descriptions::default();
    for row in 0..fields.len() {
        if fields.is_null(row) {
            descriptions.push(INLINE, 0, 0, 0, "");
            continue;
        }
        let uri = uris.is_valid(row).then(|| uris.value(row));
        match (value(data, row), uri) {
            (Some(bytes), None) => {
                if number(2, row).is_some() || number(3, row).is_some() {
                    return Err(invalid(
                        "expected position and size beside a uri only, found one of them beside data".to_owned(),
                    ));
                }
                place(blobs, out, field.id, thresholds, bytes, &mut descriptions).await?;
            }
            (None, Some(uri)) => {
                let (start, size) = (number(2, row), number(3, row));
                if start.is_some() != size.is_some() || size == Some(0) {
                    return Err(invalid(format!(
                        "expected both position and a size above 0 for a part of '{uri}', or neither"
                    )));
                }
                let start = start.unwrap_or(0);
                let base = match blobs.external {
                    ExternalBlobs::Ingest => None,
                    ExternalBlobs::Reference | ExternalBlobs::Refuse => blobs.home.base_of(uri),
                };
                if let Some((id, path)) = base {
                    descriptions.push(EXTERNAL, start, size.unwrap_or(0), id, &path);
                    continue;
                }
                match blobs.external {
                    ExternalBlobs::Reference => descriptions.push(EXTERNAL, start, size.unwrap_or(0), 0, uri),
                    ExternalBlobs::Ingest => {
                        let object = BlobObject::External(Arc::from(uri));
                        let blob = Some(BlobLocation { object, start, size });
                        let bytes = fetch(&blobs.home, &[blob]).await?.pop().flatten().unwrap_or_default();
                        place(blobs, out, field.id, thresholds, bytes, &mut descriptions).await?;
                    }
                    ExternalBlobs::Refuse => {
                        return Err(FileError::OutsideBases {
                            column: field.name.clone(),
                            uri: uri.to_owned(),
                        });
                    }
                }
            }
            (data, _) => {
                let found = if data.is_some() { "both" } else { "neither" };
                return Err(invalid(format!("expected data or uri for a blob, found {found}")));
            }
        }
    }
    let columns = descriptions.columns();
    let array = StructArray::try_new(BlobKind::V2.description().clone(), columns, fields.nulls().cloned());
    Ok(Arc::new(array.map_err(wrong(field))?))
}

pub(super) async fn place(
    blobs: &mut BlobWriter,
    out: &mut ContainerWriter,
    column: i32,
    thresholds: Thresholds,
    bytes: Bytes,
    descriptions: &mut Descriptions,
) -> Result<()> {
    let size = bytes.len() as u64;
    if size > thresholds.dedicated {
        let id = blobs.sidecars.write_alone(bytes).await?;
        descriptions.push(DEDICATED, 0, size, id, "");
    } else if size > thresholds.inline {
        let pack = blobs.packs.entry(column).or_default();
        let (id, position) = blobs.sidecars.write_packed(pack, thresholds.pack, bytes).await?;
        descriptions.push(PACKED, position, size, id, "");
    } else if size == 0 {
        descriptions.push(INLINE, 0, 0, 0, "");
    } else {
        let position = out.write_payload(bytes).await?;
        descriptions.push(INLINE, position, size, 0, "");
    }
    Ok(())
}
