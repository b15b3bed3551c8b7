//! Writes lz4 blocks: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.
//!
//! ```text
//! sequence   token: literals << 4 | match length - 4, 15 where more follows
//!            [255 .. rest of the literals] literals   u16 offset back   [255 .. rest of the match length]
//! last one   literals only: at least 5 bytes, and no match starts in the last 12
//! ```
//!
//! Matching is lazy: a match that starts one byte later is preferred if it is longer, which makes smaller blocks than the reference's fast
//! mode.

/// The shortest match.
const MIN_MATCH: usize = 4;
/// No match starts in the last this many bytes.
const NO_START: usize = 12;
/// The last this many bytes are literals.
const LAST_LITERALS: usize = 5;
/// The greatest distance back to a match.
const MAX_OFFSET: usize = 0xffff;
/// Acceleration: after 2 to the power of this many positions without a match every second position is tried, then every third, and so on.
const SKIP_AFTER: u32 = 6;

/// Appends `input` as one block. The caller passes less than 4 GiB: a longer input would not decompress to itself.
pub(crate) fn compress(input: &[u8], out: &mut Vec<u8>) {
    // A table of half the size is cleared and read sooner.
    if u16::try_from(input.len()).is_ok() {
        compress_with::<u16>(input, out);
    } else {
        compress_with::<u32>(input, out);
    }
}

fn compress_with<P: Position>(input: &[u8], out: &mut Vec<u8>) {
    out.reserve(input.len() / 2 + 16);
    let mut literals = 0;
    if let Some(limit) = input.len().checked_sub(NO_START) {
        let mut finder = Finder::<P>::new(input);
        let (mut at, mut misses) = (0, 1_u32 << SKIP_AFTER);
        while at < limit {
            let Some(mut found) = finder.find(at) else {
                at += usize::try_from(misses >> SKIP_AFTER).unwrap_or(1);
                misses += 1;
                continue;
            };
            misses = 1 << SKIP_AFTER;
            while at + 1 < limit {
                match finder.longer(at + 1, found.length) {
                    Some(next) => (found, at) = (next, at + 1),
                    None => break,
                }
            }
            while at > literals && found.from > 0 && input.get(at - 1) == input.get(found.from - 1) {
                (at, found.from, found.length) = (at - 1, found.from - 1, found.length + 1);
            }
            put_sequence(
                input.get(literals..at).unwrap_or_default(),
                Some((at - found.from, found.length)),
                out,
            );
            let end = at + found.length;
            finder.remember(end - 2);
            (at, literals) = (end, end);
        }
    }
    put_sequence(input.get(literals..).unwrap_or_default(), None, out);
}

/// A match: an earlier position and how many bytes are the same.
struct Match {
    from: usize,
    length: usize,
}

/// Where something starts, in as few bytes as the input allows.
trait Position: Copy + Default {
    fn of(at: usize) -> Self;
    fn at(self) -> usize;
}

impl Position for u16 {
    #[inline(always)]
    fn of(at: usize) -> u16 {
        u16::try_from(at).unwrap_or(u16::MAX)
    }
    #[inline(always)]
    fn at(self) -> usize {
        usize::from(self)
    }
}

impl Position for u32 {
    #[inline(always)]
    fn of(at: usize) -> u32 {
        u32::try_from(at).unwrap_or(u32::MAX)
    }
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// The hash table: the last position of each hash of four bytes.
struct Finder<'a, P> {
    input: &'a [u8],
    positions: Vec<P>,
    shift: u32,
}

