//! The fragments of a manifest as encoded bytes: each takes its bytes and eight more, without a decoded object.

use bytes::Bytes;

use crate::error::{Result, TableError};
use crate::fragment::{summarize, Fragment, Summary};
use crate::raw::{push_length_delimited, walk, Malformed};

/// The number of the manifest's field that holds fragments.
pub(crate) const FRAGMENTS: u32 = 2;

/// The concatenated records of the manifest's field 2, and the position of each fragment.
#[derive(Debug, Clone, Default)]
pub(crate) struct FragmentList {
    records: Bytes,
    spans: Vec<(u32, u32)>,
}

/// The edit of one fragment.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// It stays as it is.
    Keep,
    /// It leaves the table.
    Remove,
    /// Another one with the same id replaces it.
    Replace(Fragment),
}

impl FragmentList {
    /// The fragments of an encoded manifest. They share its bytes if they are contiguous, as all writers write them.
    pub fn from_manifest(message: &Bytes) -> Result<Self, Malformed> {
        let mut records = Vec::new();
        for record in walk(message) {
            let record = record?;
            if record.number == FRAGMENTS {
                records.push((record.record, record.payload));
            }
        }
        let together = records.windows(2).all(|pair| match pair {
            [(first, _), (second, _)] => first.end == second.start,
            _ => true,
        });
        let (Some((first, _)), Some((last, _))) = (records.first(), records.last()) else {
            return Ok(Self::default());
        };
        if !together {
            let mut list = Self::default();
            list.push_all(
                records
                    .iter()
                    .map(|(_, payload)| message.get(payload.clone()).unwrap_or_default()),
            )?;
            return Ok(list);
        }
        let start = first.start;
        let spans = records
            .iter()
            .map(|(_, payload)| span(payload.start.saturating_sub(start), payload.end.saturating_sub(start)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            records: message.slice(start..last.end),
            spans,
        })
    }

