//! The store itself: it counts each operation, injects the operation's fault if there is one, and records the operation.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rand::seq::SliceRandom;

use super::plan::{Fault, FaultPlan};
use super::writer::FaultWriter;
use crate::error::{Result, StoreError};
use crate::stats::StatsCounters;
use crate::store::{ObjectMeta, ObjectWriter, PutOutcome, Store, StoreRef, Tail};

/// One recorded operation of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its number, counted from zero.
    pub number: u64,
    /// The name of the store's or the writer's method, as in `put_if_absent` or `writer.finish`.
    pub verb: &'static str,
    /// The object or the listed folder.
    pub path: String,
    /// How many bytes it would write.
    pub bytes: u64,
    /// The fault that it met.
    pub fault: Option<Fault>,
}

/// Sees an operation (its verb and path) before it starts: what it returns is the operation's fault, if the plan has none.
pub type Watch = Box<dyn Fn(&str, &str) -> Option<Fault> + Send + Sync>;

/// A store that fails as planned. Each writer of a test has its own, all of them over one inner store: a crash kills one of them.
#[derive(Debug)]
pub struct FaultStore {
    inner: StoreRef,
    course: Arc<Course>,
}

impl FaultStore {
    /// A store over `inner` that fails as `plan` says.
    pub fn new(inner: StoreRef, plan: FaultPlan) -> Self {
        Self::with_course(inner, plan, None)
    }

    /// The same, with a `watch` that sees each operation before it starts, may delay it, and may return its fault.
    pub fn watched(inner: StoreRef, plan: FaultPlan, watch: Watch) -> Self {
        Self::with_course(inner, plan, Some(watch))
    }

    fn with_course(inner: StoreRef, plan: FaultPlan, watch: Option<Watch>) -> Self {
        Self {
            inner,
            course: Arc::new(Course {
                plan,
                watch,
                state: Mutex::default(),
            }),
        }
    }

    /// The operations so far, each of which a test can choose to fail.
    pub fn operations(&self) -> Vec<Operation> {
        self.course.state().operations.clone()
    }

    /// How many operations there were.
    pub fn count(&self) -> u64 {
        self.course.state().operations.len() as u64
    }

    /// What killed the store, or `None` while it lives.
    pub fn cause_of_death(&self) -> Option<String> {
        self.course.state().cause_of_death.clone()
    }

    /// The plan, whose text replays the faults.
    pub fn plan(&self) -> &FaultPlan {
        &self.course.plan
    }

    /// The store that is wrapped.
    pub fn inner(&self) -> &StoreRef {
        &self.inner
    }

    /// Leaves what an interrupted put leaves: the first bytes in a temporary file.
    async fn tear(&self, path: &str, bytes: &Bytes, keep: u64) -> Result<()> {
        let mut writer = self.inner.writer(path).await?;
        writer.write(first_bytes(bytes, keep)).await?;
        // A dead writer does not clean up.
        std::mem::forget(writer);
        Ok(())
    }
}

pub(super) fn first_bytes(bytes: &Bytes, keep: u64) -> Bytes {
    bytes.slice(..usize::try_from(keep).map_or(bytes.len(), |keep| keep.min(bytes.len())))
}

/// The operations of one store and its writers, in the order in which they start.
pub(super) struct Course {
    plan: FaultPlan,
    watch: Option<Watch>,
    state: Mutex<State>,
}

impl fmt::Debug for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Course")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    operations: Vec<Operation>,
    bytes_written: u64,
    disk_is_full: bool,
    cause_of_death: Option<String>,
}

impl Course {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation and says which fault it meets.
    pub(super) fn start(&self, verb: &'static str, path: &str, bytes: u64) -> Result<Operation> {
        // A dead writer starts nothing: neither `watch` nor a delay runs.
        self.check_alive(path)?;
        let watched = self.watch.as_ref().and_then(|watch| watch(verb, path));
        self.check_alive(path)?;
        let mut state = self.state();
        let number = state.operations.len() as u64;
        let fits = |fault: &Fault| match fault {
            Fault::Tear(_) | Fault::DiskFull => bytes > 0,
            Fault::Reorder | Fault::Age(_) => verb == "list",
            _ => true,
        };
        let mut fault = self.plan.fault(number).or(watched).filter(fits);
        let would_be = state.bytes_written.saturating_add(bytes);
        state.disk_is_full |=
            fault == Some(Fault::DiskFull) || self.plan.disk_limit().is_some_and(|limit| would_be > limit);
        if state.disk_is_full && bytes > 0 {
            fault = Some(Fault::DiskFull);
        } else {
            state.bytes_written = would_be;
        }
        let operation = Operation {
            number,
            verb,
            path: path.to_owned(),
            bytes,
            fault,
        };
        state.operations.push(operation.clone());
        Ok(operation)
    }

