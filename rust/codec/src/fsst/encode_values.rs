//! Encodes many adjacent values at once.
//!
//! Each symbol depends on the one before it, and finding one has a latency of some twenty cycles. So a block of values is cut into parts of
//! the same size, which are encoded in lockstep, a symbol of each in turn. No step branches on how much of a value is left: the bytes
//! beyond its end are masked by the terminator, a byte that no symbol of two or more bytes contains.
#![allow(unsafe_code)]

use std::ops::Range;

use super::encode::Encoder;
use super::matcher::Matcher;

/// Parts that are encoded side by side.
const LANES: usize = 4;

/// Bytes of a part.
const PART: usize = 7 * 1024 + 832;

/// By the number of bytes left: a mask of those of the next eight that lie beyond the end.
#[allow(clippy::indexing_slicing)] // Evaluated when it is compiled.
const BEYOND: [u64; 9] = {
    let mut beyond = [u64::MAX; 9];
    let mut left = 1;
    while left < 8 {
        beyond[left] = u64::MAX << (8 * left);
        left += 1;
    }
    beyond[8] = 0;
    beyond
};

/// The state of one part.
struct Lane {
    /// Where the next symbol starts, in the values' bytes.
    at: usize,
    /// Where the value ends, or the part if it ends earlier.
    end: usize,
    /// Where the part ends.
    last: usize,
    /// The values that end in it, as far as they are encoded.
    first_value: usize,
    value: usize,
    /// Bytes of codes written.
    written: usize,
}

/// The codes of a part: each byte may become two.
type Codes = [u8; 2 * PART + 2];

/// The values, and where their codes end.
struct Run<'a> {
    bytes: &'a [u8],
    bounds: &'a [usize],
    ends: &'a mut [usize],
    matcher: &'a Matcher,
    terminator: u64,
}

impl Encoder {
    /// Appends the codes of adjacent values: value `i` is `bytes[offsets[i]..offsets[i + 1]]`. Appends to `ends` where the codes of each
    /// end in `out`. A value whose offsets fall or lie beyond the bytes is empty.
    pub fn encode_values(&self, bytes: &[u8], offsets: &[usize], out: &mut Vec<u8>, ends: &mut Vec<usize>) {
        let Some((first, bounds)) = offsets.split_first() else {
            return;
        };
        let ordered = offsets.is_sorted() && offsets.last().is_some_and(|last| *last <= bytes.len());
        let Some(terminator) = self.terminator().filter(|_| ordered) else {
            for (start, end) in offsets.iter().zip(bounds) {
                self.encode(bytes.get(*start..*end).unwrap_or_default(), out);
                ends.push(out.len());
            }
            return;
        };
        let base = ends.len();
        ends.resize(base + bounds.len(), out.len());
        let mut run = Run {
            bytes,
            bounds,
            ends: ends.get_mut(base..).unwrap_or_default(),
            matcher: self.matcher(),
            terminator: u64::from_le_bytes([terminator; 8]),
        };
        let mut codes: Box<[Codes; LANES]> = Box::new([[0; 2 * PART + 2]; LANES]);
        let (mut at, last) = (*first, bounds.last().copied().unwrap_or(*first));
        let mut value = 0;
        while at < last {
            let part = PART.min((last - at).div_ceil(LANES));
            let lanes: [Lane; LANES] = std::array::from_fn(|_| {
                let rest = bounds.get(value..).unwrap_or_default();
                value += rest.partition_point(|end| *end <= at);
                let next = (at + part).min(last);
                let lane = Lane::new(bounds, at..next, value);
                at = next;
                lane
            });
            for (lane, codes) in run.encode(lanes, &mut codes).iter().zip(codes.iter()) {
                let encoded = run.ends.get_mut(lane.first_value..lane.value).unwrap_or_default();
                encoded.iter_mut().for_each(|end| *end += out.len());
                out.extend_from_slice(codes.get(..lane.written).unwrap_or_default());
                value = lane.value;
            }
        }
    }
}

impl Lane {
    fn new(bounds: &[usize], part: Range<usize>, value: usize) -> Lane {
        Lane {
            at: part.start,
            end: bounds.get(value).map_or(part.end, |end| part.end.min(*end)),
            last: part.end,
            first_value: value,
            value,
            written: 0,
        }
    }

    /// The least number of steps to the end of the part: each takes at most eight bytes.
    fn steps(&self) -> usize {
        (self.last - self.at) / 8
    }
}

