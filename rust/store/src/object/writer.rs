//! Writing a long object: in one put while it is short, in parts that are sent side by side once it is not.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use tokio::task::JoinSet;

use super::outcome::sort_error;
use super::ObjectOptions;
use crate::error::{Result, StoreError};
use crate::stats::StatsCounters;
use crate::store::ObjectWriter;

/// Parts of one object that are sent at once: this many part sizes is what a writer holds in memory.
const PARTS_UNDER_WAY: usize = 4;

pub(super) struct PartWriter {
    store: Arc<dyn ObjectStore>,
    location: Path,
    full_path: String,
    options: ObjectOptions,
    stats: Arc<StatsCounters>,
    buffer: BytesMut,
    size: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: JoinSet<object_store::Result<()>>,
}

impl PartWriter {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        location: Path,
        full_path: String,
        options: ObjectOptions,
        stats: Arc<StatsCounters>,
    ) -> Self {
        Self {
            store,
            location,
            full_path,
            options,
            stats,
            buffer: BytesMut::new(),
            size: 0,
            upload: None,
            under_way: JoinSet::new(),
        }
    }

    fn fail(&self, error: object_store::Error) -> StoreError {
        sort_error(self.full_path.clone(), "write", error)
    }

    async fn send(&mut self, part: Bytes) -> Result<()> {
        while self.under_way.len() >= PARTS_UNDER_WAY {
            self.wait_for_one().await?;
        }
        self.stats.add_write(part.len() as u64);
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => {
                let upload = self.store.put_multipart(&self.location).await;
                let upload = upload.map_err(|error| sort_error(self.full_path.clone(), "write", error))?;
                self.upload.insert(upload)
            }
        };
        let sending = upload.put_part(part.into());
        self.under_way.spawn(sending);
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
        if let Some(upload) = &mut self.upload {
            self.stats.add_write(0);
            let done = upload.complete().await;
            done.map_err(|error| self.fail(error))?;
        }
        Ok(self.size)
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
            // Parts that are never completed cost money until somebody clears them away.
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
