//! One fuzzing body per kernel.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A body panics when a kernel is wrong.

use super::input::Input;
use crate::bitpack::{self, Word};
use crate::{baseline, bit_stream, byte_stream_split, ends, fsst, general, inline_bitpack, outline_bitpack};
use crate::{packed_rows, rle};

/// A name and the body.
pub type Target = (&'static str, fn(&[u8]));

/// All bodies.
pub const TARGETS: &[Target] = &[
    ("bit_stream", decode_bit_stream),
    ("bitpack", unpack),
    ("byte_stream_split", join_streams),
    ("ends", decode_ends),
    ("fsst", decode_fsst),
    ("fsst_round_trip", fsst_round_trip),
    ("general", decompress),
    ("general_round_trip", general_round_trip),
    ("inline_bitpack", decode_inline),
    ("outline_bitpack", decode_outline),
    ("packed_rows", gather_and_scatter),
    ("rle", decode_runs),
];

/// Runs the body of that name. Panics if a kernel is wrong, or if there is no such body.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(target, _)| *target == name);
    let (_, body) = target.expect("a body of that name");
    body(data);
}

/// Asserts that `values` of `bits` were appended after one byte, or nothing in case of an error.
fn check(out: &[u8], is_ok: bool, bits: u64, values: usize) {
    let expected = if is_ok {
        1 + values * usize::try_from(bits / 8).expect("below 65")
    } else {
        1
    };
    assert_eq!(out.len(), expected, "{values} values of {bits} bits, {is_ok}");
}

fn decode_bit_stream(data: &[u8]) {
    let mut input = Input(data);
    let (bits, width, signed) = (input.bits(), input.byte() % 72, input.byte() % 2 == 1);
    let (first, count, packed) = (input.large_number(), input.large_number(), input.0);
    let mut out = vec![0];
    let decoded = bit_stream::decode(bits, width.into(), signed, packed, first as u64, count, &mut out);
    check(&out, decoded.is_ok(), bits, count);
    if decoded.is_ok() {
        let size = out[1..].len().checked_div(count).unwrap_or(0);
        let plain = baseline::decode_bit_stream(width.into(), signed, packed, first, count);
        let plain: Vec<u8> = plain
            .iter()
            .flat_map(|value| value.to_le_bytes()[..size].to_vec())
            .collect();
        assert_eq!(out[1..], plain);
    }
}

fn unpack(data: &[u8]) {
    fn unpack<W: Word>(width: usize, from: usize, to: usize, packed: &[u8]) {
        let mut values = vec![W::default(); bitpack::BLOCK];
        if bitpack::unpack_block::<W>(width, packed, &mut values).is_err() {
            assert!(packed.len() != bitpack::packed_size(width) || width > W::BITS);
            return;
        }
        let plain = baseline::unpack(W::BITS, width, packed);
        assert!(W::words(&plain)
            .iter()
            .map(|bytes| W::from_bytes(*bytes))
            .eq(values.iter().copied()));
        let mut again = Vec::new();
        bitpack::pack_block(width, &values, &mut again);
        assert_eq!(again, packed);
        let mut some = vec![0];
        let ranged = bitpack::unpack_range::<W>(width, packed, from..to, &mut some);
        assert_eq!(ranged.is_ok(), from <= to && to <= bitpack::BLOCK);
        if ranged.is_ok() {
            assert_eq!(some[1..], plain[from * W::BITS / 8..to * W::BITS / 8]);
        }
    }
    let mut input = Input(data);
    let (bits, width) = (input.bits(), usize::from(input.byte() % 72));
    let (from, to) = (input.number() % 1100, input.number() % 1100);
    // Most inputs get exactly the right length, so that they pass the length check.
    let length = bitpack::packed_size(width) + usize::from(input.byte() == 1);
    let mut packed = input.0.to_vec();
    packed.resize(length, data.last().copied().unwrap_or(0));
    match bits {
        8 => unpack::<u8>(width, from, to, &packed),
        16 => unpack::<u16>(width, from, to, &packed),
        32 => unpack::<u32>(width, from, to, &packed),
        _ => unpack::<u64>(width, from, to, &packed),
    }
}

