//! The counts in front of lengths of texts that are stored as differences (`DELTA_LENGTH_BYTE_ARRAY`, `DELTA_BYTE_ARRAY`).
//!
//! The `parquet` crate makes room for as many lengths as a page claims to hold, before it looks for one of them: a page of 20 bytes asks for
//! terabytes, and an allocation that fails ends the process. So the claims are compared with the page's own number of values first.

use parquet::basic::Encoding;

/// What claims more lengths than the page has values: the number that it claims.
pub(crate) fn excess(values: &[u8], encoding: Encoding, most: u32) -> Option<u64> {
    let series = match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        // Lengths of prefixes, then those of suffixes.
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return None,
    };
    let mut rest = values;
    for _ in 0..series {
        // What cannot be read is an error of the crate's, which stops at the same place.
        let header = Header::take(&mut rest)?;
        if header.count > u64::from(most) {
            return Some(header.count);
        }
        rest = header.behind(rest)?;
    }
    None
}

/// What is in front of a series of numbers that are stored as differences.
struct Header {
    block: u64,
    parts: u64,
    count: u64,
}

impl Header {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let [block, parts, count, _first] = [(); 4].map(|()| take_number(bytes));
        let (block, parts, count) = (block?, parts?, count?);
        // Other headers are refused by the crate before it makes room.
        let is_whole = parts > 0 && block % 128 == 0 && block % parts == 0 && block / parts % 32 == 0;
        is_whole.then_some(Self { block, parts, count })
    }

    /// What follows the series: each block is its least difference, a width for each of its parts, and the parts that hold values.
    fn behind<'b>(&self, mut bytes: &'b [u8]) -> Option<&'b [u8]> {
        let mut left = self.count.saturating_sub(1);
        if left == 0 {
            return Some(bytes);
        }
        // Blocks without values end nowhere.
        let values = Some(self.block / self.parts).filter(|values| *values > 0)?;
        while left > 0 {
            take_number(&mut bytes)?;
            let parts = usize::try_from(self.parts).ok()?;
            let (widths, packed) = (bytes.get(..parts)?, bytes.get(parts..)?);
            let mut length = 0_u64;
            let parts = left.div_ceil(values).min(self.parts);
            for width in widths.iter().zip(0..parts).map(|(width, _)| *width) {
                length = length.checked_add(u64::from(width).checked_mul(values)? / 8)?;
            }
            left = left.saturating_sub(parts.saturating_mul(values));
            bytes = packed.get(usize::try_from(length).ok()?..)?;
        }
        Some(bytes)
    }
}

/// The next number of 7 bits a byte, in at most ten of them.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for at in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << (7 * at);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 & 0x7f | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// A series that claims `count` numbers, with blocks of 128 in 4 parts of such widths.
    fn series(count: u64, widths: &[[u8; 4]]) -> Vec<u8> {
        let mut bytes = [128, 4, count, 10].map(number).concat();
        for widths in widths {
            bytes.push(0);
            bytes.extend(widths);
            let length: usize = widths.iter().map(|width| usize::from(*width) * 4).sum();
            bytes.extend(std::iter::repeat_n(0xff, length));
        }
        bytes
    }

    #[test]
    fn test_claims_of_more_lengths_than_values_are_found() {
        for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
            assert_eq!(excess(&series(1 << 40, &[]), encoding, 100), Some(1 << 40));
            assert_eq!(excess(&series(101, &[]), encoding, 100), Some(101));
        }
        assert_eq!(excess(&series(100, &[]), Encoding::DELTA_LENGTH_BYTE_ARRAY, 100), None);
        let empty_blocks = [0, 1, 1 << 40, 0].map(number).concat();
        assert_eq!(
            excess(&empty_blocks, Encoding::DELTA_LENGTH_BYTE_ARRAY, 100),
            Some(1 << 40)
        );
        assert_eq!(excess(&series(1 << 40, &[]), Encoding::PLAIN, 100), None);
    }

    #[test]
    fn test_the_lengths_of_suffixes_are_found_behind_those_of_prefixes() {
        // One number has no block; parts behind the last number have a width, but no bytes.
        let before = [
            series(0, &[]),
            series(1, &[]),
            series(129, &[[1, 0, 7, 3]]),
            series(130, &[[1, 0, 7, 3], [2, 0, 0, 0]]),
        ];
        for prefixes in before {
            let claims = [prefixes.clone(), series(1 << 50, &[])].concat();
            assert_eq!(excess(&claims, Encoding::DELTA_BYTE_ARRAY, 200), Some(1 << 50));
            let fits = [prefixes, series(130, &[])].concat();
            assert_eq!(excess(&fits, Encoding::DELTA_BYTE_ARRAY, 200), None);
        }
        let mut padded = [128, 4, 2, 10].map(number).concat();
        padded.extend([0, 1, 9, 9, 9, 0xff, 0xff, 0xff, 0xff]);
        padded.extend(series(1 << 50, &[]));
        assert_eq!(excess(&padded, Encoding::DELTA_BYTE_ARRAY, 200), Some(1 << 50));
    }

    #[test]
    fn test_any_bytes_are_looked_at_without_an_end_that_is_not_there() {
        let whole = [
            series(300, &[[1, 2, 3, 4], [40, 50, 60, 70], [1, 1, 1, 1]]),
            series(300, &[]),
        ]
        .concat();
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                excess(&damaged, Encoding::DELTA_BYTE_ARRAY, 300);
                excess(&whole[..at], Encoding::DELTA_BYTE_ARRAY, 300);
            }
        }
    }
}