    /// Adds encoded fragments at the end.
    pub fn push_all<'a>(&mut self, fragments: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Malformed> {
        let mut records = self.records.to_vec();
        for fragment in fragments {
            push_length_delimited(&mut records, FRAGMENTS, fragment);
            self.spans
                .push(span(records.len().saturating_sub(fragment.len()), records.len())?);
        }
        self.records = Bytes::from(records);
        Ok(())
    }

    /// The fragments after `edit`, which is called with each id and message, in the order of their ids.
    pub fn edited(&self, mut edit: impl FnMut(u64, &Bytes) -> Result<Edit>) -> Result<Self> {
        let mut kept = Vec::with_capacity(self.spans.len());
        for message in self.messages() {
            let id = summarize(&message)?.id;
            match edit(id, &message)? {
                Edit::Keep => kept.push((id, message)),
                Edit::Remove => {}
                Edit::Replace(fragment) => kept.push((id, Bytes::from(fragment.encode()))),
            }
        }
        Self::sorted(kept)
    }

    /// These fragments and `new`, in the order of their ids.
    pub fn with_sorted(&self, new: &[Fragment]) -> Result<Self> {
        let mut all = Vec::with_capacity(self.len().saturating_add(new.len()));
        for message in self.messages() {
            all.push((summarize(&message)?.id, message));
        }
        all.extend(
            new.iter()
                .map(|fragment| (fragment.id(), Bytes::from(fragment.encode()))),
        );
        Self::sorted(all)
    }

    /// The fragments in the order of their ids, which readers rely on for searching.
    fn sorted(mut fragments: Vec<(u64, Bytes)>) -> Result<Self> {
        fragments.sort_by_key(|(id, _)| *id);
        let mut list = Self::default();
        let messages = fragments.iter().map(|(_, message)| message.as_ref());
        list.push_all(messages).map_err(|error| error.of("manifest"))?;
        Ok(list)
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The records as they stand in a manifest.
    pub fn records(&self) -> &Bytes {
        &self.records
    }

    /// The encoded fragments, in order.
    pub fn messages(&self) -> impl Iterator<Item = Bytes> + '_ {
        self.spans
            .iter()
            .map(|(start, end)| self.records.slice(*start as usize..*end as usize))
    }

    pub fn get(&self, index: usize) -> Option<Result<Fragment>> {
        let (start, end) = self.spans.get(index)?;
        Some(Fragment::decode(&self.records.slice(*start as usize..*end as usize)))
    }

    pub fn iter(&self) -> impl Iterator<Item = Result<Fragment>> + '_ {
        self.messages().map(|message| Fragment::decode(&message))
    }

    pub fn summaries(&self) -> impl Iterator<Item = Result<Summary>> + '_ {
        self.spans
            .iter()
            .map(|(start, end)| summarize(self.records.get(*start as usize..*end as usize).unwrap_or_default()))
    }

    /// The fragment of that id.
    pub fn find(&self, id: u64) -> Result<Option<Fragment>> {
        for message in self.messages() {
            if summarize(&message)?.id == id {
                return Fragment::decode(&message).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether rows of any of them are deleted.
    pub fn has_deletions(&self) -> Result<bool> {
        for summary in self.summaries() {
            if summary?.has_deletions {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The highest id, as far as it fits a row address.
    pub fn max_id(&self) -> Result<Option<u32>> {
        let mut highest = None;
        for summary in self.summaries() {
            let id = summary?.id;
            let id = u32::try_from(id).map_err(|_| {
                TableError::corrupt("fragment", format!("expected a fragment id below 2^32, found {id}"))
            })?;
            highest = highest.max(Some(id));
        }
        Ok(highest)
    }
}

fn span(start: usize, end: usize) -> Result<(u32, u32), Malformed> {
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => Ok((start, end)),
        _ => Err(Malformed {
            position: start,
            message: "expected fragments of less than 4 GiB altogether",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::push_varint;

    fn encoded(ids: &[u64]) -> Vec<Vec<u8>> {
        ids.iter()
            .map(|id| Fragment::new(vec![], 10).with_id(*id).encode())
            .collect()
    }

    fn list(ids: &[u64]) -> FragmentList {
        let mut list = FragmentList::default();
        list.push_all(encoded(ids).iter().map(Vec::as_slice)).unwrap();
        list
    }

    fn ids(list: &FragmentList) -> Vec<u64> {
        list.iter().map(|fragment| fragment.unwrap().id()).collect()
    }

    #[test]
    fn test_fragments_that_lie_together_share_the_manifests_bytes() {
        let message = list(&[0, 3, 1]).records().clone();
        let again = FragmentList::from_manifest(&message).unwrap();
        assert_eq!(again.records().as_ptr(), message.as_ptr());
        assert_eq!(ids(&again), [0, 3, 1]);
        assert_eq!(again.max_id().unwrap(), Some(3));
        assert_eq!(again.get(1).unwrap().unwrap().id(), 3);
        assert!(again.get(3).is_none());
        assert_eq!(again.find(1).unwrap().unwrap().num_rows(), Some(10));
        assert!(again.find(2).unwrap().is_none());
    }

    #[test]
    fn test_fragments_that_lie_apart_are_found_too() {
        let mut message = Vec::new();
        for fragment in encoded(&[4, 5]) {
            push_varint(&mut message, 3 << 3);
            push_varint(&mut message, 1);
            push_length_delimited(&mut message, FRAGMENTS, &fragment);
        }
        let apart = FragmentList::from_manifest(&Bytes::from(message)).unwrap();
        assert_eq!(ids(&apart), [4, 5]);
        assert_eq!(apart.records(), list(&[4, 5]).records());
    }

    #[test]
    fn test_a_list_grows_at_its_end() {
        let mut grown = list(&[1]);
        grown.push_all(encoded(&[2, 3]).iter().map(Vec::as_slice)).unwrap();
        assert_eq!(grown.records(), list(&[1, 2, 3]).records());
        assert_eq!((grown.len(), ids(&grown)), (3, vec![1, 2, 3]));
        assert_eq!(FragmentList::default().max_id().unwrap(), None);
    }

    #[test]
    fn test_an_id_that_no_row_address_can_hold_is_corrupt() {
        assert!(list(&[1 << 32]).max_id().is_err());
    }
}