impl Run<'_> {
    fn encode(&mut self, lanes: [Lane; LANES], codes: &mut [Codes; LANES]) -> [Lane; LANES] {
        let [mut a, mut b, mut c, mut d] = lanes;
        let [to_a, to_b, to_c, to_d] = codes;
        loop {
            let steps = a.steps().min(b.steps()).min(c.steps()).min(d.steps());
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                self.step(&mut a, to_a);
                self.step(&mut b, to_b);
                self.step(&mut c, to_c);
                self.step(&mut d, to_d);
            }
        }
        for (lane, to) in [(&mut a, to_a), (&mut b, to_b), (&mut c, to_c), (&mut d, to_d)] {
            while lane.at < lane.last {
                self.step(lane, to);
            }
        }
        [a, b, c, d]
    }

    /// Encodes the next symbol of a lane that is not at its end.
    #[inline(always)]
    fn step(&mut self, lane: &mut Lane, codes: &mut Codes) {
        let beyond = BEYOND.get((lane.end - lane.at).min(8)).copied().unwrap_or(0);
        let text = self.word(lane.at);
        let found = self.matcher.next((text & !beyond) | (self.terminator & beyond));
        debug_assert!(lane.written + 2 <= codes.len());
        // SAFETY: each step before wrote at most two codes for each byte that it moved `at` on by; the part has `PART` bytes, of which at
        // least one is left, and `codes` has room for two a byte.
        unsafe {
            let to = codes.as_mut_ptr().add(lane.written);
            to.write(found.code());
            to.add(1).write(text.to_le_bytes()[0]);
        }
        lane.written += found.size();
        lane.at += found.length();
        if lane.at >= lane.end {
            (lane.end, lane.value) = self.next_value(lane.at, lane.last, lane.value, lane.written);
        }
    }

    /// Eight bytes from `at` on, zeros beyond the last.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match rest.first_chunk::<8>() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => super::matcher::first_word(rest),
        }
    }

    /// Notes the values that end at `at`; returns where the next one ends, and which that is.
    #[inline(never)]
    fn next_value(&mut self, at: usize, last: usize, value: usize, written: usize) -> (usize, usize) {
        let mut value = value;
        while let Some(bound) = self.bounds.get(value) {
            if *bound > at {
                return (last.min(*bound), value);
            }
            if let Some(end) = self.ends.get_mut(value) {
                *end = written;
            }
            value += 1;
        }
        (last, value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    fn check(encoder: &Encoder, values: &[Vec<u8>]) {
        let decoder = Decoder::new(&encoder.symbol_table()).unwrap();
        let mut offsets = vec![3];
        for value in values {
            offsets.push(offsets[offsets.len() - 1] + value.len());
        }
        let bytes = [b"???".as_slice(), &values.concat()].concat();
        let (mut out, mut ends) = (b"<".to_vec(), vec![7]);
        encoder.encode_values(&bytes, &offsets, &mut out, &mut ends);
        assert_eq!(ends.len(), values.len() + 1);
        let (mut start, mut one_by_one) = (1, Vec::new());
        for (value, end) in values.iter().zip(&ends[1..]) {
            let mut decoded = Vec::new();
            decoder.decode(&out[start..*end], &mut decoded).unwrap();
            assert_eq!(&decoded, value);
            encoder.encode(value, &mut one_by_one);
            start = *end;
        }
        assert_eq!(start, out.len());
        let cuts = bytes.len() / PART + LANES + 1;
        assert!(
            out.len() <= one_by_one.len() + 8 * cuts,
            "{} {}",
            out.len(),
            one_by_one.len()
        );
    }

    #[test]
    fn test_values_of_all_lengths_come_back() {
        let text = |i: usize| format!("https://example.org/{}?q={}", i * 7919 % 1000, "x".repeat(i % 40)).into_bytes();
        let urls: Vec<Vec<u8>> = (0..3000)
            .map(text)
            .map(|value| if value.len() % 3 == 0 { Vec::new() } else { value })
            .collect();
        let long: Vec<Vec<u8>> = vec![text(1).repeat(3000), Vec::new(), text(2).repeat(900), Vec::new()];
        let short: Vec<Vec<u8>> = (0..5000_usize).map(|i| vec![b'a' + (i % 3) as u8; i % 3]).collect();
        let bytes: Vec<Vec<u8>> = (0..9000_usize)
            .map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes().to_vec())
            .collect();
        for values in [urls, long, short, bytes, Vec::new(), vec![Vec::new(); 5], vec![vec![1]]] {
            let samples: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            check(&Encoder::train(&samples), &values);
            check(&Encoder::train(&[]), &values);
        }
    }

    #[test]
    fn test_offsets_that_fall_hold_nothing() {
        let encoder = Encoder::train(&[b"abcabc"]);
        let (mut out, mut ends) = (Vec::new(), Vec::new());
        encoder.encode_values(b"abc", &[0, 2, 1, 9], &mut out, &mut ends);
        assert_eq!((ends.len(), ends[0] > 0, ends[1] == ends[2]), (3, true, true));
    }
}