fn join_streams(data: &[u8]) {
    let mut input = Input(data);
    let width = usize::from(input.byte() % 20);
    let (mut joined, mut split) = (vec![0], vec![0]);
    let is_ok = byte_stream_split::join(width, input.0, &mut joined).is_ok();
    assert_eq!(is_ok, width > 0 && input.0.len() % width == 0);
    if is_ok {
        assert_eq!(joined[1..], baseline::join_streams(width, input.0));
        byte_stream_split::split(width, &joined[1..], &mut split);
        assert_eq!(split[1..], *input.0);
    } else {
        byte_stream_split::split(width, input.0, &mut split);
        assert_eq!(split.len() - 1, input.0.len().checked_div(width).unwrap_or(0) * width);
    }
}

fn decode_ends(data: &[u8]) {
    let mut input = Input(data);
    let (start, adjustment) = (input.large_number() as u64, input.large_number() as u64);
    let (mut offsets, mut large) = (vec![0_i32], vec![0_i64]);
    let decoded = ends::decode_ends(input.0, start, adjustment, &mut offsets);
    let decoded_large = ends::decode_ends(input.0, start, adjustment, &mut large);
    assert!(decoded_large.is_ok() || decoded.is_err());
    if decoded.is_ok() {
        assert!(offsets.is_sorted());
        assert!(offsets
            .iter()
            .map(|offset| i64::from(*offset))
            .eq(large.iter().copied()));
    }
    if decoded_large.is_ok() {
        assert!(large.is_sorted());
        assert_eq!(large.len(), 1 + input.0.len() / 8);
    }
    let mut flags = 0;
    ends::decode_validity(input.0, adjustment, |_| flags += 1);
    assert_eq!(flags, input.0.len() / 8);
}

fn decode_fsst(data: &[u8]) {
    let mut input = Input(data);
    let length = input.number();
    let table = input.bytes(length);
    let Ok(decoder) = fsst::Decoder::new(table) else { return };
    let mut out = vec![0];
    let decoded = decoder.decode(input.0, &mut out);
    // Bounds of values taken from the codes themselves: in any order, inside and outside of the codes.
    let bounds = input.0.iter().scan(0_usize, |bound, byte| {
        *bound = (*bound + usize::from(*byte)) % (input.0.len() + 2);
        Some(*bound)
    });
    let (mut joined, mut ends) = (vec![0], Vec::new());
    let told = decoder.decode_values(input.0, bounds, &mut joined, |end| ends.push(end));
    assert!(told.is_ok() || joined.len() == 1);
    if told.is_ok() {
        assert_eq!(joined, out);
        assert!(
            ends.len() == input.0.len() && ends.is_sorted() && ends.iter().all(|end| (1..=out.len()).contains(end))
        );
    }
    if table[3] & 1 == 0 {
        assert_eq!(out[1..], *input.0);
        return;
    }
    let count = usize::from(table[0]);
    let symbols = table[8..8 + 8 * count].chunks(8).zip(&table[8 + 8 * count..]);
    let symbols: Vec<&[u8]> = symbols
        .map(|(symbol, length)| &symbol[..usize::from(*length)])
        .collect();
    match baseline::decode_fsst(&symbols, input.0) {
        Some(plain) => assert_eq!(out[1..], plain),
        None => assert!(decoded.is_err() && out.len() == 1),
    }
}

fn fsst_round_trip(data: &[u8]) {
    let mut input = Input(data);
    let trained = usize::from(input.byte());
    let mut values = Vec::new();
    while !input.0.is_empty() {
        let length = usize::from(input.byte());
        values.push(input.bytes(length));
    }
    let encoder = fsst::Encoder::train(&values[..trained.min(values.len())]);
    let decoder = fsst::Decoder::new(&encoder.symbol_table()).expect("a table of ours");
    let (mut offsets, mut codes, mut ends) = (vec![0], Vec::new(), Vec::new());
    offsets.extend(values.iter().scan(0, |end, value| {
        *end += value.len();
        Some(*end)
    }));
    encoder.encode_values(&values.concat(), &offsets, &mut codes, &mut ends);
    let (mut all, mut decoded) = (Vec::new(), vec![0]);
    let bounds = ends.iter().copied();
    decoder
        .decode_values(&codes, bounds, &mut all, |end| decoded.push(end))
        .expect("codes of ours");
    assert_eq!((all, decoded), (values.concat(), offsets));
    for value in values {
        let (mut codes, mut out) = (vec![0], vec![0]);
        encoder.encode(value, &mut codes);
        assert!(codes.len() <= 1 + 2 * value.len());
        decoder.decode(&codes[1..], &mut out).expect("codes of ours");
        assert_eq!(out[1..], *value);
    }
}

