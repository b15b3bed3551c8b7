//! The cached states of a file's pages.

use std::sync::Arc;

use arrow_schema::DataType;

use super::state::PageState;
use crate::cache::{Owner, Slot};

/// The state of a page that is read as `data_type`.
pub(crate) fn kept(owner: &Owner, column: usize, page: usize, data_type: &DataType) -> Option<Arc<PageState>> {
    let state: Arc<PageState> = owner.get(&Slot::Page(column, page))?;
    (state.data_type == *data_type).then_some(state)
}

/// Keeps the state of a page.
pub(crate) fn keep(owner: &Owner, column: usize, page: usize, state: &Arc<PageState>) {
    owner.put(Slot::Page(column, page), state.clone(), state.memory());
}

/// Notes that rows of a page were read, up to `end`: a pass comes to them once.
pub(crate) fn passed(owner: &Owner, column: usize, page: usize, end: u64, num_rows: u64) {
    if end >= num_rows {
        owner.passed(&Slot::Page(column, page));
    }
}
