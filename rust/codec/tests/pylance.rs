//! The kernels against bytes that pylance wrote, which `pylance/generate.py` makes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use esker_codec::{byte_stream_split, fsst, general, inline_bitpack, outline_bitpack, rle};

/// What the generator calls `pattern`.
fn pattern(bits: usize, width: usize) -> Vec<u8> {
    let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << width) - 1);
    (0..1024)
        .flat_map(|i| value(i).to_le_bytes()[..bits / 8].to_vec())
        .collect()
}

#[test]
fn test_inline_bit_packing_is_the_same_both_ways() {
    let chunks: [(usize, usize, &[u8]); 12] = [
        (8, 1, include_bytes!("pylance/inline_u8_1.bin")),
        (8, 3, include_bytes!("pylance/inline_u8_3.bin")),
        (8, 7, include_bytes!("pylance/inline_u8_7.bin")),
        (16, 1, include_bytes!("pylance/inline_u16_1.bin")),
        (16, 5, include_bytes!("pylance/inline_u16_5.bin")),
        (16, 11, include_bytes!("pylance/inline_u16_11.bin")),
        (32, 1, include_bytes!("pylance/inline_u32_1.bin")),
        (32, 2, include_bytes!("pylance/inline_u32_2.bin")),
        (32, 7, include_bytes!("pylance/inline_u32_7.bin")),
        (64, 1, include_bytes!("pylance/inline_u64_1.bin")),
        (64, 2, include_bytes!("pylance/inline_u64_2.bin")),
        (64, 5, include_bytes!("pylance/inline_u64_5.bin")),
    ];
    for (bits, width, chunk) in chunks {
        let values = pattern(bits, width);
        let mut out = Vec::new();
        inline_bitpack::decode(bits as u64, chunk, 1024, &mut out).unwrap();
        assert_eq!(out, values, "u{bits} in {width} bits");
        let mut out = Vec::new();
        inline_bitpack::encode(bits as u64, &values, &mut out);
        assert_eq!(out, chunk, "u{bits} in {width} bits");
    }
}

#[test]
fn test_levels_with_raw_and_packed_tails_are_the_same_both_ways() {
    let levels: [(usize, &[u8]); 2] = [
        (1050, include_bytes!("pylance/outline_u16_1_1050.bin")),
        (2000, include_bytes!("pylance/outline_u16_1_2000.bin")),
    ];
    for (count, bytes) in levels {
        let expected: Vec<u8> = (0..count).flat_map(|i| u16::from(i % 3 == 0).to_le_bytes()).collect();
        let mut out = Vec::new();
        outline_bitpack::decode(16, 1, bytes, count, &mut out).unwrap();
        assert_eq!(out, expected, "{count}");
        let mut out = Vec::new();
        outline_bitpack::encode(16, 1, &expected, &mut out);
        assert_eq!(out, bytes, "{count}");
    }
}

#[test]
fn test_runs_are_the_same_both_ways() {
    let (values, lengths) = (
        include_bytes!("pylance/rle_values.bin"),
        include_bytes!("pylance/rle_lengths.bin"),
    );
    let runs = [300, 1, 2, 600, 5, 20, 72].into_iter().zip(0_u32..);
    let expected: Vec<u8> = runs.flat_map(|(n, i)| (i * 1000).to_le_bytes().repeat(n)).collect();
    let mut out = Vec::new();
    rle::decode(32, values, lengths, 8, 1000, &mut out).unwrap();
    assert_eq!(out, expected);
    let (mut out_values, mut out_lengths) = (Vec::new(), Vec::new());
    rle::encode(32, &expected, &mut out_values, &mut out_lengths);
    assert_eq!(
        (out_values.as_slice(), out_lengths.as_slice()),
        (values.as_slice(), lengths.as_slice())
    );
}

#[test]
fn test_compressed_byte_streams_are_read() {
    let expected: Vec<u8> = (0..512).flat_map(|i| (f64::from(i) / 8.0).to_le_bytes()).collect();
    let chunks: [(&str, &[u8]); 2] = [
        ("zstd", include_bytes!("pylance/bss_zstd_f64.bin")),
        ("lz4", include_bytes!("pylance/bss_lz4_f64.bin")),
    ];
    for (scheme, chunk) in chunks {
        let streams = general::decompress(scheme, chunk, usize::MAX).unwrap();
        let mut out = Vec::new();
        byte_stream_split::join(8, &streams, &mut out).unwrap();
        assert_eq!(out, expected, "{scheme}");
        let (mut streams, mut compressed) = (Vec::new(), Vec::new());
        byte_stream_split::split(8, &expected, &mut streams);
        general::compress(scheme, None, &streams, &mut compressed).unwrap();
        assert!(
            compressed.len() <= chunk.len() + chunk.len() / 50,
            "{scheme}: {}",
            compressed.len()
        );
    }
}

#[test]
fn test_fsst_is_read() {
    let decoder = fsst::Decoder::new(include_bytes!("pylance/fsst_symbols.bin")).unwrap();
    let chunk = include_bytes!("pylance/fsst_chunk.bin");
    let ends: Vec<usize> = chunk
        .chunks(4)
        .map(|end| u32::from_le_bytes(end.try_into().unwrap()) as usize)
        .collect();
    // The first offset says where the offsets end.
    let ends = &ends[..ends[0] / 4];
    assert!(ends.len() > 64);
    for (i, range) in ends.windows(2).enumerate() {
        let mut out = Vec::new();
        decoder.decode(&chunk[range[0]..range[1]], &mut out).unwrap();
        let word = if i % 3 > 0 { "esker" } else { "drift" };
        let expected = format!("https://example.org/{}/item-{}?q={word}", i % 7, i * 7919 % 10007);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
