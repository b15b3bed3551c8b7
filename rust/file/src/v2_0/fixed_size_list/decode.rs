//! Reading fixed-size lists: the same rows, `dimension` items each.

use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::decode;
use crate::v2_0::page::{count, length, PageContext, Rows};

/// Decodes `rows` lists.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    list: &pb::FixedSizeList,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let dimension = u64::from(list.dimension);
    let item = match data_type {
        DataType::FixedSizeList(item, size) if u64::try_from(*size).ok() == Some(dimension) => item,
        other => {
            return Err(page.corrupt(format!("expected type {other}, found lists of {dimension} items")));
        }
    };
    let items = page.byte_ranges(rows, dimension)?;
    let values = decode::decode(page, list.items.as_deref(), item.data_type(), &items).await?;
    ArrayData::builder(data_type.clone())
        .len(length(count(rows))?)
        .add_child_data(values)
        .build()
        .map_err(|e| page.corrupt(e))
}
