//! Reads the bytes of many blobs, object by object; adjacent ranges are coalesced into one request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, LargeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use esker_store::mount::mounted_object;
use esker_store::store::StoreRef;
use futures::future::try_join_all;

use super::location::{BlobLocation, BlobObject};
use crate::error::{FileError, Result};

/// The least number of bytes per thread.
const SHARE_BYTES: u64 = 2 * 1024 * 1024;

/// Before at least this many bytes of one object are requested, its size is checked.
const MANY_BYTES: u64 = 16 * 1024 * 1024;

/// The store and the path of what holds a blob. `home` is the store of the data files.
pub(crate) fn place(home: &StoreRef, object: &BlobObject) -> Result<(StoreRef, String)> {
    match object {
        BlobObject::Stored(path) => Ok((home.clone(), path.to_string())),
        BlobObject::External(uri) => {
            let (root, name) = esker_store::uri::object(uri).ok_or_else(|| {
                FileError::invalid(format!(
                    "expected the URI of a blob with a folder and a name, found '{uri}'"
                ))
            })?;
            let store = esker_store::open(root, &Default::default(), false)?;
            Ok((store, name))
        }
        BlobObject::Based(id, path) => Ok((home.clone(), mounted_object(*id, path))),
    }
}

/// The bytes of each range of an object, in the requested order.
pub async fn fetch_ranges(home: &StoreRef, wanted: &[(&BlobObject, Range<u64>)]) -> Result<Vec<Bytes>> {
    let mut by_object: BTreeMap<&BlobObject, Vec<usize>> = BTreeMap::new();
    for (index, (object, range)) in wanted.iter().enumerate() {
        if !range.is_empty() {
            by_object.entry(object).or_default().push(index);
        }
    }
    let reads = by_object.into_iter().map(|(object, indices)| async move {
        let (store, path) = place(home, object)?;
        check_size(&store, &path, object, &indices, wanted).await?;
        let ranges: Vec<Range<u64>> = indices
            .iter()
            .filter_map(|index| wanted.get(*index))
            .map(|(_, range)| range.clone())
            .collect();
        let parts = get_ranges(&store, &path, ranges).await?;
        Ok::<_, FileError>((indices, parts))
    });
    let mut out = vec![Bytes::new(); wanted.len()];
    for (indices, parts) in try_join_all(reads).await? {
        for (index, part) in indices.into_iter().zip(parts) {
            if let Some(slot) = out.get_mut(index) {
                *slot = part;
            }
        }
    }
    Ok(out)
}

/// Refuses ranges beyond an object's size before allocating for them, if they are large enough to be worth a request for the size.
async fn check_size(
    store: &StoreRef,
    path: &str,
    object: &BlobObject,
    indices: &[usize],
    wanted: &[(&BlobObject, Range<u64>)],
) -> Result<()> {
    let ranges = indices
        .iter()
        .filter_map(|index| wanted.get(*index))
        .map(|(_, range)| range);
    let bytes = ranges
        .clone()
        .fold(0, |sum: u64, r| sum.saturating_add(r.end.saturating_sub(r.start)));
    if bytes <= MANY_BYTES {
        return Ok(());
    }
    let (size, end) = (store.head(path).await?.size, ranges.map(|r| r.end).max().unwrap_or(0));
    if end > size {
        return Err(FileError::corrupt(
            path,
            format!("expected blobs up to byte {end} in {object:?}, found {size} bytes in it"),
        ));
    }
    Ok(())
}

/// The bytes of ranges of an object; large amounts are fetched by several threads.
async fn get_ranges(store: &StoreRef, path: &str, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
    let bytes = ranges
        .iter()
        .fold(0, |sum: u64, r| sum.saturating_add(r.end.saturating_sub(r.start)));
    let threads = esker_store::cores() as u64;
    let shares = (bytes / SHARE_BYTES).min(threads);
    if shares < 2 || tokio::runtime::Handle::try_current().is_err() {
        return Ok(store.get_ranges(path, &ranges).await?);
    }
    let per_share = usize::try_from((ranges.len() as u64).div_ceil(shares))
        .unwrap_or(usize::MAX)
        .max(1);
    let reads = ranges.chunks(per_share).map(|share| {
        let (store, path, share) = (store.clone(), path.to_string(), share.to_vec());
        tokio::spawn(async move { store.get_ranges(&path, &share).await })
    });
    let mut out = Vec::with_capacity(ranges.len());
    for read in try_join_all(reads.collect::<Vec<_>>())
        .await
        .map_err(|e| FileError::invalid(format!("a read failed: {e}")))?
    {
        out.extend(read?);
    }
    Ok(out)
}

