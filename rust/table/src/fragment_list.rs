//! The fragments of a manifest as encoded bytes: each takes its bytes and eight more, without a decoded object.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::error::{Result, TableError};
use crate::fragment::{summarize, Fragment, Summary};
use crate::raw::{push_length_delimited, walk, Malformed, RawField, RawMessage};

/// The number of the manifest's field that holds fragments.
pub(crate) const FRAGMENTS: u32 = 2;

/// The concatenated records of the manifest's field 2, and the position of each fragment.
///
/// ```text
/// head: bytes of the version that it was made from, shared | tail: what was added since
/// ```
#[derive(Debug, Clone, Default)]
pub(crate) struct FragmentList {
    head: Bytes,
    tail: Bytes,
    /// Start and end of each message, counted through both.
    spans: Vec<(u32, u32)>,
    facts: OnceLock<Facts>,
}

/// What every commit asks of all fragments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Facts {
    max_id: Option<u32>,
    has_deletions: bool,
    has_spilled_lineage: bool,
}

impl Facts {
    fn and(self, summary: &Summary) -> Result<Self> {
        let id = u32::try_from(summary.id).map_err(|_| {
            let found = summary.id;
            TableError::corrupt("fragment", format!("expected a fragment id below 2^32, found {found}"))
        })?;
        Ok(Self {
            max_id: self.max_id.max(Some(id)),
            has_deletions: self.has_deletions || summary.has_deletions,
            has_spilled_lineage: self.has_spilled_lineage || summary.has_spilled_lineage,
        })
    }
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
    /// Splits an encoded manifest into its fragments and its other fields, in one pass. The fragments share its bytes if they are
    /// contiguous, as all writers write them.
    pub fn split(message: &Bytes) -> Result<(RawMessage, Self), Malformed> {
        let (mut others, mut spans) = (Vec::new(), Vec::new());
        let (mut first, mut last, mut together) = (0, 0, true);
        for record in walk(message) {
            let record = record?;
            if record.number != FRAGMENTS {
                others.push(RawField::from_record(message, record));
                continue;
            }
            if spans.is_empty() {
                first = record.record.start;
            } else {
                together &= record.record.start == last;
            }
            last = record.record.end;
            spans.push(span(record.payload.start, record.payload.end)?);
        }
        let others = RawMessage::of(others);
        if !together {
            let mut list = Self::default();
            let payload = |(start, end): &(u32, u32)| message.get(*start as usize..*end as usize).unwrap_or_default();
            list.push_all(spans.iter().map(payload))?;
            return Ok((others, list));
        }
        // The first fragment starts after the schema: its position fits, as those of its message do.
        let start = u32::try_from(first).unwrap_or(u32::MAX);
        for (from, to) in &mut spans {
            (*from, *to) = (from.saturating_sub(start), to.saturating_sub(start));
        }
        spans.shrink_to_fit();
        let list = Self {
            head: message.slice(first..last),
            spans,
            ..Self::default()
        };
        Ok((others, list))
    }

