//! The speed of the kernels, compared with a memory copy of their output and with the scalar baselines: `make bench-kernels`.
//!
//! Each runs repeatedly on one core, on 64 KiB to 4 MiB; the best time counts. GB/s are of unpacked bytes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use esker_codec::{
    baseline, bit_stream, bitpack, byte_stream_split, fsst, general, inline_bitpack, outline_bitpack, ranges, rle,
};

/// How long each kernel runs at most.
const BUDGET: Duration = Duration::from_millis(60);

/// GB/s of the best of many runs.
fn speed(bytes: usize, mut run: impl FnMut()) -> f64 {
    let (start, mut best) = (Instant::now(), Duration::MAX);
    run();
    while start.elapsed() < BUDGET {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed());
    }
    bytes as f64 / best.as_secs_f64() / 1e9
}

struct Table {
    filter: Option<String>,
}

impl Table {
    fn line(&self, name: &str, bytes: usize, run: impl FnMut(), baseline: Option<&mut dyn FnMut()>) {
        if self.filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        let from = vec![1_u8; bytes];
        let mut to = vec![0_u8; bytes];
        let copy = speed(bytes, || black_box(&mut to).copy_from_slice(black_box(&from)));
        let kernel = speed(bytes, run);
        let baseline = baseline.map(|run| speed(bytes, run));
        let shown = baseline.map_or("-".into(), |speed| format!("{speed:.2}"));
        println!("{name:<34} {kernel:>8.2} {copy:>8.2} {shown:>9}");
    }
}

fn random(count: usize) -> impl Iterator<Item = u64> {
    let mut seed = 7_u64;
    (0..count).map(move |_| {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        seed ^ seed >> 29
    })
}

fn bit_packing<W: bitpack::Word>(table: &Table, widths: &[usize]) {
    const BLOCKS: usize = 16;
    let (bits, size) = (W::BITS, W::BITS / 8);
    for &width in widths {
        let mask = u64::MAX >> (64 - width);
        let values: Vec<u8> = random(BLOCKS * bitpack::BLOCK)
            .flat_map(|v| (v & mask).to_le_bytes()[..size].to_vec())
            .collect();
        let words: Vec<W> = W::words(&values).iter().map(|bytes| W::from_bytes(*bytes)).collect();
        let packed: Vec<Vec<u8>> = words
            .chunks(bitpack::BLOCK)
            .map(|block| {
                let mut packed = Vec::new();
                bitpack::pack_block(width, block, &mut packed);
                packed
            })
            .collect();
        let mut out = vec![W::default(); bitpack::BLOCK];
        let mut unpack = || {
            for block in &packed {
                black_box(baseline::unpack(bits, width, block));
            }
        };
        let run = || {
            for block in &packed {
                bitpack::unpack_block(width, black_box(block), black_box(&mut out)).unwrap();
            }
        };
        table.line(
            &format!("unpack u{bits} from {width} bits"),
            values.len(),
            run,
            Some(&mut unpack),
        );
        let mut pack = || {
            for block in values.chunks(bitpack::BLOCK * size) {
                black_box(baseline::pack(bits, width, block));
            }
        };
        let mut out = Vec::with_capacity(values.len());
        let run = || {
            out.clear();
            for block in words.chunks(bitpack::BLOCK) {
                bitpack::pack_block(width, black_box(block), &mut out);
            }
        };
        table.line(
            &format!("pack u{bits} into {width} bits"),
            values.len(),
            run,
            Some(&mut pack),
        );
    }
    let width = widths[widths.len() / 2];
    let mask = u64::MAX >> (64 - width);
    let values: Vec<u8> = random(bitpack::BLOCK * BLOCKS)
        .flat_map(|v| (v & mask).to_le_bytes()[..size].to_vec())
        .collect();
    let chunks: Vec<Vec<u8>> = values
        .chunks(bitpack::BLOCK * size)
        .map(|block| {
            let mut chunk = Vec::new();
            inline_bitpack::encode(bits as u64, block, &mut chunk);
            chunk
        })
        .collect();
    let mut out = Vec::with_capacity(values.len());
    let run = || {
        out.clear();
        for chunk in &chunks {
            inline_bitpack::decode(bits as u64, black_box(chunk), bitpack::BLOCK, &mut out).unwrap();
        }
    };
    table.line(
        &format!("inline decode u{bits} from {width} bits"),
        values.len(),
        run,
        None,
    );
    let mut out = Vec::with_capacity(values.len());
    let run = || {
        out.clear();
        for block in values.chunks(bitpack::BLOCK * size) {
            inline_bitpack::encode(bits as u64, black_box(block), &mut out);
        }
    };
    table.line(
        &format!("inline encode u{bits} into {width} bits"),
        values.len(),
        run,
        None,
    );
    let mut packed = Vec::new();
    outline_bitpack::encode(bits as u64, width as u64, &values, &mut packed);
    let mut out = Vec::with_capacity(values.len());
    let run = || {
        out.clear();
        outline_bitpack::decode(
            bits as u64,
            width as u64,
            black_box(&packed),
            BLOCKS * bitpack::BLOCK,
            &mut out,
        )
        .unwrap();
    };
    table.line(
        &format!("outline decode u{bits} from {width} bits"),
        values.len(),
        run,
        None,
    );
}

