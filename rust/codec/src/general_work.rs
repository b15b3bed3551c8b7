//! What decompressing a buffer takes, told from its headers: the sequences to copy, and the literals to decode.
//!
//! ```text
//! zstd frame    magic | descriptor | [window] [dictionary] [content size] | blocks | [checksum]
//! block         u24: last, type << 1 (raw, run, compressed), size << 3     compressed: literals, sequences
//! literals      type (raw, run, coded, coded as before), two bits of how long the header is, the number of bytes that come out, ...
//! sequences     their number in 1 to 3 bytes, ...
//! ```
//!
//! <https://github.com/facebook/zstd/blob/dev/doc/zstd_compression_format.md>

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Copies of earlier bytes.
    pub sequences: u64,
    /// Literals that are coded rather than plain.
    pub coded_literals: u64,
    /// Blocks with tables of their own.
    pub tables: u64,
}

/// The work of a buffer that `compress` made. Of bytes that are not such a buffer what was found up to there.
pub fn work(scheme: &str, compressed: &[u8]) -> Work {
    let mut out = Work::default();
    // Where the bytes end early, so does the work.
    let _ = match scheme {
        "lz4" => lz4(compressed.get(4..).unwrap_or_default(), &mut out),
        _ => zstd(compressed.get(8..).unwrap_or_default(), &mut out),
    };
    out
}

fn lz4(block: &[u8], out: &mut Work) -> Option<()> {
    let mut at = 0;
    loop {
        let token = *block.get(at)?;
        at += 1;
        let literals = lz4_length(block, &mut at, token >> 4)?;
        at += literals;
        // The last sequence has literals only.
        block.get(at)?;
        at += 2;
        lz4_length(block, &mut at, token & 15)?;
        out.sequences += 1;
    }
}

fn lz4_length(block: &[u8], at: &mut usize, nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let more = *block.get(*at)?;
            *at += 1;
            length += usize::from(more);
            if more < 255 {
                break;
            }
        }
    }
    Some(length)
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

fn zstd(frame: &[u8], out: &mut Work) -> Option<()> {
    let descriptor = *frame.get(4)?;
    let single = descriptor >> 5 & 1;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied()?;
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        size => 1 << size,
    };
    let mut at = 5 + usize::from(single == 0) + dictionary + content;
    loop {
        let header = little(frame, at, 3)?;
        at += 3;
        let size = header >> 3;
        match header >> 1 & 3 {
            0 => at += size,
            1 => at += 1,
            2 => {
                zstd_block(frame.get(at..at.checked_add(size)?)?, out)?;
                at += size;
            }
            _ => return None,
        }
        if header & 1 == 1 {
            return Some(());
        }
    }
}

fn zstd_block(block: &[u8], out: &mut Work) -> Option<()> {
    let first = usize::from(*block.first()?);
    let (kind, format) = (first & 3, first >> 2 & 3);
    let literals = if kind < 2 {
        let (header, bits) = match format {
            0 | 2 => (1, 3),
            1 => (2, 4),
            _ => (3, 4),
        };
        let size = little(block, 0, header)? >> bits;
        header + if kind == 0 { size } else { 1 }
    } else {
        let (header, bits) = match format {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        let word = little(block, 0, header)?;
        let mask = (1 << bits) - 1;
        out.coded_literals += (word >> 4 & mask) as u64;
        out.tables += 1;
        header + (word >> (4 + bits) & mask)
    };
    let count = match little(block, literals, 1)? {
        few @ 0..128 => few,
        255 => little(block, literals + 1, 2)? + 0x7f00,
        many => ((many - 128) << 8) + little(block, literals + 1, 1)?,
    };
    out.sequences += count as u64;
    out.tables += u64::from(count > 0);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::compress;

    fn of(scheme: &str, bytes: &[u8]) -> Work {
        let mut out = Vec::new();
        compress(scheme, None, bytes, &mut out).unwrap();
        work(scheme, &out)
    }

    fn noise(len: usize, mask: u64) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40 & mask) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn test_noise_takes_no_work_and_words_take_some() {
        let plain = noise(8000, 0xff);
        for scheme in ["lz4", "zstd"] {
            assert!(of(scheme, &plain).sequences < 20, "{scheme}: {:?}", of(scheme, &plain));
            let words: Vec<u8> = (0..4000_u32)
                .flat_map(|i| format!("{} words ", i % 97).into_bytes())
                .collect();
            assert!(of(scheme, &words).sequences > 10, "{scheme}: {:?}", of(scheme, &words));
            assert_eq!(of(scheme, &[]), Work::default());
        }
        assert_eq!(of("zstd", &plain).coded_literals, 0);
        let coded = of("zstd", &noise(8000, 0x0f));
        assert!((6000..=8000).contains(&coded.coded_literals), "{coded:?}");
        assert_eq!(of("lz4", &noise(8000, 0x0f)).coded_literals, 0);
    }

    #[test]
    fn test_bytes_of_any_kind_have_some_work() {
        for seed in 0..200 {
            let bytes = noise(seed, 0xff);
            work("lz4", &bytes);
            work("zstd", &bytes);
        }
        let mut whole = Vec::new();
        compress(
            "zstd",
            Some(19),
            &b"some words and some words more".repeat(300),
            &mut whole,
        )
        .unwrap();
        for cut in 0..whole.len() {
            work("zstd", &whole[..cut]);
        }
    }
}