fn decompress(data: &[u8]) {
    let mut input = Input(data);
    let scheme = ["zstd", "lz4", "snappy"][usize::from(input.byte() % 8).min(2) % 3];
    let limit = input.number();
    if let Ok(out) = general::decompress(scheme, input.0, limit) {
        assert!(out.len() <= limit);
    }
}

fn general_round_trip(data: &[u8]) {
    let mut input = Input(data);
    let level = i32::from(input.byte() % 8) - 3;
    for scheme in ["zstd", "lz4"] {
        let mut out = vec![0];
        general::compress(scheme, Some(level), input.0, &mut out).expect("a scheme that there is");
        assert!(out.len() <= 64 + input.0.len() + input.0.len() / 64);
        let back = general::decompress(scheme, &out[1..], usize::MAX).expect("bytes of ours");
        assert_eq!(back, input.0);
    }
}

fn decode_inline(data: &[u8]) {
    let mut input = Input(data);
    let (bits, count, from) = (input.bits(), input.number() % 1100, input.number() % 1100);
    let mut out = vec![0];
    let decoded = inline_bitpack::decode(bits, input.0, count, &mut out);
    check(&out, decoded.is_ok(), bits, count);
    let mut some = vec![0];
    let ranged = inline_bitpack::decode_range(bits, input.0, from..count, &mut some);
    // Decoding no values reads nothing, so that any width is accepted.
    if decoded.is_ok() && count > 0 && from <= count {
        assert!(ranged.is_ok());
        let size = out[1..].len().checked_div(count).unwrap_or(0);
        assert_eq!(some[1..], out[1 + from * size..]);
    }
    let values = &input.0[..input.0.len().min(1024) / 8 * 8];
    let (mut chunk, mut back) = (Vec::new(), Vec::new());
    inline_bitpack::encode(64, values, &mut chunk);
    assert_eq!(chunk.len(), inline_bitpack::encoded_size(64, values));
    inline_bitpack::decode(64, &chunk, values.len() / 8, &mut back).expect("a chunk of ours");
    assert_eq!(back, values);
}

fn decode_outline(data: &[u8]) {
    let mut input = Input(data);
    let (bits, width, count) = (input.bits(), u64::from(input.byte() % 72), input.large_number());
    let mut out = vec![0];
    let decoded = outline_bitpack::decode(bits, width, input.0, count, &mut out);
    check(&out, decoded.is_ok(), bits, count);
    if decoded.is_ok() {
        let mut again = Vec::new();
        outline_bitpack::encode(bits, width, &out[1..], &mut again);
        // Whole blocks have only one packed form; a tail may be padded where esker writes it raw.
        let whole = count / bitpack::BLOCK * bitpack::packed_size(usize::try_from(width).expect("below 72"));
        assert_eq!(again[..whole], input.0[..whole]);
    }
}

fn gather_and_scatter(data: &[u8]) {
    let mut input = Input(data);
    let (row_width, offset, width) = (
        usize::from(input.byte()),
        usize::from(input.byte()),
        usize::from(input.byte()),
    );
    let values = packed_rows::gather_field(input.0, row_width, offset, width);
    let rows = input.0.len().checked_div(row_width).unwrap_or(0);
    if offset + width <= row_width {
        assert_eq!(values.len(), rows * width);
        let mut back = input.0.to_vec();
        packed_rows::scatter_field(&values, width, &mut back, row_width, offset);
        assert_eq!(back, input.0);
    }
}

fn decode_runs(data: &[u8]) {
    let mut input = Input(data);
    let (bits, length_bits, count) = (input.bits(), input.bits(), input.number());
    let num_lengths = input.number();
    let (lengths, values) = (input.bytes(num_lengths), input.0);
    let mut out = vec![0];
    let decoded = rle::decode(bits, values, lengths, length_bits, count, &mut out);
    check(&out, decoded.is_ok(), bits, count);
    if decoded.is_ok() && length_bits == 8 {
        let size = usize::try_from(bits / 8).expect("below 65");
        assert_eq!(out[1..], baseline::decode_runs(size, values, lengths, count));
    }
    let (mut starts, mut lengths, mut back) = (Vec::new(), Vec::new(), Vec::new());
    rle::encode(8, values, &mut starts, &mut lengths);
    rle::decode(8, &starts, &lengths, 8, values.len(), &mut back).expect("runs of ours");
    assert_eq!(back, values);
    let cut = lengths.iter().filter(|length| **length == 255).count();
    assert!(rle::count_runs(8, values) <= starts.len() && starts.len() <= rle::count_runs(8, values) + cut);
}
