//! Rows of fixed-width fields, one row after the other, as packed structs store them.

/// Copies one field out of rows. `row_width` bytes a row, the field `width` bytes from `offset` in each.
pub fn gather_field(rows: &[u8], row_width: usize, offset: usize, width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len().checked_div(row_width).unwrap_or(0).saturating_mul(width));
    if row_width == 0 {
        return out;
    }
    for row in rows.chunks_exact(row_width) {
        out.extend_from_slice(row.get(offset..offset.saturating_add(width)).unwrap_or_default());
    }
    out
}

/// Copies one field into rows that are already there. The inverse of [`gather_field`].
pub fn scatter_field(values: &[u8], width: usize, rows: &mut [u8], row_width: usize, offset: usize) {
    if row_width == 0 || width == 0 {
        return;
    }
    for (row, value) in rows.chunks_exact_mut(row_width).zip(values.chunks_exact(width)) {
        if let Some(place) = row.get_mut(offset..offset.saturating_add(width)) {
            place.copy_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_fields_come_back_from_rows() {
        let (a, b) = ([1_u8, 2, 3], [10_u8, 0, 20, 0, 30, 0]);
        let mut rows = vec![0; 9];
        scatter_field(&a, 1, &mut rows, 3, 0);
        scatter_field(&b, 2, &mut rows, 3, 1);
        assert_eq!(rows, [1, 10, 0, 2, 20, 0, 3, 30, 0]);
        assert_eq!(gather_field(&rows, 3, 0, 1), a);
        assert_eq!(gather_field(&rows, 3, 1, 2), b);
    }
}
