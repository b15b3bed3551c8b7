//! The key filter of a transaction: the keys of inserted rows, for conflict checks by concurrent commits.
//!
//! Two upserts that insert rows have no fragment in common: only their keys tell whether both inserted the same row. So the message
//! `KeyExistenceFilter` holds the key columns' field ids and either the xxHash64 of each key or a split block Bloom filter of one size:
//!
//! ```text
//! 1,024 blocks of 8 words of 32 bits, little-endian. A key of hash h belongs to block (h >> 32) * 1024 >> 32 and sets one bit of each
//! word: bit (h as u32 * SALT[word]) >> 27.
//! ```
//!
//! Two filters that share a key have a block in which they share a bit of every word. With more keys than it was made for, a filter fills
//! up and overlaps with every other, which costs a retry of the merge and nothing else.

use std::collections::BTreeSet;

use bytes::Bytes;
use esker_proto::lance::table::transaction::{self as op, key_existence_filter::Data};
use prost::Message;
use twox_hash::XxHash64;

use crate::error::{Result, TableError};

/// Blocks of the filter. Filters of another size cannot be compared.
const BLOCKS: usize = 1024;

/// The number of keys that a filter of that size was made for.
const ITEMS: u64 = 8192;

/// Its probability of a false positive with so many keys.
const PROBABILITY: f64 = 0.00057;

/// The most hashes that are listed: with more keys a Bloom filter is smaller.
const EXACT_KEYS: usize = 4096;

/// The salts of Parquet's split block Bloom filter.
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

type Block = [u32; 8];

/// The keys of some rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyFilter {
    field_ids: Vec<i32>,
    keys: KeySet,
}

#[derive(Debug, Clone, PartialEq)]
enum KeySet {
    Exact(BTreeSet<u64>),
    Bloom(Vec<Block>),
}

fn mask(hash: u64) -> Block {
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or(0);
    SALT.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

fn block_of(hash: u64, blocks: usize) -> usize {
    usize::try_from(((hash >> 32) * blocks as u64) >> 32).unwrap_or(0)
}

fn set(blocks: &mut [Block], hash: u64) {
    let place = block_of(hash, blocks.len());
    if let Some(block) = blocks.get_mut(place) {
        block.iter_mut().zip(mask(hash)).for_each(|(word, bit)| *word |= bit);
    }
}

fn holds(blocks: &[Block], hash: u64) -> bool {
    let block = blocks.get(block_of(hash, blocks.len()));
    block.is_none_or(|block| block.iter().zip(mask(hash)).all(|(word, bit)| word & bit != 0))
}

impl KeyFilter {
    /// A filter without keys. With `bloom` it is a Bloom filter from the start, the form that pylance compares.
    pub fn new(field_ids: Vec<i32>, bloom: bool) -> Self {
        let keys = if bloom {
            KeySet::Bloom(vec![[0; 8]; BLOCKS])
        } else {
            KeySet::Exact(BTreeSet::new())
        };
        Self { field_ids, keys }
    }

    /// Adds a key.
    pub fn insert(&mut self, key: &[u8]) {
        let hash = XxHash64::oneshot(0, key);
        match &mut self.keys {
            KeySet::Bloom(blocks) => set(blocks, hash),
            KeySet::Exact(hashes) => {
                hashes.insert(hash);
                if hashes.len() > EXACT_KEYS {
                    let mut blocks = vec![[0; 8]; BLOCKS];
                    hashes.iter().for_each(|hash| set(&mut blocks, *hash));
                    self.keys = KeySet::Bloom(blocks);
                }
            }
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        match &self.keys {
            KeySet::Exact(hashes) => hashes.is_empty(),
            KeySet::Bloom(blocks) => blocks.iter().flatten().all(|word| *word == 0),
        }
    }

    /// Whether it is a Bloom filter: that of a declared primary key always is, and one of many other keys.
    pub fn is_bloom(&self) -> bool {
        matches!(self.keys, KeySet::Bloom(_))
    }

    /// Whether the two may have a key in common: true if they have, and rarely if they have not.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        if self.field_ids != other.field_ids {
            return true;
        }
        match (&self.keys, &other.keys) {
            (KeySet::Exact(ours), KeySet::Exact(theirs)) => !ours.is_disjoint(theirs),
            (KeySet::Exact(hashes), KeySet::Bloom(blocks)) | (KeySet::Bloom(blocks), KeySet::Exact(hashes)) => {
                hashes.iter().any(|hash| holds(blocks, *hash))
            }
            (KeySet::Bloom(ours), KeySet::Bloom(theirs)) => {
                let share = |(a, b): (&Block, &Block)| a.iter().zip(b).all(|(a, b)| a & b != 0);
                ours.len() != theirs.len() || ours.iter().zip(theirs).any(share)
            }
        }
    }

    /// The encoded `KeyExistenceFilter`.
    pub fn encode(&self) -> Bytes {
        let data = match &self.keys {
            KeySet::Exact(hashes) => Data::Exact(op::ExactKeySetFilter {
                key_hashes: hashes.iter().copied().collect(),
            }),
            KeySet::Bloom(blocks) => {
                let bitmap: Vec<u8> = blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
                Data::Bloom(op::BloomFilter {
                    num_bits: u32::try_from(bitmap.len() * 8).unwrap_or(0),
                    bitmap: bitmap.into(),
                    number_of_items: ITEMS,
                    probability: PROBABILITY,
                })
            }
        };
        let message = op::KeyExistenceFilter {
            field_ids: self.field_ids.clone(),
            data: Some(data),
        };
        message.encode_to_vec().into()
    }

    /// Decodes a `KeyExistenceFilter`.
    pub fn decode(message: &Bytes) -> Result<Self> {
        let bad = |what: String| TableError::corrupt("KeyExistenceFilter", what);
        let message = op::KeyExistenceFilter::decode(message.clone()).map_err(|e| bad(e.to_string()))?;
        let keys = match message.data {
            None => KeySet::Exact(BTreeSet::new()),
            Some(Data::Exact(exact)) => KeySet::Exact(exact.key_hashes.into_iter().collect()),
            Some(Data::Bloom(bloom)) => {
                let (words, rest) = bloom.bitmap.as_chunks::<4>();
                let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
                let (blocks, more) = words.as_chunks::<8>();
                if !rest.is_empty() || !more.is_empty() || blocks.is_empty() {
                    let found = bloom.bitmap.len();
                    return Err(bad(format!(
                        "expected a bitmap of blocks of 32 bytes, found {found} bytes"
                    )));
                }
                KeySet::Bloom(blocks.to_vec())
            }
        };
        Ok(Self {
            field_ids: message.field_ids,
            keys,
        })
    }
}
