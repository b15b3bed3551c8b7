//! General compression of one buffer: zstd and lz4.
//!
//! ```text
//! zstd   u64 raw length, then a frame; old files hold a bare frame
//! lz4    u32 raw length, then a block
//! ```

use std::cell::RefCell;
use std::io::{Cursor, Read};

use crate::error::{CodecError, Result};
use crate::lz4;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Decompresses a buffer of `scheme`. Produces, and so allocates, at most `limit` bytes: as many as the caller can use.
pub fn decompress(scheme: &str, compressed: &[u8], limit: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    decompress_to(scheme, compressed, limit, &mut out)?;
    Ok(out)
}

/// Appends what a buffer of `scheme` decompresses to, at most `limit` bytes. On an error nothing is appended.
pub fn decompress_to(scheme: &str, compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let done = match scheme {
        "zstd" => decompress_zstd(compressed, limit, out),
        "lz4" => decompress_lz4(compressed, limit, out),
        other => Err(CodecError::Unsupported(format!(
            "expected compression zstd or lz4, found '{other}'; a newer esker may read it"
        ))),
    };
    if done.is_err() {
        out.truncate(start);
    }
    done
}

/// Decompresses a buffer of `scheme` to the start of `memory`, which may hold anything and grows where it is too small; returns how many
/// bytes there are. Memory that is used again need not be cleared.
pub fn decompress_over(scheme: &str, compressed: &[u8], memory: &mut Vec<u8>) -> Result<usize> {
    if scheme != "lz4" {
        memory.clear();
        decompress_to(scheme, compressed, usize::MAX, memory)?;
        return Ok(memory.len());
    }
    let (length, block) = lz4_length(compressed)?;
    if memory.len() < length {
        memory.resize(length, 0);
    }
    lz4_onto(block, memory.get_mut(..length).unwrap_or_default())
}

/// How many bytes a buffer says that it holds; nothing where it does not say, or says more than is likely.
pub fn stated_length(scheme: &str, compressed: &[u8]) -> Option<usize> {
    let (length, block) = match scheme {
        "lz4" => {
            let (length, block) = compressed.split_first_chunk::<4>()?;
            (u64::from(u32::from_le_bytes(*length)), block)
        }
        _ if compressed.starts_with(&ZSTD_MAGIC) => return None,
        _ => {
            let (length, frame) = compressed.split_first_chunk::<8>()?;
            (u64::from_le_bytes(*length), frame)
        }
    };
    let length = usize::try_from(length).ok()?;
    let most = if scheme == "lz4" {
        likely(block.len())
    } else {
        likely_of_zstd(block, length)
    };
    (length <= most).then_some(length)
}

/// More is not allocated before it comes.
fn likely(compressed: usize) -> usize {
    compressed.saturating_mul(64).max(1 << 16)
}

/// The same of a zstd frame that is said to hold `length` bytes: what repeats all over becomes thousands of times as much, as the blocks tell.
fn likely_of_zstd(frame: &[u8], length: usize) -> usize {
    let likely = likely(frame.len());
    if length <= likely {
        return likely;
    }
    likely.max(zstd_blocks(frame).unwrap_or(0))
}

/// The most bytes that the blocks of a zstd frame hold.
///
/// ```text
/// u32 magic   descriptor: content size << 6 | single segment << 5 | dictionary   [window]   [dictionary]   [content size]
/// block       u24: size << 3 | kind << 1 | last      0: as it is; 1: one byte, repeated; 2: compressed, up to 128 KiB
/// ```
fn zstd_blocks(frame: &[u8]) -> Option<usize> {
    const MOST_OF_A_BLOCK: usize = 128 << 10;
    let (descriptor, rest) = frame.strip_prefix(&ZSTD_MAGIC)?.split_first()?;
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied()?;
    let content = match descriptor >> 6 {
        0 => usize::from(is_single),
        other => 1 << other,
    };
    let mut rest = rest.get(usize::from(!is_single) + dictionary + content..)?;
    let mut most = 0_usize;
    while let Some(([a, b, c], behind)) = rest.split_first_chunk::<3>() {
        let header = u32::from_le_bytes([*a, *b, *c, 0]);
        let size = usize::try_from(header >> 3).ok()?;
        let (stored, held) = match header >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, MOST_OF_A_BLOCK),
            _ => return None,
        };
        most = most.saturating_add(held.min(MOST_OF_A_BLOCK));
        rest = behind.get(stored..).unwrap_or_default();
        if header & 1 != 0 {
            break;
        }
    }
    Some(most)
}

