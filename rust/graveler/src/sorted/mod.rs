//! An external sorter: takes records in any order, returns them by key, and spills to disk beyond a memory limit.
//!
//! ```text
//! pushed records -> buffer -> full: sorted, and appended to the open run, or written as a new run if it does not sort after it
//! runs and buffer -> merged while they are read; of equal keys the newest comes first
//! ```
//!
//! Records that come in order, as listings of most stores do, make one run of any size.

mod buffer;
mod changes;
mod merge;
mod names;
mod run;

use std::path::{Path, PathBuf};

pub use changes::NewestChanges;
pub use merge::Merge;
pub use names::{without, Name, Names};

use crate::error::Result;
use buffer::Buffer;
use merge::Source;
use run::{Run, RunWriter};

/// The most runs that are merged at a time; more are joined into one first.
const MOST_RUNS: usize = if cfg!(test) { 4 } else { 64 };

/// Takes records and returns them sorted.
#[derive(Debug)]
pub struct Sorter {
    folder: PathBuf,
    name: String,
    memory: usize,
    buffer: Buffer,
    /// The oldest first.
    runs: Vec<Run>,
    /// The newest run, which may be appended to.
    open: Option<RunWriter>,
    drawn: usize,
    count: u64,
}

impl Sorter {
    /// A sorter that holds about `memory` bytes of records, and writes files called `<name>-<number>` into an existing local folder, which
    /// the caller removes.
    pub fn new(folder: &Path, name: &str, memory: usize) -> Self {
        Sorter {
            folder: folder.to_owned(),
            name: name.to_owned(),
            memory,
            buffer: Buffer::default(),
            runs: Vec::new(),
            open: None,
            drawn: 0,
            count: 0,
        }
    }

    /// Adds a record.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.buffer.push(key, value)?;
        self.count += 1;
        if self.buffer.size() >= self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// How many records were added.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Spills the buffer to a file.
    fn spill(&mut self) -> Result<()> {
        self.buffer.sort();
        let goes_on = self
            .open
            .as_ref()
            .is_some_and(|run| self.buffer.first_key().is_some_and(|first| run.last_key() < first));
        if !goes_on {
            self.close()?;
            if self.runs.len() >= MOST_RUNS {
                self.join()?;
            }
            self.open = Some(self.new_run()?);
        }
        if let Some(run) = &mut self.open {
            for (key, value) in self.buffer.iter() {
                run.push(key, value)?;
            }
        }
        self.buffer.clear();
        Ok(())
    }

    fn new_run(&mut self) -> Result<RunWriter> {
        self.drawn += 1;
        RunWriter::create(self.folder.join(format!("{}-{}", self.name, self.drawn)))
    }

    fn close(&mut self) -> Result<()> {
        if let Some(run) = self.open.take() {
            self.runs.push(run.finish()?);
        }
        Ok(())
    }

    /// Joins all runs into one.
    fn join(&mut self) -> Result<()> {
        let mut joined = self.new_run()?;
        let mut merge = Merge::new(self.runs.iter().map(|run| run.read().map(Source::Run)))?;
        while merge.advance()? {
            joined.push(merge.key(), merge.value())?;
        }
        for run in self.runs.drain(..) {
            run.remove();
        }
        self.runs.push(joined.finish()?);
        Ok(())
    }

    /// Reads the records added so far. More may be added afterwards, and all be read again.
    pub fn read(&mut self) -> Result<Merge> {
        if self.open.is_some() || !self.runs.is_empty() {
            if !self.buffer.is_empty() {
                self.spill()?;
            }
            self.close()?;
            return Merge::new(self.runs.iter().map(|run| run.read().map(Source::Run)));
        }
        self.buffer.sort();
        Merge::new(std::iter::once(Ok(Source::Buffer(self.buffer.clone().read()))))
    }
}

#[cfg(test)]
mod tests;