fn one_value(table: &Table) {
    let values: Vec<u64> = random(bitpack::BLOCK).map(|v| v & 0xfff).collect();
    let mut packed = Vec::new();
    bitpack::pack_block(12, &values, &mut packed);
    let mut out = Vec::new();
    let mut index = 0;
    let run = || {
        out.clear();
        index = (index + 37) % bitpack::BLOCK;
        bitpack::unpack_range::<u64>(12, black_box(&packed), index..index + 1, &mut out).unwrap();
    };
    let mut block = vec![0_u64; bitpack::BLOCK];
    let mut all = || bitpack::unpack_block(12, black_box(&packed), black_box(&mut block)).unwrap();
    table.line("one u64 of a block of 12 bits *", 8, run, Some(&mut all));
}

fn strings(table: &Table) {
    let text: Vec<String> = random(20000)
        .map(|v| {
            format!(
                "https://www.example.org/{}/item-{}?id={}",
                v % 13,
                v % 1009,
                v % 1_000_003
            )
        })
        .collect();
    let values: Vec<&[u8]> = text.iter().map(|value| value.as_bytes()).collect();
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let encoder = fsst::Encoder::train(&values);
    let encode = |out: &mut Vec<u8>, ends: &mut Vec<usize>| {
        for value in &values {
            encoder.encode(value, out);
            ends.push(out.len());
        }
    };
    let (mut codes, mut ends) = (Vec::with_capacity(bytes), Vec::new());
    encode(&mut codes, &mut ends);
    let symbol_table = encoder.symbol_table();
    let count = usize::from(symbol_table[0]);
    let symbols: Vec<&[u8]> = (0..count)
        .map(|i| &symbol_table[8 + 8 * i..][..usize::from(symbol_table[8 + 8 * count + i])])
        .collect();
    let mut plain = || {
        black_box(baseline::decode_fsst(&symbols, &codes));
    };
    let decoder = fsst::Decoder::new(&symbol_table).unwrap();
    let mut out = Vec::with_capacity(bytes);
    let run = || {
        out.clear();
        let mut start = 0;
        for end in &ends {
            decoder.decode(black_box(&codes[start..*end]), &mut out).unwrap();
            start = *end;
        }
    };
    table.line("fsst decode, 45 B strings, one by one", bytes, run, Some(&mut plain));
    let (mut out, mut decoded) = (Vec::with_capacity(bytes), Vec::new());
    let run = || {
        out.clear();
        decoded.clear();
        let bounds = ends.iter().copied();
        let found = decoder.decode_values(black_box(&codes), bounds, &mut out, |end| decoded.push(end));
        found.unwrap();
    };
    table.line("fsst decode, 45 B strings", bytes, run, Some(&mut plain));
    let (joined, mut offsets) = (values.concat(), vec![0]);
    offsets.extend(values.iter().scan(0, |end, value| {
        *end += value.len();
        Some(*end)
    }));
    let (mut out, mut coded) = (Vec::with_capacity(bytes), Vec::new());
    let (mut slow_out, mut slow_ends) = (Vec::with_capacity(bytes), Vec::new());
    let mut one_by_one = || {
        slow_out.clear();
        slow_ends.clear();
        encode(&mut slow_out, &mut slow_ends);
    };
    let run = || {
        out.clear();
        coded.clear();
        encoder.encode_values(black_box(&joined), &offsets, &mut out, &mut coded);
    };
    table.line("fsst encode, 45 B strings", bytes, run, Some(&mut one_by_one));
    let run = || drop(black_box(fsst::Encoder::train(black_box(&values))));
    table.line("fsst train (64 KiB looked at)", 64 * 1024, run, None);

    let joined = values.concat();
    for (scheme, level) in [("lz4", None), ("zstd", None), ("zstd", Some(1))] {
        let name = level.map_or(scheme.to_owned(), |level: i32| format!("{scheme} level {level}"));
        let pieces: Vec<&[u8]> = joined.chunks(32 * 1024).collect();
        let compressed: Vec<Vec<u8>> = pieces
            .iter()
            .map(|piece| {
                let mut out = Vec::new();
                general::compress(scheme, level, piece, &mut out).unwrap();
                out
            })
            .collect();
        let mut out = Vec::with_capacity(joined.len());
        let run = || {
            out.clear();
            for piece in &pieces {
                general::compress(scheme, level, black_box(piece), &mut out).unwrap();
            }
        };
        table.line(&format!("{name} compress, 32 KiB"), joined.len(), run, None);
        let run = || {
            for piece in &compressed {
                black_box(general::decompress(scheme, black_box(piece), usize::MAX).unwrap());
            }
        };
        table.line(&format!("{name} decompress, 32 KiB"), joined.len(), run, None);
    }
}

