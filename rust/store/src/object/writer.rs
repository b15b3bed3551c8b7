//! Writes an object: a short one with one put, a long one as a multipart upload whose parts are sent concurrently.
//!
//! When the reply to the completion of an upload is lost, the retried request fails, since the store no longer knows the upload, though the
//! object is there. So after an error the object is read back: if its size and the checksums of its parts are ours, it was written.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use tokio::task::JoinSet;

use super::outcome::{is_worth_another_try, sort_error};
use super::{pause, ObjectOptions, TRIES};
use crate::cloud::Secrets;
use crate::error::{Result, StoreError};
use crate::stats::StatsCounters;
use crate::store::ObjectWriter;

/// Parts of one object that are sent concurrently: a writer holds this many times the part size in memory.
const PARTS_UNDER_WAY: usize = 4;

pub(super) struct PartWriter {
    store: Arc<dyn ObjectStore>,
    location: Path,
    full_path: String,
    options: ObjectOptions,
    stats: Arc<StatsCounters>,
    secrets: Arc<Secrets>,
    buffer: BytesMut,
    size: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: JoinSet<object_store::Result<()>>,
    /// The range and the checksum of each part that was sent.
    parts: Vec<(Range<u64>, u32)>,
}

impl PartWriter {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        location: Path,
        full_path: String,
        options: ObjectOptions,
        stats: Arc<StatsCounters>,
        secrets: Arc<Secrets>,
    ) -> Self {
        Self {
            store,
            location,
            full_path,
            options,
            stats,
            secrets,
            buffer: BytesMut::new(),
            size: 0,
            upload: None,
            under_way: JoinSet::new(),
            parts: Vec::new(),
        }
    }

    fn fail(&self, error: object_store::Error) -> StoreError {
        match sort_error(self.full_path.clone(), "write", error, &self.secrets) {
            // It is the upload that is missing, or its bucket, and no object.
            StoreError::NotFound { path, .. } if self.upload.is_some() => {
                let message = "cannot write: the store does not know the upload any more; see what aborts uploads, and write it again";
                StoreError::io(path, message)
            }
            other => other,
        }
    }

    /// Begins an upload. One whose reply is lost holds no parts, and is left to the bucket's lifecycle rules.
    async fn begin(&mut self) -> Result<Box<dyn MultipartUpload>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.put_multipart(&self.location).await {
                Ok(upload) => return Ok(upload),
                Err(error) if tries < TRIES && is_worth_another_try(&error) => pause(tries).await,
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    async fn send(&mut self, part: Bytes) -> Result<()> {
        while self.under_way.len() >= PARTS_UNDER_WAY {
            self.wait_for_one().await?;
        }
        self.stats.add_write(part.len() as u64);
        if self.upload.is_none() {
            self.upload = Some(self.begin().await?);
        }
        if self.options.replies_may_be_lost {
            let start = self.parts.last().map_or(0, |(range, _)| range.end);
            self.parts
                .push((start..start + part.len() as u64, crc32c::crc32c(&part)));
        }
        if let Some(upload) = &mut self.upload {
            let sending = upload.put_part(part.into());
            self.under_way.spawn(sending);
        }
        Ok(())
    }

    async fn wait_for_one(&mut self) -> Result<()> {
        match self.under_way.join_next().await {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(self.fail(error)),
            Some(Err(error)) => Err(StoreError::io(
                self.full_path.clone(),
                format!("cannot write: a part was given up: {error}"),
            )),
        }
    }

    async fn finish_parts(&mut self) -> Result<u64> {
        let last = self.buffer.split().freeze();
        if self.upload.is_none() {
            self.stats.add_write(last.len() as u64);
            let put = self.store.put(&self.location, last.into()).await;
            put.map_err(|error| self.fail(error))?;
            return Ok(self.size);
        }
        if !last.is_empty() {
            self.send(last).await?;
        }
        while !self.under_way.is_empty() {
            self.wait_for_one().await?;
        }
        self.stats.add_write(0);
        let done = match &mut self.upload {
            Some(upload) => upload.complete().await.map(|_| ()),
            None => Ok(()),
        };
        if let Err(error) = done {
            if !(self.options.replies_may_be_lost && self.is_written().await) {
                return Err(self.fail(error));
            }
        }
        Ok(self.size)
    }

    /// Whether the object is there and holds the parts that were sent.
    async fn is_written(&mut self) -> bool {
        let found = self.store.head(&self.location).await;
        if !found.is_ok_and(|meta| meta.size == self.size) {
            return false;
        }
        for (range, checksum) in &self.parts {
            let read = self.store.get_range(&self.location, range.clone()).await;
            if !read.is_ok_and(|bytes| {
                self.stats.add_read(bytes.len() as u64);
                crc32c::crc32c(&bytes) == *checksum
            }) {
                return false;
            }
        }
        true
    }
}

#[async_trait]
impl ObjectWriter for PartWriter {
    async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        let part_size = self.options.part_size.max(1);
        while self.buffer.len() + bytes.len() > part_size {
            let room = part_size.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&bytes.split_to(room));
            let part = self.buffer.split().freeze();
            self.send(part).await?;
        }
        self.buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64> {
        let finished = self.finish_parts().await;
        if finished.is_err() {
            // The parts of an upload that is neither completed nor aborted are billed until they are removed.
            let _ = self.abort().await;
        }
        finished
    }

    async fn abort(mut self: Box<Self>) -> Result<()> {
        self.under_way.shutdown().await;
        if let Some(mut upload) = self.upload.take() {
            upload.abort().await.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }
}
