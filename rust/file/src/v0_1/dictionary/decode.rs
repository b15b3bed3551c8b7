//! Reading dictionary columns: keys, and the values that the file or the table gave.

use arrow_array::{make_array, Array, ArrayRef};
use arrow_schema::DataType;

use crate::error::{FileError, Result};
use crate::v0_1::page::{FieldPages, PageRows};
use crate::v0_1::plain::decode::PlainRead;

/// A dictionary column while its keys come in.
#[derive(Debug)]
pub(crate) struct DictionaryRead<'a> {
    pages: FieldPages<'a>,
    data_type: DataType,
    pub(crate) keys: PlainRead<'a>,
    values: ArrayRef,
}

impl<'a> DictionaryRead<'a> {
    pub(crate) fn new(
        pages: FieldPages<'a>,
        data_type: &DataType,
        values: ArrayRef,
        rows: &[PageRows],
    ) -> Result<DictionaryRead<'a>> {
        let DataType::Dictionary(key, value) = data_type else {
            return Err(FileError::invalid(format!("expected a dictionary, found {data_type}")));
        };
        if values.data_type() != value.as_ref() {
            return Err(pages.corrupt_column(format!(
                "expected a dictionary of {value}, found one of {}",
                values.data_type()
            )));
        }
        Ok(DictionaryRead {
            pages,
            data_type: data_type.clone(),
            keys: PlainRead::new(pages, key, rows)?,
            values,
        })
    }

    pub(crate) fn finish(self) -> Result<ArrayRef> {
        let keys = self.keys.finish()?.to_data();
        let values = self.values.to_data();
        // A null's key is whatever was there: with no value at all it can only have been null.
        if self.values.is_empty() && !keys.is_empty() {
            return Ok(arrow_array::new_null_array(&self.data_type, keys.len()));
        }
        let data = keys
            .into_builder()
            .data_type(self.data_type)
            .add_child_data(values)
            .build();
        Ok(make_array(data.map_err(|e| self.pages.corrupt_column(e))?))
    }
}