fn runs(table: &Table) {
    for (bits, length) in [(8_u64, 20), (32, 4), (32, 20), (64, 20), (64, 200)] {
        let size = bits as usize / 8;
        let values: Vec<u8> = random(64 * 1024 / size / length)
            .flat_map(|v| v.to_le_bytes()[..size].repeat(1 + v as usize % (2 * length)))
            .collect();
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        rle::encode(bits, &values, &mut starts, &mut lengths);
        let count = values.len() / size;
        let mut plain = || {
            black_box(baseline::decode_runs(size, &starts, &lengths, count));
        };
        let mut out = Vec::with_capacity(values.len());
        let run = || {
            out.clear();
            rle::decode(bits, black_box(&starts), black_box(&lengths), 8, count, &mut out).unwrap();
        };
        table.line(
            &format!("rle decode u{bits}, runs of {length}"),
            values.len(),
            run,
            Some(&mut plain),
        );
        let (mut to, mut to_lengths) = (Vec::new(), Vec::new());
        let run = || {
            to.clear();
            to_lengths.clear();
            rle::encode(bits, black_box(&values), &mut to, &mut to_lengths);
        };
        table.line(
            &format!("rle encode u{bits}, runs of {length}"),
            values.len(),
            run,
            None,
        );
        let run = || {
            black_box(rle::count_runs(bits, black_box(&values)));
        };
        table.line(&format!("rle count u{bits}, runs of {length}"), values.len(), run, None);
    }
}

