//! Byte stream split: the first bytes of all values, then the second bytes, and so on.
//!
//! ```text
//! values    a0 a1 a2 a3  b0 b1 b2 b3       stored    a0 b0  a1 b1  a2 b2  a3 b3
//! ```
//!
//! It saves no space itself, but puts similar bytes side by side for the general compression that follows.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::mem::transmute;
use std::ops::Range;

use crate::error::{CodecError, Result};

/// Values that are joined or split at a time, each a byte of every stream.
const STEP: usize = 16;

/// One vector register: 16 bytes of values or of a stream.
type Lane = [u8; STEP];

/// Appends the streams of values of `width_bytes` bytes. Bytes after the last whole value are ignored.
pub fn split(width_bytes: usize, values: &[u8], out: &mut Vec<u8>) {
    let Some(count) = values.len().checked_div(width_bytes) else {
        return;
    };
    let start = out.len();
    out.resize(start.saturating_add(count * width_bytes), 0);
    let streams = out.get_mut(start..).unwrap_or_default();
    // How many values take the vectorised path.
    let fast = match width_bytes {
        2 => split_steps::<2>(values, streams),
        4 => split_steps::<4>(values, streams),
        8 => split_steps::<8>(values, streams),
        _ => 0,
    };
    let rest = values.get(fast * width_bytes..).unwrap_or_default();
    for (byte, stream) in streams.chunks_exact_mut(count.max(1)).enumerate() {
        let stream = stream.get_mut(fast..).unwrap_or_default();
        for (to, value) in stream.iter_mut().zip(rest.chunks_exact(width_bytes)) {
            *to = value.get(byte).copied().unwrap_or_default();
        }
    }
}

/// Appends the values of streams that [`split`] made.
pub fn join(width_bytes: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if width_bytes == 0 || !bytes.len().is_multiple_of(width_bytes) {
        return Err(CodecError::corrupt(format!(
            "expected byte streams of values of {width_bytes} bytes, found {} bytes",
            bytes.len()
        )));
    }
    let start = out.len();
    out.reserve(bytes.len());
    let fast = match width_bytes {
        2 => join_steps::<2>(bytes, out),
        4 => join_steps::<4>(bytes, out),
        8 => join_steps::<8>(bytes, out),
        _ => 0,
    };
    out.resize(start.saturating_add(bytes.len()), 0);
    let rest = out.get_mut(start + fast * width_bytes..).unwrap_or_default();
    for (byte, stream) in bytes.chunks_exact((bytes.len() / width_bytes).max(1)).enumerate() {
        let stream = stream.get(fast..).unwrap_or_default();
        for (value, from) in rest.chunks_exact_mut(width_bytes).zip(stream) {
            if let Some(to) = value.get_mut(byte) {
                *to = *from;
            }
        }
    }
    Ok(())
}

/// Appends the values of `range` of streams that [`split`] made, without joining the others.
pub fn join_range(width_bytes: usize, bytes: &[u8], range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    let count = bytes.len().checked_div(width_bytes).unwrap_or(0);
    if width_bytes == 0 || !bytes.len().is_multiple_of(width_bytes) || range.start > range.end || range.end > count {
        return Err(CodecError::corrupt(format!(
            "expected byte streams of values {} to {} of {width_bytes} bytes, found {} bytes",
            range.start,
            range.end,
            bytes.len()
        )));
    }
    out.reserve(range.len().saturating_mul(width_bytes));
    for value in range {
        let streams = bytes.chunks_exact(count);
        out.extend(streams.map(|stream| stream.get(value).copied().unwrap_or_default()));
    }
    Ok(())
}

/// Appends all whole steps of `WIDTH` streams, joined; returns how many values that are. `WIDTH` is a power of two.
fn join_steps<const WIDTH: usize>(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let count = bytes.len() / WIDTH;
    let mut streams: [&[Lane]; WIDTH] = [&[]; WIDTH];
    for (stream, bytes) in streams.iter_mut().zip(bytes.chunks_exact(count.max(1))) {
        *stream = bytes.as_chunks().0;
    }
    let (steps, start) = (count / STEP, out.len());
    out.reserve(steps * STEP * WIDTH);
    let to = out.as_mut_ptr().wrapping_add(start).cast::<[Lane; WIDTH]>();
    for step in 0..steps {
        let mut lanes = [[0; STEP]; WIDTH];
        for (lane, stream) in lanes.iter_mut().zip(&streams) {
            *lane = stream.get(step).copied().unwrap_or_default();
        }
        // Each round interleaves the bytes of lane i with those of lane i + WIDTH / 2: a perfect shuffle, log2(WIDTH) times.
        let mut round = 1;
        while round < WIDTH {
            let (first, second) = lanes.split_at(WIDTH / 2);
            let mut shuffled = [[0; STEP]; WIDTH];
            for (both, (first, second)) in shuffled.as_chunks_mut().0.iter_mut().zip(first.iter().zip(second)) {
                *both = in_turn(first, second);
            }
            lanes = shuffled;
            round *= 2;
        }
        // SAFETY: `steps` times the `STEP * WIDTH` bytes of `lanes` are reserved from `to` on, and `step` is below `steps`; bytes need no
        // alignment.
        unsafe { to.add(step).write(lanes) };
    }
    // SAFETY: so many bytes were reserved behind `start`, which is the length, and each was written.
    unsafe { out.set_len(start + steps * STEP * WIDTH) };
    steps * STEP
}

