//! Copies an object from one store to another.

use crate::error::Result;
use crate::store::Store;

/// Bytes that are read and written at a time.
const PIECE: u64 = 8 << 20;

/// Copies the object `path` of the store `from` to the path `target` of the store `to`, piece by piece. Returns its size in bytes.
pub async fn copy(from: &dyn Store, path: &str, to: &dyn Store, target: &str) -> Result<u64> {
    let size = from.head(path).await?.size;
    let mut writer = to.writer(target).await?;
    let mut start = 0;
    while start < size {
        let end = size.min(start.saturating_add(PIECE));
        let piece = match from.get_ranges(path, &[start..end]).await {
            Ok(mut pieces) => pieces.pop().unwrap_or_default(),
            Err(error) => {
                // The copy's error is reported, not that of the abort.
                let _ = writer.abort().await;
                return Err(error);
            }
        };
        if let Err(error) = writer.write(piece).await {
            let _ = writer.abort().await;
            return Err(error);
        }
        start = end;
    }
    writer.finish().await
}
