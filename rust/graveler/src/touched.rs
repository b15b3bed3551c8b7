//! Finds the contents that differ from their predecessors at some paths, for a commit history by path.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};

use crate::diff::Diff;
use crate::error::Result;
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Storage, TableCursor};
use crate::value::identity_of;

/// Pairs of contents that are compared concurrently.
const AT_ONCE: usize = 16;

/// The watched paths.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Single paths.
    pub paths: Vec<Vec<u8>>,
    /// Prefixes of paths.
    pub prefixes: Vec<Vec<u8>>,
}

/// Two contents; `None` is the empty one.
pub type Pair = (Option<TableId>, Option<TableId>);

/// For each pair of contents, whether they differ at a watched path.
///
/// Adjacent pairs of a history share a content: every second pair comes first, so that nothing is fetched twice.
pub async fn touched(storage: &Arc<Storage>, pairs: &[Pair], watched: &Watched) -> Result<Vec<bool>> {
    let mut found = vec![false; pairs.len()];
    for wave in 0..2 {
        let work = pairs.iter().enumerate().skip(wave).step_by(2);
        let different = work.filter(|(_, (left, right))| left != right);
        let mut answers = futures::stream::iter(different)
            .map(|(at, (left, right))| async move {
                let (left, right) =
                    tokio::try_join!(storage.metarange(left.as_ref()), storage.metarange(right.as_ref()))?;
                Ok::<_, crate::GravelerError>((at, differ(storage, &left, &right, watched).await?))
            })
            .buffer_unordered(AT_ONCE);
        while let Some((at, differs)) = answers.try_next().await? {
            if let Some(answer) = found.get_mut(at) {
                *answer = differs;
            }
        }
    }
    Ok(found)
}

async fn differ(storage: &Arc<Storage>, left: &Metarange, right: &Metarange, watched: &Watched) -> Result<bool> {
    let diff_of = |prefix: &Vec<u8>| Diff::first(storage, left, right, prefix);
    // The metaranges are checked first, which costs no further reads.
    if watched.prefixes.iter().any(|prefix| diff_of(prefix).is_certain()) {
        return Ok(true);
    }
    for path in &watched.paths {
        if differ_at(storage, left, right, path).await? {
            return Ok(true);
        }
    }
    for prefix in &watched.prefixes {
        if diff_of(prefix).next().await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn differ_at(storage: &Arc<Storage>, left: &Metarange, right: &Metarange, path: &[u8]) -> Result<bool> {
    let (left, right) = (range_of(left, path), range_of(right, path));
    if left.map(|range| &range.id) == right.map(|range| &range.id) {
        return Ok(false);
    }
    let (left, right) = tokio::try_join!(value_in(storage, left, path), value_in(storage, right, path))?;
    Ok(match (left, right) {
        (Some(left), Some(right)) => identity_of(&left)? != identity_of(&right)?,
        (left, right) => left.is_some() != right.is_some(),
    })
}

fn range_of<'a>(metarange: &'a Metarange, path: &[u8]) -> Option<&'a RangeInfo> {
    let range = metarange.ranges().get(metarange.position(path))?;
    range.covers(path).then_some(range)
}

async fn value_in(storage: &Arc<Storage>, range: Option<&RangeInfo>, path: &[u8]) -> Result<Option<Bytes>> {
    let Some(range) = range else { return Ok(None) };
    let reader = match range.is_small() {
        true => storage.open_whole(&range.id).await?,
        false => storage.open(&range.id).await?,
    };
    let mut cursor = TableCursor::new(reader)?;
    let found = cursor.seek(path).await? && cursor.key()? == path;
    Ok(found.then(|| cursor.value_bytes()))
}
