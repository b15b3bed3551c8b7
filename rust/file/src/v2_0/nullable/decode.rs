//! Reading validity and putting it on the values.

use arrow_array::{make_array, new_null_array, Array};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::nullable::Nullability;

use crate::error::Result;
use crate::nulls::replaced;
use crate::v2_0::decode;
use crate::v2_0::fixed_width::FixedWidth;
use crate::v2_0::flat::decode::fetch_bits;
use crate::v2_0::page::{count, length, PageContext, Rows};

/// Decodes `rows` of values that may be null.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    nullable: &pb::Nullable,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    match nullable.nullability.as_ref() {
        Some(Nullability::NoNulls(no_nulls)) => decode::decode(page, no_nulls.values.as_deref(), data_type, rows).await,
        Some(Nullability::AllNulls(_)) => Ok(new_null_array(data_type, length(count(rows))?).into_data()),
        Some(Nullability::SomeNulls(some)) => {
            let FixedWidth::Flat(bitmap) = FixedWidth::of(page, some.validity.as_deref(), "validity")? else {
                return Err(page.corrupt("expected validity as a bitmap, found packed values"));
            };
            let (validity, values) = futures::try_join!(
                fetch_bits(page, bitmap, rows, "validity"),
                decode::decode(page, some.values.as_deref(), data_type, rows),
            )?;
            with_nulls(page, values, NullBuffer::new(validity))
        }
        None => Err(page.corrupt("expected a nullability, found none")),
    }
}

/// The values with these nulls, besides those that they have already.
pub(crate) fn with_nulls(page: &PageContext<'_>, values: ArrayData, nulls: NullBuffer) -> Result<ArrayData> {
    if nulls.null_count() == 0 || matches!(values.data_type(), DataType::Null) {
        return Ok(values);
    }
    if nulls.len() != values.len() {
        return Err(page.corrupt(format!(
            "expected validity of {} values, found {}",
            values.len(),
            nulls.len()
        )));
    }
    let nulls = NullBuffer::union(Some(&nulls), values.nulls());
    let array = replaced(&make_array(values), nulls).map_err(|e| page.corrupt(e))?;
    Ok(array.to_data())
}
