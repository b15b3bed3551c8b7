//! A compressed column of paths, which writers compose of a folder, a number, a UUID and an ending.
//!
//! ```text
//! day=2024-01-01/  part-00007-  0f8fad5b-d9cb-469f-a165-70867728950e  -c000.snappy.parquet
//! folder, shared   as it is     16 bytes                              ending, shared
//!
//! a row: varint folder | varint ending * 2 + has a UUID | 16 bytes if it has | the text between folder and UUID
//! ```

use hashbrown::HashMap;

use crate::error::{DeltaError, Result};

/// The most shared folders, and the most shared endings; further ones are stored in the row itself.
const MAX_SHARED: usize = 1 << 14;
/// The characters of a uuid.
const UUID: usize = 36;
/// The usual bytes of a row: with a UUID, a number, and a shared folder and ending.
const USUAL: usize = 32;

/// The rows, concatenated.
#[derive(Debug, Default)]
pub(crate) struct PathColumn {
    folders: Vec<Box<str>>,
    endings: Vec<Box<str>>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// The builder of a [`PathColumn`].
#[derive(Debug, Default)]
pub(crate) struct PathBuilder {
    column: PathColumn,
    folders: Shared,
    endings: Shared,
}

/// Shared texts and their numbers.
#[derive(Debug, Default)]
struct Shared {
    numbers: HashMap<Box<str>, usize>,
    /// The last one looked up, as adjacent paths often share it.
    last: usize,
}

impl Shared {
    /// The number of a text; `None` if there are too many.
    fn number(&mut self, texts: &mut Vec<Box<str>>, text: &str) -> Option<usize> {
        if texts.get(self.last).is_some_and(|last| **last == *text) {
            return Some(self.last);
        }
        self.last = match self.numbers.get(text) {
            Some(number) => *number,
            None if texts.len() < MAX_SHARED => {
                texts.push(text.into());
                self.numbers.insert(text.into(), texts.len() - 1);
                texts.len() - 1
            }
            None => return None,
        };
        Some(self.last)
    }
}

impl PathBuilder {
    /// A builder with the capacity for so many usual paths.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let mut builder = Self::default();
        builder.column.ends.reserve(rows);
        builder.column.bytes.reserve(rows.saturating_mul(USUAL));
        builder
    }

    pub(crate) fn len(&self) -> usize {
        self.column.len()
    }

    /// Adds a path. All rows together may take 4 GiB.
    pub(crate) fn push(&mut self, path: &str) -> Result<()> {
        // Number 0 is the empty folder or ending.
        for (shared, texts) in [
            (&mut self.folders, &mut self.column.folders),
            (&mut self.endings, &mut self.column.endings),
        ] {
            if texts.is_empty() {
                shared.number(texts, "");
            }
        }
        let split = path.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, name) = path.split_at_checked(split).unwrap_or(("", path));
        let (folder, name) = match self.folders.number(&mut self.column.folders, folder) {
            Some(number) => (number, name),
            None => (0, path),
        };
        let found = find_uuid(name).and_then(|(start, uuid)| {
            let ending = name.get(start + UUID..)?;
            let number = self.endings.number(&mut self.column.endings, ending)?;
            Some((name.get(..start)?, number, uuid))
        });
        let bytes = &mut self.column.bytes;
        push_varint(bytes, folder);
        match found {
            Some((head, ending, uuid)) => {
                push_varint(bytes, ending << 1 | 1);
                bytes.extend_from_slice(&uuid);
                bytes.extend_from_slice(head.as_bytes());
            }
            None => {
                push_varint(bytes, 0);
                bytes.extend_from_slice(name.as_bytes());
            }
        }
        let end = u32::try_from(bytes.len())
            .map_err(|_| DeltaError::unsupported("one file of the log names files with more than 4 GiB of paths"))?;
        self.column.ends.push(end);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> PathColumn {
        self.column.bytes.shrink_to_fit();
        self.column.ends.shrink_to_fit();
        self.column
    }
}

