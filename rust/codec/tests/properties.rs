//! Every kernel against its scalar baseline, on any values; and on any bytes, which give values or an error.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use esker_codec::{
    baseline, bit_stream, bitpack, byte_stream_split, fsst, general, inline_bitpack, outline_bitpack, rle,
};
use proptest::collection::vec;
use proptest::prelude::*;

const BITS: [usize; 4] = [8, 16, 32, 64];

fn bytes(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), length)
}

/// The values with their high bits cleared, so that all widths occur.
fn masked(bits: usize, width: usize, mut values: Vec<u8>) -> Vec<u8> {
    let size = bits / 8;
    values.truncate(values.len() / size * size);
    for value in values.chunks_mut(size) {
        let mut word = [0; 8];
        word[..size].copy_from_slice(value);
        let kept = u64::from_le_bytes(word) & if width == 0 { 0 } else { u64::MAX >> (64 - width) };
        value.copy_from_slice(&kept.to_le_bytes()[..size]);
    }
    values
}

fn words<W: bitpack::Word>(bytes: &[u8]) -> Vec<W> {
    W::words(bytes).iter().map(|bytes| W::from_bytes(*bytes)).collect()
}

fn check_block<W: bitpack::Word>(width: usize, values: &[u8], range: std::ops::Range<usize>) {
    let (bits, size) = (W::BITS, W::BITS / 8);
    let mut packed = vec![3];
    bitpack::pack_block::<W>(width, &words(values), &mut packed);
    assert_eq!(packed[1..], baseline::pack(bits, width, values));
    let expected = masked(bits, width, values.to_vec());
    assert_eq!(baseline::unpack(bits, width, &packed[1..]), expected);
    let mut out = vec![W::default(); 1024];
    // From an unaligned address, too.
    bitpack::unpack_block(width, &packed[1..], &mut out).unwrap();
    assert!(out == words::<W>(&expected));
    let mut some = vec![9];
    bitpack::unpack_range::<W>(width, &packed[1..], range.clone(), &mut some).unwrap();
    assert_eq!(some[1..], expected[range.start * size..range.end * size]);
}

