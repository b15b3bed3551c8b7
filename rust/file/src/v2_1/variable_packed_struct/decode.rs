//! Rows to fields: each field of a row is its bytes, behind their length where the width varies.

use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::variable_packed_struct::field_encoding::Layout;

use crate::container::{u32_at, u64_at};
use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Compression;
use crate::v2_1::full_zip::decode::FixedValues;
use crate::v2_1::page::{to_len, PageId};

/// The fields in order.
#[derive(Debug)]
pub(crate) struct VariablePackedStructs {
    pub(crate) fields: Vec<PackedField>,
}

/// One field.
#[derive(Debug)]
pub(crate) enum PackedField {
    Fixed(FixedValues),
    /// Bytes of the length before each value.
    Variable(usize, Compression),
}

impl VariablePackedStructs {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, packed: &pb::VariablePackedStruct) -> Result<VariablePackedStructs> {
        let field = |field: &pb::variable_packed_struct::FieldEncoding| {
            let compression = Compression::new(at, field.value.as_ref())?;
            match field.layout {
                Some(Layout::BitsPerValue(bits)) => Ok(PackedField::Fixed(FixedValues::new(at, compression, bits)?)),
                Some(Layout::BitsPerLength(bits @ (32 | 64))) => {
                    Ok(PackedField::Variable(to_len(at, bits / 8)?, compression))
                }
                Some(Layout::BitsPerLength(bits)) => Err(at.corrupt(format!(
                    "expected lengths of 32 or 64 bits before packed fields, found {bits}"
                ))),
                None => Err(at.missing("the width of a packed field")),
            }
        };
        let fields = packed.fields.iter().map(field).collect::<Result<_>>()?;
        Ok(VariablePackedStructs { fields })
    }

    /// Appends one row.
    pub(crate) fn decode_value(&self, at: &PageId, row: &[u8], out: &mut Values) -> Result<()> {
        let structs = out.structs(at, self.fields.len())?;
        let mut rest = row;
        let short = || {
            at.corrupt(format!(
                "expected all fields in a packed row, found {} bytes",
                row.len()
            ))
        };
        for (field, out) in self.fields.iter().zip(&mut structs.fields) {
            match field {
                PackedField::Fixed(values) => {
                    let (value, after) = rest.split_at_checked(values.width).ok_or_else(short)?;
                    values.append(at, value, 1, out)?;
                    rest = after;
                }
                PackedField::Variable(width, compression) => {
                    let length = match width {
                        4 => u32_at(rest, 0).map(u64::from),
                        _ => u64_at(rest, 0),
                    };
                    let length = to_len(at, length.ok_or_else(short)?)?;
                    let after = rest.get(*width..).and_then(|rest| rest.split_at_checked(length));
                    let (value, after) = after.ok_or_else(short)?;
                    compression.decode_value(at, value, out)?;
                    rest = after;
                }
            }
        }
        if !rest.is_empty() {
            return Err(at.corrupt(format!(
                "expected a packed row to end with its last field, found {} more bytes",
                rest.len()
            )));
        }
        structs.len = structs.len.saturating_add(1);
        Ok(())
    }
}
