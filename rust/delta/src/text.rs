//! Many texts in one buffer.

use crate::error::{DeltaError, Result};

/// Texts one behind the other: their bytes, and where each ends.
#[derive(Debug, Default, Clone)]
pub(crate) struct TextColumn {
    bytes: String,
    ends: Vec<u32>,
}

impl TextColumn {
    pub(crate) fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self {
            bytes: String::with_capacity(bytes),
            ends: Vec::with_capacity(rows),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a text; all of them together may hold 4 GiB.
    pub(crate) fn push(&mut self, text: &str) -> Result<()> {
        let end = u32::try_from(self.bytes.len() + text.len())
            .map_err(|_| DeltaError::unsupported("one file of the log names files with more than 4 GiB of paths"))?;
        self.bytes.push_str(text);
        self.ends.push(end);
        Ok(())
    }

    /// The text at `row`; empty behind the last.
    pub(crate) fn get(&self, row: usize) -> &str {
        let start = row
            .checked_sub(1)
            .map_or(Some(0), |before| self.ends.get(before).copied());
        let (Some(start), Some(end)) = (start, self.ends.get(row).copied()) else {
            return "";
        };
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