/// Appends the raw length of a buffer and the buffer compressed with `scheme`. `level` is zstd's; `None` is its default.
pub fn compress(scheme: &str, level: Option<i32>, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let too_large = |e: &dyn std::fmt::Display| CodecError::TooLarge(format!("{} bytes to compress: {e}", bytes.len()));
    match scheme {
        "zstd" => {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            let start = out.len();
            out.resize(start.saturating_add(zstd::zstd_safe::compress_bound(bytes.len())), 0);
            let room = out.get_mut(start..).unwrap_or_default();
            let length = with_compressor(level.unwrap_or(0), |compressor| {
                compressor.compress_to_buffer(bytes, room)
            });
            out.truncate(start.saturating_add(length.map_err(|e| too_large(&e))?));
        }
        "lz4" => {
            let length = u32::try_from(bytes.len()).map_err(|_| too_large(&"lz4 takes less than 4 GiB"))?;
            out.extend_from_slice(&length.to_le_bytes());
            lz4::compress(bytes, out);
        }
        other => {
            return Err(CodecError::Unsupported(format!(
                "expected compression zstd or lz4, found '{other}'; name one of the two"
            )))
        }
    }
    Ok(())
}

thread_local! {
    /// The compressor of the last level, cached, since a new one costs as much as compressing some KiB.
    static COMPRESSOR: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn with_compressor<T>(
    level: i32,
    run: impl FnOnce(&mut zstd::bulk::Compressor<'static>) -> std::io::Result<T>,
) -> std::io::Result<T> {
    COMPRESSOR.with_borrow_mut(|kept| match kept {
        Some((kept_level, compressor)) if *kept_level == level => run(compressor),
        _ => {
            let mut compressor = zstd::bulk::Compressor::new(level)?;
            // The length in front makes the frame's own content size redundant.
            compressor.include_contentsize(false)?;
            run(&mut kept.insert((level, compressor)).1)
        }
    })
}

fn decompress_zstd(compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let failed =
        |e: std::io::Error| CodecError::corrupt(format!("expected a zstd frame, found bytes that do not decode ({e})"));
    // A length prefix that equals the magic number would be 4 GB or more, longer than any page: such bytes are a bare frame.
    let bare = compressed.starts_with(&ZSTD_MAGIC);
    let (length, frame) = match compressed.split_first_chunk::<8>() {
        Some((length, frame)) if !bare => (usize::try_from(u64::from_le_bytes(*length)).ok(), frame),
        _ => (None, if bare { compressed } else { &[] }),
    };
    // An implausible length is not allocated up front: the frame is decompressed as a stream instead.
    let likely = likely_of_zstd(frame, length.unwrap_or(0));
    if let Some(length) = length.filter(|length| *length <= limit.min(likely)) {
        let start = out.len();
        out.reserve(length);
        // It writes behind what is there, into memory that need not be filled before.
        let mut room = Cursor::new(std::mem::take(out));
        room.set_position(start as u64);
        let done = DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                None => kept.insert(zstd::bulk::Decompressor::new().map_err(failed)?),
            };
            decompressor.decompress_to_buffer(frame, &mut room).map_err(failed)
        });
        *out = room.into_inner();
        // There may be more room than for the length that is told.
        let written = done?;
        if written > length {
            return Err(CodecError::corrupt(format!(
                "expected a zstd frame of {length} bytes, found {written}"
            )));
        }
        return Ok(());
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(failed)?;
    // A frame's header may ask for a window of 128 MiB. All levels below 20 make do with 8 MiB; more is allowed only for likely sizes.
    let window = likely.min(limit).max(1).ilog2() + 1;
    decoder.window_log_max(window.clamp(23, 27)).map_err(failed)?;
    decoder.take(limit as u64).read_to_end(out).map_err(failed)?;
    Ok(())
}

/// The length that an lz4 buffer states, and the block.
fn lz4_length(compressed: &[u8]) -> Result<(usize, &[u8])> {
    let Some((length, block)) = compressed.split_first_chunk::<4>() else {
        return Err(CodecError::corrupt(
            "expected a 4 byte length before an lz4 block, found fewer bytes",
        ));
    };
    let length = u32::from_le_bytes(*length) as usize;
    // An lz4 block expands at most 255 times: a larger length is corrupt.
    if length > block.len().saturating_mul(255).saturating_add(64) {
        return Err(CodecError::corrupt(format!(
            "expected an lz4 block of {} bytes to hold at most 255 times as many, found a length of {length}",
            block.len()
        )));
    }
    Ok((length, block))
}

fn lz4_onto(block: &[u8], room: &mut [u8]) -> Result<usize> {
    lz4_flex::block::decompress_into(block, room)
        .map_err(|e| CodecError::corrupt(format!("expected an lz4 block, found bytes that do not decode ({e})")))
}

