//! Gathers the seeds of a data file beside its encoding: a batch is seen on another thread while its pages are made.

use arrow_array::RecordBatch;
use tokio::task::JoinHandle;

use super::collect::ZoneCollector;
use super::seed::Seed;
use crate::error::{Result, TableError};

/// Fewer rows are seen sooner than another thread takes over.
const FEW: usize = 8192;

/// A collector that sees one batch at a time, in order.
pub(crate) struct ZonesAside(Place);

enum Place {
    Here(ZoneCollector),
    Aside(JoinHandle<ZoneCollector>),
    /// A task failed.
    Gone,
}

impl ZonesAside {
    /// Sees batches with `zones`.
    pub(crate) fn new(zones: ZoneCollector) -> ZonesAside {
        ZonesAside(Place::Here(zones))
    }

    /// The next rows of the file. Waits for the ones before them.
    pub(crate) async fn see(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut zones = self.back().await?;
        self.0 = if batch.num_rows() < FEW {
            zones.see(batch);
            Place::Here(zones)
        } else {
            let batch = batch.clone();
            Place::Aside(tokio::task::spawn(async move {
                zones.see(&batch);
                zones
            }))
        };
        Ok(())
    }

    /// The seeds of the columns that are worth it.
    pub(crate) async fn finish(mut self) -> Result<Vec<Seed>> {
        self.back().await?.finish()
    }

    async fn back(&mut self) -> Result<ZoneCollector> {
        match std::mem::replace(&mut self.0, Place::Gone) {
            Place::Here(zones) => Ok(zones),
            Place::Aside(task) => task.await.map_err(|e| TableError::task_failed("zone maps", &e)),
            Place::Gone => Err(TableError::invalid("the zone maps of a file failed before")),
        }
    }
}
