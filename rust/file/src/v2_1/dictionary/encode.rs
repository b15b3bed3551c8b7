//! Finding distinct values, and writing them.

use std::hash::Hash;

use arrow_buffer::{Buffer, MutableBuffer};
use esker_codec::outline_bitpack;
use esker_proto::lance::encodings21 as pb;
use hashbrown::HashMap;

use super::super::general::encode::Scheme;
use super::super::message;
use super::super::mini_block::encode::EncodedDictionary;
use super::super::statistics::max_bit_width;
use super::super::values::{FixedWidth, LeafValues, VariableWidth};
use super::super::variable::encode::encode_block;
use super::texts::NumberedTexts;
use super::words::numbered_words;
use crate::error::{FileError, Result};

/// Bits of the numbers of distinct values.
pub(crate) const INDEX_BITS: usize = 32;

/// Values looked at to estimate how many are distinct.
const SAMPLE: usize = 4096;

/// A page's distinct values, in the order in which they come, and for each value its number.
#[derive(Clone)]
pub(crate) struct Distinct {
    pub(crate) indices: FixedWidth,
    pub(crate) items: LeafValues,
}

/// Finds the distinct values; nothing where there are more than `limit`, or the values have no bytes that can be compared.
pub(crate) fn distinct(values: &LeafValues, limit: usize) -> Option<Distinct> {
    match values {
        LeafValues::Variable(values) => {
            let numbered = NumberedTexts::of(values, limit)?;
            Some(Distinct {
                indices: indices(numbered.numbers),
                items: LeafValues::Variable(VariableWidth {
                    large: values.large,
                    offsets: numbered.offsets,
                    bytes: Buffer::from_vec(numbered.bytes),
                }),
            })
        }
        LeafValues::Fixed(values) => {
            let bytes = values.contiguous();
            let width = values.bits / 8;
            let (numbers, item_bytes) = match values.bits {
                64 => numbered_words::<8>(bytes.as_slice(), limit)?,
                16 => numbered_words::<2>(bytes.as_slice(), limit)?,
                32 => numbered_words::<4>(bytes.as_slice(), limit)?,
                128 => numbered_words::<16>(bytes.as_slice(), limit)?,
                bits if bits > 32 && bits.is_multiple_of(8) => {
                    let value = |index: usize| bytes.get(index * width..(index + 1) * width);
                    let numbered = number(values.len, value, limit)?;
                    (numbered.numbers, numbered.items.concat())
                }
                _ => return None,
            };
            let num_items = item_bytes.len().checked_div(width)?;
            Some(Distinct {
                indices: indices(numbers),
                items: LeafValues::Fixed(FixedWidth {
                    bits: values.bits,
                    len: num_items,
                    pieces: vec![Buffer::from_vec(item_bytes)],
                }),
            })
        }
        _ => None,
    }
}

impl Distinct {
    /// The same values in ascending order, in which neighbours share bytes: numbers by their size, strings by their bytes.
    pub(crate) fn sorted(self) -> Distinct {
        let order = match &self.items {
            LeafValues::Variable(items) => order(items.len(), |a, b| items.get(a).cmp(items.get(b))),
            LeafValues::Fixed(items) => {
                let bytes = items.contiguous();
                let width = items.bits / 8;
                let item = |index: usize| bytes.get(index * width..(index + 1) * width).unwrap_or_default();
                if width <= 8 {
                    let number = |index: u32| {
                        item(index as usize)
                            .iter()
                            .rev()
                            .fold(0_u64, |n, byte| n << 8 | u64::from(*byte))
                    };
                    let mut numbers: Vec<(u64, u32)> =
                        numbered(items.len).map(|index| (number(index), index)).collect();
                    numbers.sort_unstable();
                    numbers.into_iter().map(|(_, index)| index).collect()
                } else {
                    order(items.len, |a, b| item(a).iter().rev().cmp(item(b).iter().rev()))
                }
            }
            _ => return self,
        };
        let mut places = vec![0_u32; order.len()];
        for (place, number) in (0..).zip(&order) {
            if let Some(found) = places.get_mut(*number as usize) {
                *found = place;
            }
        }
        let numbers = self.indices.contiguous();
        let numbers = numbers.typed_data::<u32>().iter();
        let numbers = numbers.map(|number| places.get(*number as usize).copied().unwrap_or(0));
        Distinct {
            indices: indices(numbers.collect()),
            items: taken(&self.items, &order),
        }
    }
}

fn numbered(len: usize) -> impl Iterator<Item = u32> {
    (0..len).map_while(|number| u32::try_from(number).ok())
}

