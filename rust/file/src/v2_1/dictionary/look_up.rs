//! Looks values of any length up: what all chunks of a page share is made once.

use std::sync::OnceLock;

use esker_codec::ends::Offset;
use esker_codec::gather::{check, Items, Number, LONGEST};
use esker_store::kept;

use crate::error::Result;
use crate::v2_1::builder::VariableBuilder;
use crate::v2_1::page::PageId;

/// Fewer values than this are copied one by one.
const FEW: usize = 64;

/// What look-ups need besides the items.
#[derive(Debug, Default)]
pub(super) struct LookUp {
    /// Bytes of the longest item, and of all.
    longest: usize,
    bytes: usize,
    /// The items as the kernel wants them; nothing where they are too long for it.
    table: OnceLock<Option<Items>>,
}

impl LookUp {
    pub(super) fn new<O: Offset>(items: &VariableBuilder<O>) -> LookUp {
        let ends = items.offsets().iter().map(|end| end.to_u64());
        let starts = items.offsets().iter().skip(1).map(|end| end.to_u64());
        let lengths = starts.zip(ends).map(|(end, start)| end.saturating_sub(start));
        LookUp {
            longest: usize::try_from(lengths.max().unwrap_or(0)).unwrap_or(usize::MAX),
            bytes: items.as_bytes().len(),
            table: OnceLock::new(),
        }
    }

    /// Bytes that it takes or will take, for `items` items.
    pub(super) fn memory(&self, items: usize) -> usize {
        if self.longest <= LONGEST {
            self.bytes.saturating_add(items.saturating_mul(8))
        } else {
            0
        }
    }

    /// Appends the items of `keys`.
    pub(super) fn append<N: Number, O: Offset>(
        &self,
        at: &PageId,
        keys: &[N],
        items: &VariableBuilder<O>,
        out: &mut VariableBuilder<O>,
    ) -> Result<()> {
        if keys.len() >= FEW && self.longest <= LONGEST {
            let all = (0..items.len()).map(|index| items.value(index).unwrap_or_default());
            if let Some(table) = kept(&self.table, || Items::new(all)) {
                let start = out.as_bytes().len();
                let (bytes, offsets) = out.parts(keys.len());
                table.gather(keys, bytes, offsets).map_err(|e| at.kernel(e))?;
                if table.is_text() {
                    out.note_text(start);
                }
                return Ok(());
            }
        }
        check(keys, items.len()).map_err(|e| at.kernel(e))?;
        let item = |key: &N| items.value(key.place()).unwrap_or_default();
        let size = keys
            .iter()
            .fold(0_usize, |sum, key| sum.saturating_add(item(key).len()));
        out.check_room(size)?;
        out.make_room(keys.len(), size);
        let start = out.as_bytes().len();
        keys.iter().for_each(|key| out.push(item(key)));
        out.look_for_ascii(start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(lengths: &[usize], keys: &[u32]) {
        let at = PageId {
            path: "a.lance".into(),
            version: crate::version::FileVersion::V2_1,
            column: 0,
            number: 0,
        };
        let mut items = VariableBuilder::<i32>::new(true);
        for (number, length) in lengths.iter().enumerate() {
            items.push(&vec![number as u8 + 1; *length]);
        }
        let look_up = LookUp::new(&items);
        let (mut found, mut expected) = (VariableBuilder::<i32>::new(true), VariableBuilder::<i32>::new(true));
        for out in [&mut found, &mut expected] {
            out.push(b"before");
        }
        for round in [keys, &keys[..keys.len() / 2]] {
            let stored: Vec<[u8; 4]> = round.iter().map(|key| key.to_le_bytes()).collect();
            look_up.append(&at, &stored, &items, &mut found).unwrap();
            for key in round {
                expected.push(items.value(*key as usize).unwrap());
            }
        }
        assert_eq!(found.as_bytes(), expected.as_bytes());
        assert_eq!(found.offsets(), expected.offsets());
        let beyond = [(lengths.len() as u32).to_le_bytes(); 100];
        assert!(look_up.append(&at, &beyond, &items, &mut found).is_err());
        assert!(look_up.append(&at, &beyond[..1], &items, &mut found).is_err());
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn test_items_of_all_lengths_are_found() {
        for lengths in [
            vec![0, 1, 16, 7],
            vec![17, 3, 0, 32, 33],
            vec![5000, 0, 64, 31],
            vec![65, 0, 256, 31, 128, 129],
            vec![257, 0],
            vec![2, 2, 2],
            vec![0, 0, 0, 0],
            vec![1],
        ] {
            for count in [1, 63, 64, 65, 1024, 1025, 5000] {
                let keys: Vec<u32> = (0..count).map(|i| (i * 7919 + i / 3) % lengths.len() as u32).collect();
                compare(&lengths, &keys);
            }
        }
        compare(&[], &[]);
    }
}