    /// Adds encoded fragments at the end.
    pub fn push_all<'a>(&mut self, fragments: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Malformed> {
        let before = self.head.len();
        let mut tail = self.tail.to_vec();
        let mut facts = self.facts.take();
        for fragment in fragments {
            facts = facts.and_then(|facts| facts.and(&summarize(fragment).ok()?).ok());
            push_length_delimited(&mut tail, FRAGMENTS, fragment);
            let end = before.saturating_add(tail.len());
            self.spans.push(span(end.saturating_sub(fragment.len()), end)?);
        }
        self.tail = Bytes::from(tail);
        if let Some(known) = facts {
            self.facts = OnceLock::from(known);
        }
        Ok(())
    }

    /// The fragments after `edit`, which is called with each id and message, in the order of their ids.
    pub fn edited(&self, mut edit: impl FnMut(u64, &Bytes) -> Result<Edit>) -> Result<Self> {
        let edited = self.messages().filter_map(|message| {
            let id = match summarize(&message) {
                Ok(summary) => summary.id,
                Err(error) => return Some(Err(error)),
            };
            match edit(id, &message) {
                Ok(Edit::Keep) => Some(Ok((id, message))),
                Ok(Edit::Remove) => None,
                Ok(Edit::Replace(fragment)) => Some(Ok((id, Bytes::from(fragment.encode())))),
                Err(error) => Some(Err(error)),
            }
        });
        Self::in_order(edited, self.encoded_len(), self.len())
    }

    /// These fragments and `new`, in the order of their ids.
    pub fn with_sorted(&self, new: &[Fragment]) -> Result<Self> {
        let old = self.messages().map(|message| Ok((summarize(&message)?.id, message)));
        let new = new
            .iter()
            .map(|fragment| Ok((fragment.id(), Bytes::from(fragment.encode()))));
        Self::in_order(old.chain(new), self.encoded_len(), self.len())
    }

    /// The fragments in the order of their ids, which readers rely on for searching. They nearly always come in it.
    fn in_order(fragments: impl Iterator<Item = Result<(u64, Bytes)>>, bytes: usize, count: usize) -> Result<Self> {
        let (mut records, mut spans) = (Vec::with_capacity(bytes), Vec::with_capacity(count));
        let mut ids: Vec<u64> = Vec::with_capacity(count);
        for fragment in fragments {
            let (id, message) = fragment?;
            push_length_delimited(&mut records, FRAGMENTS, &message);
            let place = span(records.len().saturating_sub(message.len()), records.len());
            spans.push(place.map_err(|error| error.of("manifest"))?);
            ids.push(id);
        }
        let list = Self {
            head: Bytes::from(records),
            spans,
            ..Self::default()
        };
        if ids.is_sorted() {
            return Ok(list);
        }
        let mut order: Vec<(u64, Bytes)> = ids.into_iter().zip(list.messages()).collect();
        order.sort_by_key(|(id, _)| *id);
        let mut sorted = Self::default();
        let messages = order.iter().map(|(_, message)| message.as_ref());
        sorted.push_all(messages).map_err(|error| error.of("manifest"))?;
        Ok(sorted)
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The records as they stand in a manifest: what these two hold, one after the other.
    pub fn records(&self) -> [Bytes; 2] {
        [self.head.clone(), self.tail.clone()]
    }

    /// The bytes of all records.
    pub fn encoded_len(&self) -> usize {
        self.head.len().saturating_add(self.tail.len())
    }

    /// The part of the records in which a span lies, and the span in it.
    fn place(&self, (start, end): (u32, u32)) -> (&Bytes, Range<usize>) {
        let (start, end) = (start as usize, end as usize);
        match self.head.len() {
            before if start < before => (&self.head, start..end),
            before => (&self.tail, start.saturating_sub(before)..end.saturating_sub(before)),
        }
    }

    fn message(&self, span: (u32, u32)) -> Bytes {
        let (part, range) = self.place(span);
        part.slice(range)
    }

    /// The encoded fragments, in order.
    pub fn messages(&self) -> impl Iterator<Item = Bytes> + '_ {
        self.spans.iter().map(|span| self.message(*span))
    }

    pub fn get(&self, index: usize) -> Option<Result<Fragment>> {
        let span = self.spans.get(index)?;
        Some(Fragment::decode(&self.message(*span)))
    }

    pub fn iter(&self) -> impl Iterator<Item = Result<Fragment>> + '_ {
        self.messages().map(|message| Fragment::decode(&message))
    }

    pub fn summaries(&self) -> impl Iterator<Item = Result<Summary>> + '_ {
        self.spans.iter().map(|span| {
            let (part, range) = self.place(*span);
            summarize(part.get(range).unwrap_or_default())
        })
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

    fn facts(&self) -> Result<Facts> {
        if let Some(known) = self.facts.get() {
            return Ok(*known);
        }
        let found = self
            .summaries()
            .try_fold(Facts::default(), |facts, summary| facts.and(&summary?))?;
        Ok(*self.facts.get_or_init(|| found))
    }

    /// Whether rows of any of them are deleted.
    pub fn has_deletions(&self) -> Result<bool> {
        Ok(self.facts()?.has_deletions)
    }

    /// Whether row ids or row versions of any of them lie in data files.
    pub fn has_spilled_lineage(&self) -> Result<bool> {
        Ok(self.facts()?.has_spilled_lineage)
    }

    /// The highest id, as far as it fits a row address.
    pub fn max_id(&self) -> Result<Option<u32>> {
        Ok(self.facts()?.max_id)
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

    fn records(list: &FragmentList) -> Vec<u8> {
        list.records().concat()
    }

    fn split(message: Vec<u8>) -> FragmentList {
        FragmentList::split(&Bytes::from(message)).unwrap().1
    }

    fn ids(list: &FragmentList) -> Vec<u64> {
        list.iter().map(|fragment| fragment.unwrap().id()).collect()
    }

    #[test]
    fn test_fragments_that_lie_together_share_the_manifests_bytes() {
        let message = Bytes::from(records(&list(&[0, 3, 1])));
        let (others, again) = FragmentList::split(&message).unwrap();
        assert!(others.fields().is_empty());
        assert_eq!(again.records()[0].as_ptr(), message.as_ptr());
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
        let (others, apart) = FragmentList::split(&Bytes::from(message)).unwrap();
        assert_eq!(ids(&apart), [4, 5]);
        assert_eq!(records(&apart), records(&list(&[4, 5])));
        assert_eq!(others.all(3).map(|field| field.varint()).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn test_a_list_grows_at_its_end() {
        let read = split(records(&list(&[1, 2])));
        assert_eq!(read.max_id().unwrap(), Some(2));
        let mut grown = read.clone();
        for id in 3..5 {
            grown.push_all(encoded(&[id]).iter().map(Vec::as_slice)).unwrap();
        }
        assert_eq!(records(&grown), records(&list(&[1, 2, 3, 4])));
        assert_eq!((grown.len(), ids(&grown)), (4, vec![1, 2, 3, 4]));
        assert_eq!(grown.max_id().unwrap(), Some(4));
        assert_eq!(grown.records()[0].as_ptr(), read.records()[0].as_ptr());
        assert_eq!(grown.get(3).unwrap().unwrap().id(), 4);
        assert_eq!((ids(&read), read.max_id().unwrap()), (vec![1, 2], Some(2)));
        assert_eq!(FragmentList::default().max_id().unwrap(), None);
    }

    #[test]
    fn test_an_edited_list_is_in_the_order_of_its_ids() {
        let mut grown = split(records(&list(&[5, 1])));
        grown.push_all(encoded(&[3]).iter().map(Vec::as_slice)).unwrap();
        let kept = grown.edited(|_, _| Ok(Edit::Keep)).unwrap();
        assert_eq!(ids(&kept), [1, 3, 5]);
        let fewer = grown
            .edited(|id, _| Ok(if id == 3 { Edit::Remove } else { Edit::Keep }))
            .unwrap();
        assert_eq!((ids(&fewer), fewer.max_id().unwrap()), (vec![1, 5], Some(5)));
        let added = fewer.with_sorted(&[Fragment::new(vec![], 10).with_id(4)]).unwrap();
        assert_eq!(ids(&added), [1, 4, 5]);
    }

    #[test]
    fn test_an_id_that_no_row_address_can_hold_is_corrupt() {
        assert!(list(&[1 << 32]).max_id().is_err());
    }
}