fn order(len: usize, mut compare: impl FnMut(usize, usize) -> std::cmp::Ordering) -> Vec<u32> {
    let mut order: Vec<u32> = numbered(len).collect();
    order.sort_unstable_by(|a, b| compare(*a as usize, *b as usize));
    order
}

/// Some of the values, in this order.
fn taken(items: &LeafValues, order: &[u32]) -> LeafValues {
    match items {
        LeafValues::Variable(items) => {
            let mut bytes = MutableBuffer::new(items.bytes.len());
            let mut offsets = Vec::with_capacity(order.len() + 1);
            offsets.push(0);
            for number in order {
                bytes.extend_from_slice(items.get(*number as usize));
                offsets.push(bytes.len());
            }
            LeafValues::Variable(VariableWidth {
                large: items.large,
                offsets,
                bytes: bytes.into(),
            })
        }
        LeafValues::Fixed(items) => {
            let (bytes, width) = (items.contiguous(), items.bits / 8);
            let mut out = Vec::with_capacity(bytes.len());
            for number in order {
                let start = *number as usize * width;
                out.extend_from_slice(bytes.get(start..start + width).unwrap_or_default());
            }
            LeafValues::Fixed(FixedWidth {
                bits: items.bits,
                len: order.len(),
                pieces: vec![Buffer::from_vec(out)],
            })
        }
        other => other.clone(),
    }
}

pub(super) struct Numbered<K> {
    pub(super) numbers: Vec<u32>,
    pub(super) items: Vec<K>,
}

pub(super) fn number<K: Hash + Eq + Copy>(
    len: usize,
    value: impl Fn(usize) -> Option<K>,
    limit: usize,
) -> Option<Numbered<K>> {
    let mut seen: HashMap<K, u32> = HashMap::new();
    let mut items = Vec::new();
    let mut numbers = Vec::with_capacity(len);
    let mut last: Option<(K, u32)> = None;
    for index in 0..len {
        let key = value(index)?;
        if let Some((before, number)) = last.filter(|(before, _)| *before == key) {
            numbers.push(number);
            last = Some((before, number));
            continue;
        }
        let next = u32::try_from(items.len()).ok()?;
        let number = *seen.entry(key).or_insert_with(|| {
            items.push(key);
            next
        });
        if items.len() > limit {
            return None;
        }
        numbers.push(number);
        last = Some((key, number));
    }
    Some(Numbered { numbers, items })
}

fn indices(numbers: Vec<u32>) -> FixedWidth {
    FixedWidth {
        bits: INDEX_BITS,
        len: numbers.len(),
        pieces: vec![Buffer::from_vec(numbers)],
    }
}

/// About how many values are distinct, and in how many runs of equals they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub(crate) distinct: usize,
    pub(crate) runs: usize,
}

/// How values repeat, from some of them.
pub(crate) fn estimate(values: &LeafValues) -> Repeats {
    match values {
        LeafValues::Variable(values) => {
            let value = |index: usize| Some(values.get(index));
            let distinct = |some: Sampled| number(some.len(), |index| value(some.place(index)), some.len());
            repeats(values.len(), value, |some| distinct(some).map(|found| found.numbers))
        }
        LeafValues::Fixed(values) => {
            let bytes = values.contiguous();
            let slice = bytes.as_slice();
            match values.bits {
                16 => word_repeats::<2>(slice),
                32 => word_repeats::<4>(slice),
                64 => word_repeats::<8>(slice),
                128 => word_repeats::<16>(slice),
                bits => {
                    let width = bits / 8;
                    let value = |index: usize| slice.get(index * width..(index + 1) * width);
                    let distinct = |some: Sampled| number(some.len(), |index| value(some.place(index)), some.len());
                    repeats(values.len, value, |some| distinct(some).map(|found| found.numbers))
                }
            }
        }
        _ => Repeats {
            distinct: values.len(),
            runs: values.len(),
        },
    }
}

/// The same of values of one width.
fn word_repeats<const WIDTH: usize>(bytes: &[u8]) -> Repeats {
    let words = bytes.as_chunks::<WIDTH>().0;
    let numbers = |some: Sampled| {
        let found = if some.is_all() {
            numbered_words::<WIDTH>(bytes, some.len())
        } else {
            let some: Vec<[u8; WIDTH]> = some.places().filter_map(|place| words.get(place).copied()).collect();
            numbered_words::<WIDTH>(some.as_flattened(), some.len())
        };
        found.map(|(numbers, _)| numbers)
    };
    repeats(words.len(), |index| words.get(index), numbers)
}

