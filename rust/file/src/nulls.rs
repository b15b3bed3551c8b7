//! The nulls of an array: others in their place, and what they hide.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{make_array, Array, ArrayRef, BooleanArray, GenericByteArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};

/// The array with these nulls and no others.
pub(crate) fn replaced(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == &DataType::Boolean {
        // Bools may start anywhere in their buffer, and `ArrayData` wants nulls that start there too.
        let values = array.as_boolean().values().clone();
        if nulls.as_ref().is_some_and(|nulls| nulls.len() != values.len()) {
            return Err(ArrowError::InvalidArgumentError(format!(
                "expected nulls for {} values",
                values.len()
            )));
        }
        return Ok(Arc::new(BooleanArray::new(values, nulls)));
    }
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// Whether a null spans bytes.
pub(crate) fn hides_bytes<T: ByteArrayType>(array: &GenericByteArray<T>) -> bool {
    let ends = array.value_offsets();
    array.nulls().is_some_and(|nulls| {
        let filled = ends.iter().zip(ends.iter().skip(1)).map(|(start, end)| end > start);
        nulls.null_count() > 0 && filled.zip(nulls.iter()).any(|(any, valid)| any && !valid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_bools_that_start_inside_a_buffer_get_their_nulls() {
        let array: ArrayRef = Arc::new(BooleanArray::from(vec![true; 200]));
        let nulls = NullBuffer::from_iter((0..60).map(|i| i % 3 > 0));
        let found = replaced(&array.slice(135, 60), Some(nulls.clone())).unwrap();
        assert_eq!(found.nulls(), Some(&nulls));
        assert!(replaced(&array, Some(nulls)).is_err());
    }
}