impl<'a, P: Position> Finder<'a, P> {
    fn new(input: &'a [u8]) -> Finder<'a, P> {
        let bits = (usize::BITS - (input.len() / 2).leading_zeros()).clamp(8, 14);
        Finder {
            input,
            positions: vec![P::default(); 1 << bits],
            shift: 64 - bits,
        }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        let bytes = self.input.get(at..).and_then(|rest| rest.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Stores a position; returns the previous one with the same hash.
    #[inline(always)]
    fn swap(&mut self, at: usize, word: u64) -> usize {
        #[allow(clippy::cast_possible_truncation)] // At most 14 bits are left.
        let hash = ((word & 0xffff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        let Some(position) = self.positions.get_mut(hash) else {
            return 0;
        };
        let before = *position;
        *position = P::of(at);
        before.at()
    }

    #[inline(always)]
    fn remember(&mut self, at: usize) {
        let word = self.word(at);
        self.swap(at, word);
    }

    /// The last position that starts with the same bytes, if it is near enough.
    #[inline(always)]
    fn find(&mut self, at: usize) -> Option<Match> {
        let from = self.near(at)?;
        let length = self.length(from, at);
        Some(Match { from, length })
    }

    /// The same, if the match is longer than `than`, of which one byte tells enough for most.
    #[inline(always)]
    fn longer(&mut self, at: usize, than: usize) -> Option<Match> {
        let from = self.near(at)?;
        if at + than >= self.end() || self.input.get(from + than) != self.input.get(at + than) {
            return None;
        }
        let length = self.length(from, at);
        (length > than).then_some(Match { from, length })
    }

    /// The last position with the same four bytes, if it is near enough.
    #[inline(always)]
    fn near(&mut self, at: usize) -> Option<usize> {
        let word = self.word(at);
        let from = self.swap(at, word);
        let same = self.word(from) ^ word;
        (same & 0xffff_ffff == 0 && from < at && at - from <= MAX_OFFSET).then_some(from)
    }

    /// How many bytes are the same, without the last ones, which must be literals.
    #[inline(always)]
    fn length(&self, from: usize, at: usize) -> usize {
        let there = self.input.get(from + MIN_MATCH..).unwrap_or_default();
        let here = self.input.get(at + MIN_MATCH..self.end()).unwrap_or_default();
        MIN_MATCH + same_bytes(there, here)
    }

    /// Where matches end at the latest.
    #[inline(always)]
    fn end(&self) -> usize {
        self.input.len().saturating_sub(LAST_LITERALS)
    }
}

/// How many bytes two inputs have in common at their beginning.
#[inline(always)]
fn same_bytes(left: &[u8], right: &[u8]) -> usize {
    const WIDE: usize = 32;
    // Most matches end within a word, and those that do not are often long.
    let mut same = 0;
    if let (Some(a), Some(b)) = (left.first_chunk::<8>(), right.first_chunk::<8>()) {
        same = same_of_word(a, b);
        if same < 8 {
            return same;
        }
    }
    let (wide_left, _) = left.get(same..).unwrap_or_default().as_chunks::<WIDE>();
    let (wide_right, _) = right.get(same..).unwrap_or_default().as_chunks::<WIDE>();
    same += wide_left.iter().zip(wide_right).take_while(|(a, b)| a == b).count() * WIDE;
    let (words_left, _) = left.get(same..).unwrap_or_default().as_chunks::<8>();
    let (words_right, _) = right.get(same..).unwrap_or_default().as_chunks::<8>();
    for (a, b) in words_left.iter().zip(words_right) {
        let found = same_of_word(a, b);
        same += found;
        if found < 8 {
            return same;
        }
    }
    let left = left.get(same..).unwrap_or_default().iter();
    let right = right.get(same..).unwrap_or_default();
    same + left.zip(right).take_while(|(a, b)| a == b).count()
}

#[inline(always)]
fn same_of_word(left: &[u8; 8], right: &[u8; 8]) -> usize {
    let different = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
    different.trailing_zeros() as usize / 8
}

/// Appends literals, and a match (offset and length) unless they are the last.
fn put_sequence(literals: &[u8], found: Option<(usize, usize)>, out: &mut Vec<u8>) {
    let length = found.map_or(0, |(_, length)| length - MIN_MATCH);
    let nibble = |length: usize| u8::try_from(length.min(15)).unwrap_or(15);
    out.push(nibble(literals.len()) << 4 | nibble(length));
    put_length(literals.len(), out);
    out.extend_from_slice(literals);
    if let Some((offset, _)) = found {
        out.extend_from_slice(&u16::try_from(offset).unwrap_or(u16::MAX).to_le_bytes());
        put_length(length, out);
    }
}

/// Appends what a length has above the 15 of its token.
fn put_length(length: usize, out: &mut Vec<u8>) {
    let Some(rest) = length.checked_sub(15) else { return };
    out.extend(std::iter::repeat_n(255, rest / 255));
    out.push(u8::try_from(rest % 255).unwrap_or(255));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_bytes_in_common_are_counted_as_one_by_one() {
        let bytes: Vec<u8> = (0..400_usize).map(|i| (i * i / 7) as u8).collect();
        for differs in (0..200).chain([usize::MAX]) {
            let mut other = bytes.clone();
            if let Some(byte) = other.get_mut(differs) {
                *byte ^= 0x80;
            }
            for (left, right) in [(150, 150), (differs.min(150), 200), (200, differs.min(97)), (131, 77)] {
                let (left, right) = (&bytes[..left], &other[..right]);
                let expected = left.iter().zip(right).take_while(|(a, b)| a == b).count();
                assert_eq!(
                    same_bytes(left, right),
                    expected,
                    "{differs} {} {}",
                    left.len(),
                    right.len()
                );
            }
        }
    }

    #[test]
    fn test_matches_of_all_lengths_come_back() {
        for period in [1_usize, 2, 3, 7, 8, 31, 32, 33, 64, 255, 256, 1000] {
            for len in (0..80).chain([270, 300, 4096, 70_000]) {
                let input: Vec<u8> = (0..len).map(|i: usize| (i % period * 37 + i / 3000) as u8).collect();
                let mut out = Vec::new();
                compress(&input, &mut out);
                assert_eq!(lz4_flex::block::decompress(&out, len).unwrap(), input, "{period} {len}");
            }
        }
    }
}