/// `numbers` are those of some of the values, equal ones of equal values.
fn repeats<T: PartialEq>(
    len: usize,
    value: impl Fn(usize) -> Option<T>,
    numbers: impl FnOnce(Sampled) -> Option<Vec<u32>>,
) -> Repeats {
    let runs = estimated_runs(len, value);
    let distinct = numbers(Sampled::of(len)).map_or(len, |numbers| extrapolate(&numbers, len));
    // A sample of values far from each other sees hardly any run twice.
    Repeats {
        distinct: distinct.min(runs),
        runs,
    }
}

/// At most so many runs, most likely, from neighbours all over the values.
fn estimated_runs<T: PartialEq>(len: usize, value: impl Fn(usize) -> T) -> usize {
    const NEIGHBOURS: usize = 64;
    let step = if len <= SAMPLE {
        NEIGHBOURS
    } else {
        len / (SAMPLE / NEIGHBOURS)
    };
    let (mut seen, mut changes) = (0_usize, 0_usize);
    for start in (0..len).step_by(step) {
        let end = len.min(start + NEIGHBOURS + 1);
        seen += end - start - 1;
        changes += (start + 1..end)
            .filter(|index| value(*index) != value(index - 1))
            .count();
    }
    if step == NEIGHBOURS {
        return (changes + 1).min(len);
    }
    // Two more than were seen: no change among some thousand does not mean that there is none.
    let runs = (changes as u128 + 2) * len as u128 / seen.max(1) as u128;
    usize::try_from(runs).unwrap_or(len).clamp(1, len)
}

/// Values that are looked at, from all over `len` values.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    len: usize,
    step: usize,
}

impl Sampled {
    fn of(len: usize) -> Sampled {
        let step = (len / SAMPLE).max(1);
        Sampled { len, step }
    }

    fn len(self) -> usize {
        self.len.div_ceil(self.step)
    }

    fn is_all(self) -> bool {
        self.step == 1
    }

    /// Where one of them is. Always the first of each step would be another value each time where values come again in a period.
    fn place(self, index: usize) -> usize {
        // The multipliers of splitmix64, whose numbers keep no distance from each other.
        let mixed = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        #[allow(clippy::cast_possible_truncation)] // The high half.
        let mixed = (mixed >> 32) as usize;
        (index * self.step + mixed % self.step).min(self.len.saturating_sub(1))
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(move |index| self.place(index))
    }
}

/// How many distinct values there are among `len`, by those of a sample: Chao's estimator. The more of them come once, in relation to those
/// that come twice, the more were not seen; that one of them is frequent, like the value below nulls, says nothing about the others.
fn extrapolate(numbers: &[u32], len: usize) -> usize {
    let distinct = numbers.iter().max().map_or(0, |last| *last as usize + 1);
    if numbers.len() == len {
        return distinct;
    }
    let mut times = vec![0_u32; distinct];
    for number in numbers {
        if let Some(times) = times.get_mut(*number as usize) {
            *times += 1;
        }
    }
    let come = |often: u32| times.iter().filter(|times| **times == often).count();
    let (once, twice) = (come(1), come(2));
    let unseen = once * once.saturating_sub(1) / (2 * (twice + 1));
    // That is where values are drawn again and again. Of values that come r times, (r - 1) / r as many were not seen.
    let drawn = (distinct as u128 + unseen as u128) * len as u128 / (len as u128 + unseen as u128).max(1);
    usize::try_from(drawn).unwrap_or(len).clamp(distinct, len)
}

/// Writes the distinct values in the way that takes the fewest bytes, within one of the schemes where that helps.
pub(crate) fn encode_items(
    name: &str,
    items: &LeafValues,
    schemes: &[Scheme],
    may_pack: bool,
) -> Result<EncodedDictionary> {
    let num_items = items.len();
    let mut ways = match items {
        LeafValues::Variable(values) => {
            let bytes = encode_block(values)?;
            vec![(bytes, message::variable(values.offset_bits() as u64))]
        }
        LeafValues::Fixed(values) => fixed_blocks(values, may_pack),
        _ => {
            return Err(FileError::unsupported(format!(
                "column '{name}': a dictionary holds fixed-width values, strings or binary; use plain values"
            )))
        }
    };
    for way in 0..ways.len() {
        for scheme in schemes {
            let Some((bytes, encoding)) = ways.get(way) else {
                continue;
            };
            let mut smaller = Vec::new();
            scheme.compress(bytes, &mut smaller)?;
            if smaller.len() < bytes.len() {
                let encoding = scheme.encoding(encoding.clone());
                ways.push((smaller, encoding));
            }
        }
    }
    let best = ways.into_iter().min_by_key(|(bytes, _)| bytes.len());
    let (bytes, encoding) = best.unwrap_or_default();
    Ok(EncodedDictionary {
        bytes,
        encoding,
        num_items,
    })
}