fn streams(table: &Table) {
    let values: Vec<u8> = random(8 * 1024).flat_map(u64::to_le_bytes).collect();
    for width in [2_usize, 4, 8] {
        // Chunks as files have them.
        let mut split = Vec::with_capacity(values.len());
        values
            .chunks(4096)
            .for_each(|chunk| byte_stream_split::split(width, chunk, &mut split));
        let mut plain = || {
            split
                .chunks(4096)
                .for_each(|chunk| drop(black_box(baseline::join_streams(width, chunk))));
        };
        let mut out = Vec::with_capacity(values.len());
        let run = || {
            out.clear();
            for chunk in split.chunks(4096) {
                byte_stream_split::join(width, black_box(chunk), &mut out).unwrap();
            }
        };
        table.line(
            &format!("byte stream join, {width} bytes"),
            values.len(),
            run,
            Some(&mut plain),
        );
        let mut plain = || {
            values
                .chunks(4096)
                .for_each(|chunk| drop(black_box(baseline::split_streams(width, chunk))));
        };
        let mut out = Vec::with_capacity(values.len());
        let run = || {
            out.clear();
            values
                .chunks(4096)
                .for_each(|chunk| byte_stream_split::split(width, black_box(chunk), &mut out));
        };
        table.line(
            &format!("byte stream split, {width} bytes"),
            values.len(),
            run,
            Some(&mut plain),
        );
    }
    for (bits, width) in [(32_u64, 9_u64), (64, 37)] {
        let count = 64 * 1024 / (bits as usize / 8);
        let packed = &values[..(count * width as usize).div_ceil(8)];
        let mut plain = || {
            black_box(baseline::decode_bit_stream(width as usize, true, packed, 0, count));
        };
        let mut out = Vec::with_capacity(64 * 1024);
        let run = || {
            out.clear();
            bit_stream::decode(bits, width, true, black_box(packed), 0, count, &mut out).unwrap();
        };
        table.line(
            &format!("bit stream u{bits} from {width} bits"),
            64 * 1024,
            run,
            Some(&mut plain),
        );
    }
}

/// Which numbers lie in a range.
fn in_ranges(table: &Table) {
    const COUNT: usize = 64 * 1024;
    fn of<T: ranges::Number>(table: &Table, name: &str, numbers: &[T], low: T, high: T) {
        let mut each = || {
            let words = numbers.chunks(64).map(|numbers| {
                let bits = numbers
                    .iter()
                    .map(|number| u64::from(*number >= low && *number <= high));
                bits.rev().fold(0, |word, bit| word << 1 | bit)
            });
            black_box(words.collect::<Vec<u64>>());
        };
        let run = || {
            black_box(ranges::within(black_box(numbers), low, high));
        };
        table.line(name, size_of_val(numbers), run, Some(&mut each));
    }
    let longs: Vec<i64> = random(COUNT).map(|word| (word % 1_000_000) as i64).collect();
    of(table, "range of i64", &longs, 5000, 5999);
    let ints: Vec<i32> = longs.iter().map(|long| *long as i32).collect();
    of(table, "range of i32", &ints, 5000, 5999);
    let shorts: Vec<i16> = longs.iter().map(|long| *long as i16).collect();
    of(table, "range of i16", &shorts, 5000, 5999);
    let bytes: Vec<u8> = random(COUNT).map(|word| word as u8).collect();
    of(table, "range of u8", &bytes, 50, 59);
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let table = Table { filter };
    println!("{:<34} {:>8} {:>8} {:>9}", "kernel", "GB/s", "memcpy", "baseline");
    bit_packing::<u8>(&table, &[1, 3, 7]);
    bit_packing::<u16>(&table, &[1, 5, 11]);
    bit_packing::<u32>(&table, &[1, 7, 12, 20, 31]);
    bit_packing::<u64>(&table, &[1, 12, 20, 33, 63]);
    one_value(&table);
    strings(&table);
    runs(&table);
    streams(&table);
    in_ranges(&table);
    println!("* its baseline is all 1024 values");
}