fn decompress_lz4(compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let (length, block) = lz4_length(compressed)?;
    let start = out.len();
    out.resize(start.saturating_add(length), 0);
    let written = lz4_onto(block, out.get_mut(start..).unwrap_or_default())?;
    out.truncate(start.saturating_add(written.min(limit)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_zstd_with_and_without_a_length_comes_back() {
        let raw = b"abc".repeat(1000);
        let frame = zstd::stream::encode_all(raw.as_slice(), 3).unwrap();
        assert_eq!(decompress("zstd", &frame, usize::MAX).unwrap(), raw);
        let mut prefixed = (raw.len() as u64).to_le_bytes().to_vec();
        prefixed.extend_from_slice(&frame);
        assert_eq!(decompress("zstd", &prefixed, usize::MAX).unwrap(), raw);
        assert_eq!(decompress("zstd", &prefixed, 10).unwrap(), &raw[..10]);
    }

    #[test]
    fn test_memory_that_is_used_again_holds_what_a_new_one_does() {
        let mut memory = vec![9; 100];
        for raw in [b"abc".repeat(1000), Vec::new(), b"xyz".repeat(20), vec![1; 5000]] {
            for scheme in ["lz4", "zstd"] {
                let mut stored = Vec::new();
                compress(scheme, None, &raw, &mut stored).unwrap();
                let length = decompress_over(scheme, &stored, &mut memory).unwrap();
                assert_eq!(memory[..length], raw, "{scheme}");
                for cut in 0..stored.len() {
                    if let Ok(length) = decompress_over(scheme, &stored[..cut], &mut memory) {
                        assert!(length <= raw.len(), "{scheme} {cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn test_what_repeats_all_over_is_expected_as_large_as_it_is_and_lies_are_not() {
        for raw in [vec![7; 3 << 20], b"lorem ipsum dolor sit amet ".repeat(20_000)] {
            let mut stored = Vec::new();
            compress("zstd", None, &raw, &mut stored).unwrap();
            assert!(stored.len() * 1000 < raw.len());
            assert_eq!(stated_length("zstd", &stored), Some(raw.len()));
            assert_eq!(decompress("zstd", &stored, usize::MAX).unwrap(), raw);
            // With the frame's own content size and checksum, as others write it.
            let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.set_pledged_src_size(Some(raw.len() as u64)).unwrap();
            std::io::Write::write_all(&mut encoder, &raw).unwrap();
            let mut other = (raw.len() as u64).to_le_bytes().to_vec();
            other.extend(encoder.finish().unwrap());
            assert_eq!(stated_length("zstd", &other), Some(raw.len()));
            for stored in [&mut stored, &mut other] {
                stored[..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
                assert_eq!(stated_length("zstd", stored), None);
                assert_eq!(decompress("zstd", stored, usize::MAX).unwrap(), raw);
                for cut in 0..stored.len().min(200) {
                    assert!(stated_length("zstd", &stored[..cut]).is_none());
                }
            }
        }
    }

    #[test]
    fn test_a_small_frame_cannot_ask_for_a_huge_window() {
        // No content size, the window as 2^(10 + exponent), one raw block of a byte, which is the last.
        let frame = |exponent: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 9, 0, 0, 7];
        assert_eq!(decompress("zstd", &frame(13), usize::MAX).unwrap(), [7]);
        let refused = decompress("zstd", &frame(17), usize::MAX).unwrap_err().to_string();
        assert!(refused.contains("expected a zstd frame"), "{refused}");
    }

    #[test]
    fn test_what_is_compressed_comes_back_behind_what_was_there() {
        for raw in [Vec::new(), b"abc".repeat(1000), vec![7]] {
            for (scheme, level) in [("zstd", None), ("zstd", Some(-5)), ("zstd", Some(19)), ("lz4", None)] {
                let mut out = vec![1, 2];
                compress(scheme, level, &raw, &mut out).unwrap();
                assert_eq!(decompress(scheme, &out[2..], usize::MAX).unwrap(), raw);
                assert!(raw.len() < 100 || out.len() < raw.len() / 20);
            }
        }
        assert!(compress("snappy", None, b"abc", &mut Vec::new()).is_err());
    }

    #[test]
    fn test_lz4_keeps_a_byte_that_ends_a_run_near_the_end() {
        for run in 0..40 {
            for rest in 0..20 {
                let mut raw = b"abcdefgh".to_vec();
                raw.extend(vec![1; run]);
                raw.push(2);
                raw.extend(vec![1; rest]);
                let mut out = Vec::new();
                compress("lz4", None, &raw, &mut out).unwrap();
                assert_eq!(decompress("lz4", &out, usize::MAX).unwrap(), raw, "{run} {rest}");
            }
        }
    }

    #[test]
    fn test_lz4_comes_back_and_lies_are_refused() {
        let raw = b"abc".repeat(1000);
        let mut stored = (raw.len() as u32).to_le_bytes().to_vec();
        stored.extend(lz4_flex::block::compress(&raw));
        assert_eq!(decompress("lz4", &stored, usize::MAX).unwrap(), raw);
        for cut in 0..stored.len() {
            let _ = decompress("lz4", &stored[..cut], usize::MAX);
        }
        stored[3] = 0xff;
        assert!(decompress("lz4", &stored, usize::MAX).is_err());
        assert!(decompress("brotli", &stored, 1).is_err());
    }
}