/// Values of one width as they are, and packed where that may be and is smaller.
fn fixed_blocks(values: &FixedWidth, may_pack: bool) -> Vec<(Vec<u8>, pb::CompressiveEncoding)> {
    let bytes = values.contiguous();
    let bits = values.bits as u64;
    let mut ways = vec![(bytes.to_vec(), message::flat(bits))];
    let width = max_bit_width(values.bits, bytes.as_slice()).max(1) as u64;
    if may_pack && matches!(bits, 8 | 16 | 32 | 64) && width < bits {
        let mut out = Vec::new();
        outline_bitpack::encode(bits, width, bytes.as_slice(), &mut out);
        if out.len() < bytes.len() {
            ways.push((out, message::out_of_line_bitpacking(bits, width)));
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_sorted_items_are_the_same_values() {
        let numbers: Vec<u64> = (0..5000).map(|i| i * 7919 % 300 * 1_000_003).collect();
        let words: Vec<String> = numbers.iter().map(|number| format!("w{number}")).collect();
        let mut offsets = vec![0];
        words
            .iter()
            .for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len()));
        let fixed = LeafValues::Fixed(FixedWidth {
            bits: 64,
            len: numbers.len(),
            pieces: vec![Buffer::from_vec(numbers.clone())],
        });
        let variable = LeafValues::Variable(VariableWidth {
            large: false,
            offsets,
            bytes: Buffer::from_vec(words.concat().into_bytes()),
        });
        for values in [fixed, variable] {
            let found = distinct(&values, 1000).unwrap().sorted();
            let indices = found.indices.contiguous();
            for (row, index) in indices.typed_data::<u32>().iter().enumerate() {
                match (&found.items, &values) {
                    (LeafValues::Fixed(items), LeafValues::Fixed(_)) => {
                        let items = items.contiguous();
                        assert!(items.typed_data::<u64>().is_sorted());
                        assert_eq!(items.typed_data::<u64>()[*index as usize], numbers[row]);
                    }
                    (LeafValues::Variable(items), LeafValues::Variable(values)) => {
                        assert_eq!(items.get(*index as usize), values.get(row));
                    }
                    _ => panic!("the items have another form than the values"),
                }
            }
        }
    }

    #[test]
    fn test_the_number_of_distinct_values_is_estimated_within_a_half() {
        for distinct in [1, 10, 1000, 20_000, 60_000] {
            let mut state = 1_u64;
            let drawn: Vec<u64> = (0..100_000)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 33) % distinct
                })
                .collect();
            let distinct = drawn.iter().collect::<std::collections::HashSet<_>>().len();
            let values: Vec<u8> = drawn.iter().flat_map(|number| number.to_le_bytes()).collect();
            let values = LeafValues::Fixed(FixedWidth {
                bits: 64,
                len: 100_000,
                pieces: vec![Buffer::from_vec(values)],
            });
            let estimated = estimate(&values).distinct as f64 / distinct as f64;
            assert!((0.67..1.5).contains(&estimated), "{distinct}: {estimated}");
        }
    }

    #[test]
    fn test_runs_and_values_that_come_a_few_times_are_not_thought_distinct() {
        for (len, times) in [
            (40_000_u64, 2),
            (400_000, 2),
            (400_000, 3),
            (400_000, 8),
            (400_000, 1000),
            (5_000, 8),
        ] {
            let distinct = len / times;
            let orders: [Box<dyn Fn(u64) -> u64>; 2] = [Box::new(|at| at / times), Box::new(|at| at % distinct)];
            for (number, value) in orders.iter().enumerate() {
                // Numbers that are far from each other.
                let bytes: Vec<u8> = (0..len)
                    .flat_map(|at| value(at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
                    .collect();
                let values = LeafValues::Fixed(FixedWidth {
                    bits: 64,
                    len: usize::try_from(len).unwrap(),
                    pieces: vec![Buffer::from_vec(bytes)],
                });
                let estimated = estimate(&values).distinct as f64 / distinct as f64;
                // Of long runs few neighbours differ.
                assert!((0.4..2.0).contains(&estimated), "{len} {times} {number}: {estimated}");
            }
        }
    }

    #[test]
    fn test_values_that_come_again_in_a_period_are_not_thought_distinct() {
        for (len, period) in [
            (620_000_u64, 10_000),
            (1_000_000, 9_973),
            (300_000, 5_000),
            (100_000, 24),
        ] {
            let values = LeafValues::Fixed(FixedWidth {
                bits: 64,
                len: usize::try_from(len).unwrap(),
                pieces: vec![Buffer::from_vec((0..len).map(|i| i % period).collect())],
            });
            let estimated = estimate(&values).distinct as f64 / period as f64;
            assert!((0.67..1.5).contains(&estimated), "{len} {period}: {estimated}");
        }
    }
}