/// The inverse of [`join_steps`].
fn split_steps<const WIDTH: usize>(values: &[u8], streams: &mut [u8]) -> usize {
    let count = streams.len() / WIDTH;
    let mut streams = streams.chunks_exact_mut(count.max(1));
    let mut streams: [&mut [Lane]; WIDTH] =
        std::array::from_fn(|_| streams.next().map_or(&mut [][..], |bytes| bytes.as_chunks_mut().0));
    let steps = values.as_chunks::<STEP>().0.as_chunks::<WIDTH>().0;
    for (step, values) in steps.iter().enumerate() {
        let mut lanes = *values;
        let mut round = 1;
        while round < WIDTH {
            let mut sorted = [[0; STEP]; WIDTH];
            let (first, second) = sorted.split_at_mut(WIDTH / 2);
            for (both, (first, second)) in lanes.as_chunks().0.iter().zip(first.iter_mut().zip(second)) {
                [*first, *second] = even_and_odd(both);
            }
            lanes = sorted;
            round *= 2;
        }
        for (stream, lane) in streams.iter_mut().zip(lanes) {
            if let Some(to) = stream.get_mut(step) {
                *to = lane;
            }
        }
    }
    steps.len() * STEP
}

/// Interleaves the bytes of two lanes.
#[inline(always)]
fn in_turn(first: &Lane, second: &Lane) -> [Lane; 2] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_unpackhi_epi8, _mm_unpacklo_epi8};
        // SAFETY: a lane and a register are 16 bytes each, and any bytes are valid for both.
        let [first, second] = unsafe { transmute::<[Lane; 2], [__m128i; 2]>([*first, *second]) };
        // SAFETY: as above; SSE2, which the two need, is part of x86-64.
        unsafe {
            transmute::<[__m128i; 2], [Lane; 2]>([_mm_unpacklo_epi8(first, second), _mm_unpackhi_epi8(first, second)])
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut both = [[0; STEP]; 2];
        let places = both.as_flattened_mut().as_chunks_mut::<2>().0;
        for (place, (first, second)) in places.iter_mut().zip(first.iter().zip(second)) {
            *place = [*first, *second];
        }
        both
    }
}

/// The inverse of [`in_turn`].
#[inline(always)]
fn even_and_odd(both: &[Lane; 2]) -> [Lane; 2] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_and_si128, _mm_packus_epi16, _mm_set1_epi16, _mm_srli_epi16};
        // SAFETY: a lane and a register are 16 bytes each, and any bytes are valid for both.
        let [low, high] = unsafe { transmute::<[Lane; 2], [__m128i; 2]>(*both) };
        // SAFETY: as above; SSE2, which all of them need, is part of x86-64.
        unsafe {
            let mask = _mm_set1_epi16(0xff);
            let even = _mm_packus_epi16(_mm_and_si128(low, mask), _mm_and_si128(high, mask));
            let odd = _mm_packus_epi16(_mm_srli_epi16::<8>(low), _mm_srli_epi16::<8>(high));
            transmute::<[__m128i; 2], [Lane; 2]>([even, odd])
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut lanes = [[0; STEP]; 2];
        let pairs = both.as_flattened().as_chunks::<2>().0;
        let [even, odd] = &mut lanes;
        for (pair, (even, odd)) in pairs.iter().zip(even.iter_mut().zip(odd)) {
            [*even, *odd] = *pair;
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_streams_come_back() {
        for width in [1, 2, 4, 8, 3] {
            for count in [0_usize, 1, 5, 1024] {
                let values: Vec<u8> = (0..count * width).map(|i| (i * 7) as u8).collect();
                let mut streams = Vec::new();
                split(width, &values, &mut streams);
                assert_eq!(
                    streams.get(1),
                    if count > 1 { values.get(width) } else { values.get(1) }
                );
                let mut out = vec![5];
                join(width, &streams, &mut out).unwrap();
                assert_eq!(out[1..], values);
                for range in [0..count, count / 3..count / 2, count..count] {
                    let mut some = vec![5];
                    join_range(width, &streams, range.clone(), &mut some).unwrap();
                    assert_eq!(some[1..], values[range.start * width..range.end * width]);
                }
                assert!(join_range(width, &streams, 0..count + 1, &mut Vec::new()).is_err());
            }
        }
        assert!(join_range(4, &[0; 7], 0..1, &mut Vec::new()).is_err());
        assert!(join_range(0, &[], 0..0, &mut Vec::new()).is_err());
        assert!(join(4, &[0; 7], &mut Vec::new()).is_err());
        assert!(join(0, &[], &mut Vec::new()).is_err());
    }
}