impl PathColumn {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The path at `row`; empty beyond the last.
    pub(crate) fn get(&self, row: usize) -> String {
        self.read(row).unwrap_or_default()
    }

    fn read(&self, row: usize) -> Option<String> {
        let start = match row.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let mut rest = self.bytes.get(start as usize..*self.ends.get(row)? as usize)?;
        let folder = self.folders.get(varint(&mut rest)?)?;
        let ending = varint(&mut rest)?;
        let uuid = if ending & 1 == 1 {
            let (uuid, behind) = rest.split_first_chunk::<16>()?;
            rest = behind;
            Some(uuid)
        } else {
            None
        };
        let ending = self.endings.get(ending >> 1)?;
        let name = std::str::from_utf8(rest).ok()?;
        let mut path = String::with_capacity(folder.len() + name.len() + UUID + ending.len());
        path.push_str(folder);
        path.push_str(name);
        if let Some(uuid) = uuid {
            let mut text = [0; UUID];
            path.push_str(uuid::Uuid::from_bytes_ref(uuid).hyphenated().encode_lower(&mut text));
        }
        path.push_str(ending);
        Some(path)
    }
}

/// The first UUID in lower case, and its position.
fn find_uuid(name: &str) -> Option<(usize, [u8; 16])> {
    let bytes = name.as_bytes();
    let dashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'-');
    dashes
        .filter_map(|(dash, _)| dash.checked_sub(8))
        .find_map(|start| Some((start, uuid_of(bytes.get(start..start + UUID)?)?)))
}

fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; UUID] = text.try_into().ok()?;
    // A quick check of two further dashes rules out most candidates.
    let [.., b'-', _, _, _, _, b'-', _, _, _, _, _, _, _, _, _, _, _, _] = text else {
        return None;
    };
    let mut uuid = [0u8; 16];
    let mut slots = uuid.iter_mut();
    for (at, length) in [(0, 8), (9, 4), (14, 4), (19, 4), (24, 12)] {
        if at > 0 && text.get(at - 1) != Some(&b'-') {
            return None;
        }
        for pair in text.get(at..at + length)?.chunks_exact(2) {
            let [high, low] = pair else { return None };
            *slots.next()? = digit(*high)? << 4 | digit(*low)?;
        }
    }
    Some(uuid)
}

/// A lower-case hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation)] // Seven bits of it.
fn push_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0usize;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAME: &str = "part-00007-0f8fad5b-d9cb-469f-a165-70867728950e-c000.snappy.parquet";

    fn column(paths: &[String]) -> PathColumn {
        let mut builder = PathBuilder::default();
        for path in paths {
            builder.push(path).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn test_a_path_of_a_writer_takes_a_third_of_its_length() {
        let paths: Vec<String> = (0..1000).map(|day| format!("day={}/{NAME}", day % 300)).collect();
        let found = column(&paths);
        assert!(found.bytes.len() < 31 * paths.len(), "{}", found.bytes.len());
        assert_eq!((found.folders.len(), found.endings.len()), (301, 2));
        assert_eq!(found.get(999), paths[999]);
        assert_eq!(found.get(1000), "");
    }

    #[test]
    fn test_more_folders_than_are_shared() {
        let paths: Vec<String> = (0..MAX_SHARED + 10).map(|n| format!("{n}/{NAME}")).collect();
        let found = column(&paths);
        assert_eq!(found.folders.len(), MAX_SHARED);
        assert!((0..paths.len()).all(|row| found.get(row) == paths[row]));
    }

    proptest! {
        #[test]
        fn test_every_path_comes_back(paths in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,40}".prop_map(|path| path),
                "[a-c/-]{0,5}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-fA]{12}[a-z/-]{0,5}".prop_map(|path| path),
                (0..9u8).prop_map(|n| format!("p={n}/{NAME}")),
            ], 0..20))
        {
            let found = column(&paths);
            prop_assert_eq!(found.len(), paths.len());
            for (row, path) in paths.iter().enumerate() {
                prop_assert_eq!(&found.get(row), path);
            }
        }
    }
}