#[test]
fn test_blocks_of_all_widths_equal_the_plain_ones() {
    let values: Vec<u8> = (0..8192_u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect();
    for bits in BITS {
        for width in 0..=bits {
            let values = &values[..1024 * bits / 8];
            match bits {
                8 => check_block::<u8>(width, values, 0..1024),
                16 => check_block::<u16>(width, values, 0..1024),
                32 => check_block::<u32>(width, values, 0..1024),
                _ => check_block::<u64>(width, values, 0..1024),
            }
        }
    }
}

/// As many cases as proptest's environment variable says, or 64.
fn config() -> ProptestConfig {
    ProptestConfig::with_cases(std::env::var("PROPTEST_CASES").map_or(64, |cases| cases.parse().unwrap()))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn test_blocks_of_any_values_equal_the_plain_ones(
        bits in prop::sample::select(BITS.to_vec()), width in 0..=64_usize, values in bytes(8192), from in 0..=1024_usize, to in 0..=1024_usize
    ) {
        let (width, range) = (width.min(bits), from.min(to)..from.max(to));
        let values = &values[..128 * bits];
        match bits {
            8 => check_block::<u8>(width, values, range),
            16 => check_block::<u16>(width, values, range),
            32 => check_block::<u32>(width, values, range),
            _ => check_block::<u64>(width, values, range),
        }
    }

    #[test]
    fn test_packed_chunks_come_back(bits in prop::sample::select(BITS.to_vec()), width in 0..=64_usize, values in bytes(0..20000)) {
        let width = width.min(bits);
        let (values, size) = (masked(bits, width, values), bits / 8);
        let bits = bits as u64;
        let mut packed = Vec::new();
        outline_bitpack::encode(bits, width as u64, &values, &mut packed);
        prop_assert!(packed.len() <= values.len() + 128 * width.max(1));
        let mut out = Vec::new();
        outline_bitpack::decode(bits, width.max(1) as u64, &packed, values.len() / size, &mut out).unwrap();
        prop_assert_eq!(&out, &values);
        let mut chunk = Vec::new();
        let values = &values[..values.len().min(1024 * size)];
        inline_bitpack::encode(bits, values, &mut chunk);
        prop_assert_eq!(chunk.len(), inline_bitpack::encoded_size(bits, values));
        let mut out = Vec::new();
        inline_bitpack::decode(bits, &chunk, values.len() / size, &mut out).unwrap();
        prop_assert_eq!(&out, values);
    }

    #[test]
    fn test_runs_equal_the_plain_ones(
        bits in prop::sample::select(BITS.to_vec()), runs in vec((any::<u64>(), 1..700_usize), 0..30), cut in 0..20_usize
    ) {
        let size = bits / 8;
        let values: Vec<u8> = runs.iter().flat_map(|(value, n)| value.to_le_bytes()[..size].repeat(*n)).collect();
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        rle::encode(bits as u64, &values, &mut starts, &mut lengths);
        let count = (values.len() / size).saturating_sub(cut);
        let mut out = vec![1];
        rle::decode(bits as u64, &starts, &lengths, 8, count, &mut out).unwrap();
        prop_assert_eq!(&out[1..], &values[..count * size]);
        prop_assert_eq!(baseline::decode_runs(size, &starts, &lengths, count), &values[..count * size]);
        let changes = values.chunks(size).zip(values.chunks(size).skip(1)).filter(|(a, b)| a != b).count();
        prop_assert_eq!(rle::count_runs(bits as u64, &values), changes + usize::from(!values.is_empty()));
    }

    #[test]
    fn test_byte_streams_equal_the_plain_ones(width in 1..=9_usize, mut values in bytes(0..3000)) {
        values.truncate(values.len() / width * width);
        let (mut split, mut joined) = (vec![1], vec![2]);
        byte_stream_split::split(width, &values, &mut split);
        prop_assert_eq!(&split[1..], baseline::split_streams(width, &values));
        byte_stream_split::join(width, &split[1..], &mut joined).unwrap();
        prop_assert_eq!(&joined[1..], &values);
        prop_assert_eq!(baseline::join_streams(width, &split[1..]), values);
    }

    #[test]
    fn test_bit_streams_equal_the_plain_ones(
        bits in prop::sample::select(BITS.to_vec()), width in 1..=64_usize, packed in bytes(0..600), first in 0..70_usize, signed: bool
    ) {
        let width = width.min(bits);
        let count = (packed.len() * 8).saturating_sub(first) / width;
        let mut out = Vec::new();
        let found = bit_stream::decode(bits as u64, width as u64, signed, &packed, first as u64, count, &mut out);
        prop_assert_eq!(found.is_ok(), first <= packed.len() * 8);
        let plain = baseline::decode_bit_stream(width, signed, &packed, first, if found.is_ok() { count } else { 0 });
        let expected: Vec<u8> = plain.iter().flat_map(|value| value.to_le_bytes()[..bits / 8].to_vec()).collect();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn test_strings_come_back_from_codes(values in vec(vec(prop::sample::select(b"abcde/:. \0\xff".to_vec()), 0..60), 0..200), other in bytes(0..2000)) {
        let mut values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let encoder = fsst::Encoder::train(&values);
        values.push(&other);
        let table = encoder.symbol_table();
        let decoder = fsst::Decoder::new(&table).unwrap();
        let count = usize::from(table[0]);
        let symbols: Vec<&[u8]> = (0..count).map(|i| &table[8 + 8 * i..][..usize::from(table[8 + 8 * count + i])]).collect();
        let mut offsets = vec![0];
        offsets.extend(values.iter().scan(0, |end, value| { *end += value.len(); Some(*end) }));
        let (mut codes, mut ends, mut all, mut decoded) = (vec![7], vec![], vec![], vec![0]);
        encoder.encode_values(&values.concat(), &offsets, &mut codes, &mut ends);
        decoder.decode_values(&codes[1..], ends.iter().map(|end| end - 1), &mut all, |end| decoded.push(end)).unwrap();
        prop_assert_eq!((all, decoded), (values.concat(), offsets));
        for value in values {
            let (mut codes, mut out) = (vec![7], vec![8]);
            encoder.encode(value, &mut codes);
            decoder.decode(&codes[1..], &mut out).unwrap();
            prop_assert_eq!(&out[1..], value);
            prop_assert_eq!(baseline::decode_fsst(&symbols, &codes[1..]).unwrap(), value);
        }
    }

    #[test]
    fn test_any_codes_give_what_the_plain_decoder_gives(count in 0..=255_usize, table in bytes(8 * 255), codes in bytes(0..900)) {
        let mut header = vec![count as u8, 0, 0, 1];
        header.extend(b"TSSF");
        let lengths: Vec<u8> = table[..count].iter().map(|byte| 1 + byte % 8).collect();
        let decoder = fsst::Decoder::new(&[&header, &table[..8 * count], &lengths].concat()).unwrap();
        let symbols: Vec<&[u8]> = (0..count).map(|i| &table[8 * i..][..usize::from(lengths[i])]).collect();
        let mut out = vec![1];
        let found = decoder.decode(&codes, &mut out).ok().map(|()| out[1..].to_vec());
        prop_assert!(found.is_some() || out.len() == 1);
        prop_assert_eq!(found, baseline::decode_fsst(&symbols, &codes));
    }

    #[test]
    fn test_compressed_bytes_come_back(values in vec(prop_oneof![bytes(1..30), vec(0..3_u8, 1..30), (0..3_u8, 1..60_usize).prop_map(|(byte, n)| vec![byte; n])], 0..60), level in -3..12_i32) {
        let raw = values.concat();
        for (scheme, level) in [("zstd", Some(level)), ("lz4", None)] {
            let mut out = vec![5];
            general::compress(scheme, level, &raw, &mut out).unwrap();
            prop_assert_eq!(&general::decompress(scheme, &out[1..], raw.len()).unwrap(), &raw);
            let some = raw.len() / 2;
            prop_assert_eq!(&general::decompress(scheme, &out[1..], some).unwrap(), &raw[..some]);
        }
    }
}
