//! Packs and unpacks whole blocks of 1024 values.
#![allow(unsafe_code)]

use super::rows::{self, Row};
use super::{checked_block, packed_size, Word, BLOCK};
use crate::error::{CodecError, Result};

/// Unpacks the 1024 values of a block.
pub fn unpack_block<W: Word>(width: usize, packed: &[u8], out: &mut [W]) -> Result<()> {
    let packed = checked_block::<W>(width, packed)?;
    if out.len() != BLOCK {
        return Err(CodecError::corrupt(format!(
            "expected room for the 1024 values of a block, found room for {}",
            out.len()
        )));
    }
    // SAFETY: the slice has 1024 words, and is borrowed for as long.
    unsafe { unpack_to::<W>(width, packed, out.as_mut_ptr().cast()) };
    if cfg!(target_endian = "big") {
        out.iter_mut().for_each(|word| *word = from_little_endian(*word));
    }
    Ok(())
}

/// Appends the first `num_values` values of a block as little-endian bytes.
pub(crate) fn unpack_onto<W: Word>(width: usize, packed: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    let num_values = num_values.min(BLOCK);
    if num_values == 0 && packed.is_empty() {
        return Ok(());
    }
    let packed = checked_block::<W>(width, packed)?;
    let (start, word_size) = (out.len(), W::BITS / 8);
    out.reserve(BLOCK * word_size);
    // SAFETY: a block is reserved behind `start`, which is the length. All of it is written, so it may be any part of the vector.
    unsafe {
        unpack_to::<W>(width, packed, out.as_mut_ptr().add(start));
        out.set_len(start + num_values * word_size);
    }
    Ok(())
}

/// Packs the lowest `width` bits of up to 1024 values; missing ones count as 0.
///
/// Widths above the word's own are taken as the word's own.
pub fn pack_block<W: Word>(width: usize, values: &[W], out: &mut Vec<u8>) {
    let mut block = [W::default(); BLOCK];
    let values = if values.len() == BLOCK && cfg!(target_endian = "little") {
        values
    } else {
        block
            .iter_mut()
            .zip(values)
            .for_each(|(to, from)| *to = from_little_endian(*from));
        &block
    };
    pack_bytes::<W>(width, bytes(values), out);
}

/// As [`pack_block`], from the little-endian bytes of 1024 values.
pub(crate) fn pack_bytes<W: Word>(width: usize, values: &[u8], out: &mut Vec<u8>) {
    let width = width.min(W::BITS);
    let start = out.len();
    out.resize(start.saturating_add(packed_size(width)), 0);
    let values = values.as_chunks().0;
    let packed = out.get_mut(start..).unwrap_or_default().as_chunks_mut().0;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { pack_avx2::<W>(width, values, packed) };
    }
    rows::pack::<W>(width, values, packed);
}

/// Unpacks a block onto the little-endian bytes of its 1024 values.
///
/// # Safety
///
/// The bytes of 1024 words from `out` on are for this function to write.
unsafe fn unpack_to<W: Word>(width: usize, packed: &[u8], out: *mut u8) {
    let packed = packed.as_chunks().0;
    let store = |place: usize, row: Row| {
        debug_assert!(place < W::BITS);
        // SAFETY: `W::BITS` rows are the bytes of 1024 words, and `place` is below `W::BITS`; a row of bytes needs no alignment.
        unsafe { out.cast::<Row>().add(place).write(row) };
    };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { unpack_avx2::<W>(width, packed, store) };
    }
    rows::unpack::<W>(width, packed, store);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn unpack_avx2<W: Word>(width: usize, packed: &[Row], store: impl Fn(usize, Row)) {
    rows::unpack::<W>(width, packed, store);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pack_avx2<W: Word>(width: usize, values: &[Row], packed: &mut [Row]) {
    rows::pack::<W>(width, values, packed);
}

/// The bytes of words as they are in memory.
fn bytes<W: Word>(words: &[W]) -> &[u8] {
    // SAFETY: the pointer and the size are those of the slice. A `Word` is one of four integers (the trait is sealed), which have no
    // padding, so all bytes are initialised, and a byte may be anywhere.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes of words as they are in memory, mutable.
fn bytes_mut<W: Word>(words: &mut [W]) -> &mut [u8] {
    // SAFETY: as in `bytes`; the slice is borrowed for as long, and any bytes are a valid integer.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// The word whose bytes in memory are the little-endian ones of `word`, and back.
fn from_little_endian<W: Word>(word: W) -> W {
    let mut swapped = word;
    let memory = bytes_mut(std::slice::from_mut(&mut swapped));
    memory
        .iter_mut()
        .zip(word.to_bytes().as_ref())
        .for_each(|(to, from)| *to = *from);
    swapped
}
