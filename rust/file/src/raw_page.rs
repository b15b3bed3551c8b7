//! Pages as they lie in their file, to be copied to another.

use std::ops::Range;

use bytes::Bytes;

use crate::container::{PageEncoding, WrittenPage};
use crate::error::{FileError, Result};
use crate::reader::{FileReader, OpenFile};
use crate::v2_1::message::PAGE_LAYOUT;

/// Where a page lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePlace {
    /// The rows that it holds.
    pub rows: Range<u64>,
    /// The bytes that it takes.
    pub bytes: u64,
}

/// An encoded page.
#[derive(Debug)]
pub struct RawPage {
    buffers: Vec<Bytes>,
    encoding: Bytes,
    num_values: u64,
}

impl RawPage {
    /// Rows in the page.
    pub fn num_rows(&self) -> u64 {
        self.num_values
    }

    /// Bytes of its buffers.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// The page as one of `column`, from top-level row `row` on.
    pub(crate) fn written(self, column: usize, row: u64) -> WrittenPage {
        WrittenPage {
            column,
            buffers: self.buffers.into_iter().map(|buffer| vec![buffer]).collect(),
            num_values: self.num_values,
            priority: row,
            encoding_type: PAGE_LAYOUT,
            encoding: self.encoding.to_vec(),
        }
    }
}

impl FileReader {
    /// The pages of a column that holds a value for each row; none if they cannot be copied: in a file before version 2.1, and where
    /// they hold another number of values than the file has rows.
    pub fn page_places(&self, column: usize) -> Result<Vec<PagePlace>> {
        let OpenFile::V2_1(file) = &self.file else {
            return Ok(Vec::new());
        };
        let meta = file.container().column(column)?;
        let known = |page: &crate::container::PageMeta| matches!(page.encoding, PageEncoding::V2_1(_));
        if meta.num_values != self.num_rows() || !meta.buffers.is_empty() || !meta.pages.iter().all(known) {
            return Ok(Vec::new());
        }
        let places = meta.pages.iter().map(|page| PagePlace {
            rows: page.first_value..page.first_value.saturating_add(page.num_values),
            bytes: page.buffers.iter().map(|buffer| buffer.end - buffer.start).sum(),
        });
        Ok(places.collect())
    }

    /// Reads a page of a column as it is.
    pub async fn read_page(&self, column: usize, page: usize) -> Result<RawPage> {
        let missing = || FileError::invalid(format!("expected a page {page} in column {column}, found none"));
        let container = self.container().ok_or_else(missing)?;
        let meta = container.column(column)?;
        let found = meta.pages.get(page).ok_or_else(missing)?;
        let encoding = container.page_messages(column)?.into_iter().nth(page);
        Ok(RawPage {
            buffers: container.store().get_ranges(container.path(), &found.buffers).await?,
            encoding: encoding.ok_or_else(missing)?,
            num_values: found.num_values,
        })
    }
}
