//! Writes sidecar files: the files of blobs beside a data file.

use std::ops::Range;

use bytes::Bytes;
use esker_store::store::{ObjectWriter, StoreRef};

use super::location::sidecar_path;
use crate::error::{FileError, Result};

/// Writes the blobs that are too large for the data file. Sidecar files are invisible before [`Sidecars::finish`], except dedicated files
/// and full shared ones.
pub(crate) struct Sidecars {
    store: StoreRef,
    data_file: String,
    next_id: u32,
    /// Whether the caller has files of its own there, whose numbers are not known yet.
    is_foreign: bool,
    done: Vec<String>,
}

/// A file that blobs of one column share.
pub(crate) struct Pack {
    id: u32,
    size: u64,
    out: Box<dyn ObjectWriter>,
}

impl Sidecars {
    pub(crate) fn new(store: &StoreRef, data_file: &str, is_foreign: bool) -> Sidecars {
        Sidecars {
            store: store.clone(),
            data_file: data_file.to_string(),
            next_id: 1,
            is_foreign,
            done: Vec::new(),
        }
    }

    /// The files that are finished.
    pub(crate) fn done(&self) -> &[String] {
        &self.done
    }

    async fn open(&mut self) -> Result<(u32, Box<dyn ObjectWriter>)> {
        if self.is_foreign {
            return Err(FileError::invalid(
                "expected small blobs in the columns beside prepared ones, found some that need a file of their own, where those of the \
                 prepared ones are; prepare these columns too, or raise their lance-encoding:blob-inline-size-threshold",
            ));
        }
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or_else(|| {
            FileError::invalid("a data file cannot have more than 2^32 files of blobs beside it; write smaller files")
        })?;
        let out = self.store.writer(&sidecar_path(&self.data_file, id)).await?;
        Ok((id, out))
    }

    /// Writes a blob to a file of its own and returns the file's id.
    pub(crate) async fn write_alone(&mut self, bytes: Bytes) -> Result<u32> {
        let (id, mut out) = self.open().await?;
        if let Err(error) = out.write(bytes).await {
            // The first error is the one to report.
            let _ = out.abort().await;
            return Err(error.into());
        }
        out.finish().await?;
        self.done.push(sidecar_path(&self.data_file, id));
        Ok(id)
    }

    /// Copies a range of an object to a file of its own, in pieces, and returns the file's id.
    pub(crate) async fn copy_alone(
        &mut self,
        source: &StoreRef,
        path: &str,
        range: Range<u64>,
        piece: u64,
    ) -> Result<u32> {
        let (id, mut out) = self.open().await?;
        if let Err(error) = copy(source, path, range, piece, &mut *out).await {
            // The first error is the one to report.
            let _ = out.abort().await;
            return Err(error);
        }
        out.finish().await?;
        self.done.push(sidecar_path(&self.data_file, id));
        Ok(id)
    }

    /// Appends a blob to a column's shared file, or to a new one where it would get larger than `limit`. Returns id and position.
    pub(crate) async fn write_packed(
        &mut self,
        pack: &mut Option<Pack>,
        limit: u64,
        bytes: Bytes,
    ) -> Result<(u32, u64)> {
        let size = bytes.len() as u64;
        let is_full = |pack: &Pack| pack.size.saturating_add(size) > limit;
        if pack.as_ref().is_some_and(is_full) {
            self.finish_pack(pack.take()).await?;
        }
        if pack.is_none() {
            let (id, out) = self.open().await?;
            *pack = Some(Pack { id, size: 0, out });
        }
        let Some(open) = pack else {
            return Err(FileError::invalid("expected an open file of blobs, found none"));
        };
        let position = open.size;
        open.out.write(bytes).await?;
        open.size = open.size.saturating_add(size);
        Ok((open.id, position))
    }

    /// Makes a shared file visible.
    pub(crate) async fn finish_pack(&mut self, pack: Option<Pack>) -> Result<()> {
        if let Some(pack) = pack {
            pack.out.finish().await?;
            self.done.push(sidecar_path(&self.data_file, pack.id));
        }
        Ok(())
    }

    /// Removes what was written.
    pub(crate) async fn abort(self, packs: Vec<Pack>) -> Result<()> {
        for pack in packs {
            pack.out.abort().await?;
        }
        for path in &self.done {
            self.store.delete(path).await?;
        }
        Ok(())
    }
}

async fn copy(source: &StoreRef, path: &str, range: Range<u64>, piece: u64, out: &mut dyn ObjectWriter) -> Result<()> {
    for piece in pieces(range, piece) {
        let parts = source.get_ranges(path, &[piece]).await?;
        for part in parts {
            out.write(part).await?;
        }
    }
    Ok(())
}

/// A range in pieces of at most `piece` bytes.
pub(crate) fn pieces(range: Range<u64>, piece: u64) -> impl Iterator<Item = Range<u64>> {
    let step = piece.max(1);
    let mut start = range.start;
    std::iter::from_fn(move || {
        let end = range.end.min(start.saturating_add(step));
        let piece = start..end;
        start = end;
        (!piece.is_empty()).then_some(piece)
    })
}
