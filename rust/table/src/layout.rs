//! The frame of a manifest file.
//!
//! ```text
//! [u32 length + IndexSection]?  [u32 length + Transaction]?  u32 length + Manifest  u64 position of that length  u16 0  u16 2  "LANC"
//! ```
//!
//! Integers are little endian. Fields 6 and 23 (21 in releases of late 2025) of the manifest are the positions of the two sections.
//! Tables of version 0.1 keep dictionary values in front of all that, which this module skips.

use bytes::Bytes;

use crate::error::{Result, TableError};

const MAGIC: &[u8; 4] = b"LANC";
/// Position, two version numbers, magic.
const FOOTER_LEN: usize = 16;
const LENGTH_LEN: usize = 4;
/// The version that pylance writes; readers ignore it.
const FOOTER_VERSION: [u8; 4] = [0, 0, 2, 0];

/// The manifest message of a manifest file, and the position of its length, where the sections before it end.
pub(crate) fn split_manifest(data: &Bytes, path: &str) -> Result<(Bytes, usize)> {
    let corrupt = |message: String| TableError::corrupt(path, message);
    let footer_start = data.len().checked_sub(FOOTER_LEN).ok_or_else(|| {
        corrupt(format!(
            "expected a manifest of at least {FOOTER_LEN} bytes, found {}",
            data.len()
        ))
    })?;
    let footer = data.get(footer_start..).unwrap_or_default();
    if !footer.ends_with(MAGIC) {
        return Err(corrupt(
            "expected a file that ends with 'LANC'; it is truncated or no manifest".into(),
        ));
    }
    let position = footer
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .unwrap_or_default();
    let start = usize::try_from(position)
        .ok()
        .filter(|start| start.checked_add(LENGTH_LEN).is_some_and(|end| end <= footer_start))
        .ok_or_else(|| {
            corrupt(format!(
                "expected a manifest before byte {footer_start}, found its position {position}"
            ))
        })?;
    let length = length_at(data, start);
    let message = data.slice(start + LENGTH_LEN..footer_start);
    if length != message.len() as u64 {
        let found = message.len();
        return Err(corrupt(format!(
            "expected {found} bytes of manifest at byte {start}, found a length of {length}"
        )));
    }
    Ok((message, start))
}

/// A section in front of the manifest, which starts at `end`.
pub(crate) fn section(data: &Bytes, position: u64, end: usize, what: &str, path: &str) -> Result<Bytes> {
    let start = usize::try_from(position)
        .ok()
        .and_then(|start| start.checked_add(LENGTH_LEN))
        .filter(|start| *start <= end);
    let range = start.and_then(|start| {
        let length = usize::try_from(length_at(data, start.saturating_sub(LENGTH_LEN))).ok()?;
        let section_end = start.checked_add(length).filter(|section_end| *section_end <= end)?;
        Some(start..section_end)
    });
    match range {
        Some(range) => Ok(data.slice(range)),
        None => Err(TableError::corrupt(
            path,
            format!("expected the {what} at byte {position} to end before byte {end}"),
        )),
    }
}

fn length_at(data: &[u8], position: usize) -> u64 {
    let bytes = data.get(position..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

/// Appends a length and the bytes it counts, and returns where that starts.
pub(crate) fn push_section(out: &mut Vec<u8>, section: &[u8]) -> Result<u64> {
    let position = push_length(out, section.len())?;
    out.extend_from_slice(section);
    Ok(position)
}

/// Appends the length of a section that follows, and returns where that stands.
pub(crate) fn push_length(out: &mut Vec<u8>, length: usize) -> Result<u64> {
    let position = out.len() as u64;
    let encoded = u32::try_from(length)
        .map_err(|_| TableError::unsupported(format!("a manifest holds less than 4 GiB, this one needs {length}")))?;
    out.extend_from_slice(&encoded.to_le_bytes());
    Ok(position)
}

/// Appends the footer of a manifest whose length stands at `position`.
pub(crate) fn push_footer(out: &mut Vec<u8>, position: u64) {
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&FOOTER_VERSION);
    out.extend_from_slice(MAGIC);
}
