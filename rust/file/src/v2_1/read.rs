//! Reads rows of a 2.1 or 2.2 file.
//!
//! A read is planned for all columns and pages together and fetches at most twice: first the metadata that locates the rows (indices,
//! dictionaries), unless it is cached, then the rows. A small page, or one of which most is wanted, is fetched whole in the first step.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use esker_store::store::StoreRef;
use futures::future::try_join_all;

use super::columns::assign_columns;
use super::fetch::fetch;
use super::keyed::{keyed, may_be_keyed};
use super::leaf::{LeafColumn, LoadedPage};
use super::tree::{ColumnTree, Leaf, Node};
use super::turns::Turns;
use crate::cache::Owner;
use crate::container::Container;
use crate::error::{FileError, Result};
use crate::room::Room;
use crate::schema::Field;
use crate::v2_0::page::count;

/// Reads that decode more bytes than this do so on threads of their own, a leaf on each.
const BYTES_FOR_THREADS: usize = 256 * 1024;

/// Where the columns of a read are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decoding {
    /// In the task that reads: where others read beside it.
    Here,
    /// Side by side, where there is enough to decode.
    #[default]
    SideBySide,
}

/// An open 2.1 or 2.2 file.
#[derive(Debug)]
pub(crate) struct LeafFile {
    container: Container,
    pub(crate) path: Arc<str>,
    /// Of the handles to one open file, which share what is kept of it.
    pub(crate) turns: Arc<Turns>,
}

/// The columns of a 2.1 or 2.2 file that a read wants.
#[derive(Debug, Clone)]
pub(crate) struct LeafColumns(Arc<ColumnTree>);

impl LeafColumns {
    /// The columns' numbers.
    pub(crate) fn columns(&self) -> Vec<usize> {
        self.0.columns.clone()
    }

    /// Whether they are one column that may be read as keys and values.
    pub(crate) fn may_be_keyed(&self) -> bool {
        let (nodes, leaves) = (self.0.nodes.as_slice(), self.0.leaves.as_slice());
        matches!((nodes, leaves), ([Node::Leaf(_)], [leaf]) if may_be_keyed(leaf))
    }

    /// The leaf that lies in a column.
    pub(crate) fn leaf(&self, column: usize) -> Option<Arc<Leaf>> {
        self.0.leaves.iter().find(|leaf| leaf.column == column).cloned()
    }
}

impl LeafFile {
    pub(crate) fn new(container: Container) -> LeafFile {
        LeafFile {
            path: Arc::from(container.path()),
            container,
            turns: Arc::default(),
        }
    }

    /// The same open file, read by way of another handle to its store.
    pub(crate) fn through(&self, store: &StoreRef) -> LeafFile {
        LeafFile {
            container: self.container.through(store),
            path: self.path.clone(),
            turns: self.turns.clone(),
        }
    }

    /// What is kept of its pages.
    pub(crate) fn kept(&self) -> &Owner {
        self.container.kept()
    }

    pub(crate) fn container(&self) -> &Container {
        &self.container
    }

    /// Finds the columns of `fields`; `column_of` maps the ids of leaves to columns, and the file's own order decides without it.
    pub(crate) fn project(
        &self,
        fields: &[Field],
        column_of: Option<&dyn Fn(i32) -> Option<usize>>,
    ) -> Result<LeafColumns> {
        let tree = match column_of {
            Some(column_of) => ColumnTree::new(fields, column_of)?,
            None => {
                let own = assign_columns(self.container.schema());
                ColumnTree::new(fields, &|id| own.get(&id).copied())?
            }
        };
        Ok(LeafColumns(Arc::new(tree)))
    }

    /// See [`crate::FileReader::page_ends`].
    pub(crate) fn page_ends(&self, columns: &LeafColumns, most: usize) -> Result<Vec<Vec<u64>>> {
        let varied: Vec<&Arc<Leaf>> = columns.0.leaves.iter().filter(|leaf| leaf.varies()).collect();
        if varied.len() > most {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for leaf in varied {
            let meta = self.container.column(leaf.column)?;
            if meta.pages.len() > 1 {
                let ends = meta
                    .pages
                    .iter()
                    .map(|page| page.first_value.saturating_add(page.num_values));
                all.push(ends.collect());
            }
        }
        Ok(all)
    }

    /// Reads sorted, separate, non-empty `rows`: an array for each field of the projection. Fails where they take more than `room`.
    pub(crate) async fn read(
        &self,
        columns: &LeafColumns,
        rows: &[Range<u64>],
        decoding: Decoding,
        room: &Arc<Room>,
    ) -> Result<Vec<ArrayRef>> {
        let tree = &columns.0;
        let columns = self.read_leaves(&tree.leaves, rows, decoding, room).await?;
        let mut leaves = Vec::with_capacity(columns.len());
        for (leaf, column) in tree.leaves.iter().zip(columns) {
            let mut finished = column.finish()?;
            if let Some(blob) = leaf.blob {
                finished.array = blob.show(&self.container, finished.array).await?;
            }
            leaves.push(finished);
        }
        tree.assemble(&self.path, leaves, count(rows))
    }

    /// Reads sorted, separate, non-empty `rows` of the only column of a projection, as keys and values where [`keyed`] has it.
    pub(crate) async fn read_keyed(
        &self,
        columns: &LeafColumns,
        rows: &[Range<u64>],
        room: &Arc<Room>,
    ) -> Result<ArrayRef> {
        let tree = &columns.0;
        let ([leaf], [Node::Leaf(_)]) = (tree.leaves.as_slice(), tree.nodes.as_slice()) else {
            return Err(FileError::invalid("expected one column that is a leaf"));
        };
        let mut loaded = fetch(self, &tree.leaves, rows).await?;
        let pages = loaded.pop().unwrap_or_default();
        let leaf = keyed(leaf, &pages, count(rows)).unwrap_or_else(|| leaf.clone());
        Ok(LeafColumn::decode(&leaf, &self.path, &pages, room)?.finish()?.array)
    }

    /// Reads `rows` of each leaf, as far as there is `room`.
    pub(crate) async fn read_leaves(
        &self,
        leaves: &[Arc<Leaf>],
        rows: &[Range<u64>],
        decoding: Decoding,
        room: &Arc<Room>,
    ) -> Result<Vec<LeafColumn>> {
        let loaded = fetch(self, leaves, rows).await?;
        let bytes: usize = loaded.iter().flatten().map(LoadedPage::num_bytes).sum();
        let jobs = leaves.iter().zip(loaded);
        let alone = decoding == Decoding::Here
            || leaves.len() < 2
            || bytes < BYTES_FOR_THREADS
            || tokio::runtime::Handle::try_current().is_err();
        if alone {
            return jobs
                .map(|(leaf, pages)| LeafColumn::decode(leaf, &self.path, &pages, room))
                .collect();
        }
        let tasks = jobs.map(|(leaf, pages)| {
            let (leaf, path, room) = (leaf.clone(), self.path.clone(), room.clone());
            tokio::task::spawn(async move { LeafColumn::decode(&leaf, &path, &pages, &room) })
        });
        let columns = try_join_all(tasks).await;
        let columns = columns.map_err(|e| FileError::invalid(format!("a decoding task failed: {e}")))?;
        columns.into_iter().collect()
    }
}