    /// Runs an operation that was started, with its fault.
    pub(super) async fn run<T>(&self, operation: &Operation, effect: impl Future<Output = Result<T>>) -> Result<T> {
        match operation.fault {
            Some(Fault::CrashBefore | Fault::Tear(_)) => return Err(self.die(operation)),
            Some(Fault::KillBefore) => kill(),
            Some(Fault::Fail) => return Err(self.describe(operation, "an error, and nothing happened")),
            Some(Fault::DiskFull) => return Err(no_space(&operation.path)),
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        let result = effect.await;
        match operation.fault {
            Some(Fault::CrashAfter) => return Err(self.die(operation)),
            Some(Fault::KillAfter) => kill(),
            Some(Fault::LoseReply) => return Err(self.describe(operation, "the reply was lost")),
            _ => {}
        }
        // Operations that were under way when the store died fail, too.
        self.check_alive(&operation.path)?;
        result
    }

    fn check_alive(&self, path: &str) -> Result<()> {
        match &self.state().cause_of_death {
            Some(cause) => Err(StoreError::io(
                path,
                format!("injected: this store is dead since {cause}"),
            )),
            None => Ok(()),
        }
    }

    fn die(&self, operation: &Operation) -> StoreError {
        let fault = operation.fault.map_or_else(String::new, |fault| fault.to_string());
        let cause = format!(
            "{fault} at operation {} ({} {})",
            operation.number, operation.verb, operation.path
        );
        self.state().cause_of_death.get_or_insert(cause);
        self.describe(operation, "the writer stopped here")
    }

    fn describe(&self, operation: &Operation, what: &str) -> StoreError {
        let Operation { number, verb, path, .. } = operation;
        let message = format!(
            "injected at operation {number} ({verb}): {what}; the plan is {:?}",
            self.plan.to_string()
        );
        StoreError::io(path.clone(), message)
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().cause_of_death.is_some()
    }
}

fn kill() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

fn no_space(path: &str) -> StoreError {
    StoreError::from_io(
        path,
        "write",
        std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()),
    )
}

#[async_trait]
impl Store for FaultStore {
    fn uri(&self) -> &str {
        self.inner.uri()
    }

    fn stats(&self) -> &StatsCounters {
        self.inner.stats()
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let operation = self.course.start("get_ranges", path, 0)?;
        self.course.run(&operation, self.inner.get_ranges(path, ranges)).await
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail> {
        let operation = self.course.start("get_tail", path, 0)?;
        self.course.run(&operation, self.inner.get_tail(path, nbytes)).await
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        let operation = self.course.start("get", path, 0)?;
        self.course.run(&operation, self.inner.get(path)).await
    }

    async fn head(&self, path: &str) -> Result<ObjectMeta> {
        let operation = self.course.start("head", path, 0)?;
        self.course.run(&operation, self.inner.head(path)).await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        let operation = self.course.start("put", path, bytes.len() as u64)?;
        if let Some(Fault::Tear(keep)) = operation.fault {
            self.tear(path, &bytes, keep).await?;
        }
        self.course.run(&operation, self.inner.put(path, bytes)).await
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        let operation = self.course.start("put_if_absent", path, bytes.len() as u64)?;
        if let Some(Fault::Tear(keep)) = operation.fault {
            self.tear(path, &bytes, keep).await?;
        }
        self.course.run(&operation, self.inner.put_if_absent(path, bytes)).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let operation = self.course.start("writer", path, 0)?;
        // Held outside of the effect, so that a crash after it leaves the temporary file behind instead of cleaning it up.
        let mut opened = None;
        let effect = async {
            opened = Some(self.inner.writer(path).await?);
            Ok(())
        };
        let result = self.course.run(&operation, effect).await;
        let writer = opened.map(|inner| FaultWriter::new(Arc::clone(&self.course), inner, path));
        result?;
        match writer {
            Some(writer) => Ok(Box::new(writer)),
            None => Err(StoreError::io(path, "no writer was opened")),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let operation = self.course.start("list", prefix, 0)?;
        let mut found = self.course.run(&operation, self.inner.list(prefix)).await?;
        match operation.fault {
            Some(Fault::Reorder) => found.shuffle(&mut self.course.plan.random(operation.number)),
            Some(Fault::Age(objects)) => {
                found.sort_by_key(|meta| meta.last_modified_us);
                found.truncate(found.len().saturating_sub(objects));
                found.sort_by(|left, right| left.path.cmp(&right.path));
            }
            _ => {}
        }
        Ok(found)
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let operation = self.course.start("delete", path, 0)?;
        self.course.run(&operation, self.inner.delete(path)).await
    }

    async fn list_unfinished(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let operation = self.course.start("list_unfinished", prefix, 0)?;
        self.course.run(&operation, self.inner.list_unfinished(prefix)).await
    }

    async fn delete_unfinished(&self, path: &str) -> Result<()> {
        let operation = self.course.start("delete_unfinished", path, 0)?;
        self.course.run(&operation, self.inner.delete_unfinished(path)).await
    }
}
