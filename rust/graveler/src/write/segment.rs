//! A segment: consecutive records in one allocation, for a task to encode.

/// Sorted records.
#[derive(Debug, Default)]
pub(super) struct Segment {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Segment {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        let records = starts.zip(&self.ends);
        records.filter_map(|(start, (key_end, end))| {
            Some((self.bytes.get(start..*key_end)?, self.bytes.get(*key_end..*end)?))
        })
    }
}