/// The bytes of each blob; `None` for a null.
pub async fn fetch(home: &StoreRef, blobs: &[Option<BlobLocation>]) -> Result<Vec<Option<Bytes>>> {
    let mut wanted = Vec::with_capacity(blobs.len());
    for blob in blobs.iter().flatten() {
        let size = match blob.size {
            Some(size) => size,
            None => size_of(home, blob).await?,
        };
        wanted.push((&blob.object, blob.start..blob.start.saturating_add(size)));
    }
    let mut parts = fetch_ranges(home, &wanted).await?.into_iter();
    Ok(blobs
        .iter()
        .map(|blob| blob.as_ref().and_then(|_| parts.next()))
        .collect())
}

/// The size of a blob, requested from its store if the description lacks it.
pub async fn size_of(home: &StoreRef, blob: &BlobLocation) -> Result<u64> {
    match blob.size {
        Some(size) => Ok(size),
        None => {
            let (store, path) = place(home, &blob.object)?;
            Ok(store.head(&path).await?.size.saturating_sub(blob.start))
        }
    }
}

/// The bytes of each blob as one large_binary array.
pub(crate) async fn fetch_array(home: &StoreRef, blobs: &[Option<BlobLocation>]) -> Result<ArrayRef> {
    if let Some(array) = fetch_run(home, blobs).await? {
        return Ok(array);
    }
    let parts = fetch(home, blobs).await?;
    let mut values = Vec::with_capacity(parts.iter().flatten().map(Bytes::len).sum());
    let mut ends = Vec::with_capacity(parts.len());
    for part in &parts {
        values.extend_from_slice(part.as_deref().unwrap_or_default());
        ends.push(values.len() as u64);
    }
    let nulls = NullBuffer::from_iter(parts.iter().map(Option::is_some));
    array_of(&ends, Buffer::from_vec(values), nulls)
}

/// The same for adjacent blobs, whose bytes in the file become the array's buffer.
async fn fetch_run(home: &StoreRef, blobs: &[Option<BlobLocation>]) -> Result<Option<ArrayRef>> {
    let mut run: Option<(&BlobObject, Range<u64>)> = None;
    let mut ends = Vec::with_capacity(blobs.len());
    for blob in blobs {
        if let Some((blob, size)) = blob.as_ref().and_then(|b| Some((b, b.size?))) {
            let end = blob.start.saturating_add(size);
            match &mut run {
                _ if size == 0 => {}
                None => run = Some((&blob.object, blob.start..end)),
                Some((object, range)) if *object == &blob.object && range.end == blob.start => range.end = end,
                Some(_) => return Ok(None),
            }
        } else if blob.is_some() {
            return Ok(None);
        }
        ends.push(run.as_ref().map_or(0, |(_, range)| range.end - range.start));
    }
    let Some((object, range)) = run else {
        return Ok(None);
    };
    let (store, path) = place(home, object)?;
    check_size(&store, &path, object, &[0], &[(object, range.clone())]).await?;
    let bytes = store.get_ranges(&path, &[range]).await?.pop().unwrap_or_default();
    let nulls = NullBuffer::from_iter(blobs.iter().map(Option::is_some));
    array_of(&ends, Buffer::from(bytes), nulls).map(Some)
}

fn array_of(ends: &[u64], values: Buffer, nulls: NullBuffer) -> Result<ArrayRef> {
    let offset = |end: &u64| {
        i64::try_from(*end).map_err(|_| FileError::invalid("the blobs of one batch hold more than 2^63 bytes"))
    };
    let offsets = std::iter::once(Ok(0)).chain(ends.iter().map(offset));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.collect::<Result<Vec<i64>>>()?));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    let array = LargeBinaryArray::try_new(offsets, values, nulls).map_err(|e| FileError::invalid(e.to_string()))?;
    Ok(Arc::new(array))
}
