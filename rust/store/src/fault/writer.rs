//! A writer of a store that fails on purpose. Once the store is dead, the writer's temporary file stays: a dead writer cleans nothing up.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::plan::Fault;
use super::store::{first_bytes, Course};
use crate::error::{Result, StoreError};
use crate::store::ObjectWriter;

pub(super) struct FaultWriter {
    course: Arc<Course>,
    inner: Option<Box<dyn ObjectWriter>>,
    path: String,
}

impl FaultWriter {
    pub(super) fn new(course: Arc<Course>, inner: Box<dyn ObjectWriter>, path: &str) -> Self {
        Self {
            course,
            inner: Some(inner),
            path: path.to_owned(),
        }
    }

    fn gone(&self) -> StoreError {
        StoreError::io(&self.path, "this writer is finished already")
    }
}

#[async_trait]
impl ObjectWriter for FaultWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let operation = self.course.start("writer.write", &self.path, bytes.len() as u64)?;
        let Some(inner) = &mut self.inner else {
            return Err(self.gone());
        };
        if let Some(Fault::Tear(keep)) = operation.fault {
            inner.write(first_bytes(&bytes, keep)).await?;
        }
        self.course.run(&operation, inner.write(bytes)).await
    }

    async fn finish(mut self: Box<Self>) -> Result<u64> {
        let operation = self.course.start("writer.finish", &self.path, 0)?;
        let Some(inner) = self.inner.take() else {
            return Err(self.gone());
        };
        // The effect takes the inner writer. If the effect never runs, the writer is still here, and is leaked or cleaned up with us.
        let mut place = Some(inner);
        let effect = async {
            match place.take() {
                Some(inner) => inner.finish().await,
                None => Err(StoreError::io(&operation.path, "this writer is finished already")),
            }
        };
        let result = self.course.run(&operation, effect).await;
        self.inner = place;
        result
    }

    async fn abort(mut self: Box<Self>) -> Result<()> {
        let operation = self.course.start("writer.abort", &self.path, 0)?;
        let Some(inner) = self.inner.take() else {
            return Err(self.gone());
        };
        let mut place = Some(inner);
        let effect = async {
            match place.take() {
                Some(inner) => inner.abort().await,
                None => Ok(()),
            }
        };
        let result = self.course.run(&operation, effect).await;
        self.inner = place;
        result
    }
}

impl Drop for FaultWriter {
    fn drop(&mut self) {
        if self.course.is_dead() {
            std::mem::forget(self.inner.take());
        }
    }
}
