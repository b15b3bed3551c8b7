//! Statistics of a page's fixed-width values for choosing an encoding, computed in one pass.

use esker_codec::bitpack::{packed_size, Word, BLOCK};

/// Facts about values of one width.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics {
    /// Runs of equal values.
    pub(crate) runs: usize,
    /// Bytes of the values bit packed, each 1,024 in a width of their own and with a word that says it.
    pub(crate) packed_bytes: usize,
}

/// Facts about the values; none for widths that are not those of a word.
pub(crate) fn statistics(bits: usize, bytes: &[u8]) -> Option<Statistics> {
    match bits {
        8 => Some(of_words::<u8>(bytes)),
        16 => Some(of_words::<u16>(bytes)),
        32 => Some(of_words::<u32>(bytes)),
        64 => Some(of_words::<u64>(bytes)),
        _ => None,
    }
}

fn of_words<W: Word>(bytes: &[u8]) -> Statistics {
    let words = W::words(bytes);
    let mut out = Statistics {
        runs: usize::from(!words.is_empty()),
        packed_bytes: 0,
    };
    let mut last = words.first().map(|word| W::from_bytes(*word)).unwrap_or_default();
    for block in words.chunks(BLOCK) {
        let any = block.iter().fold(W::default(), |any, word| any | W::from_bytes(*word));
        let first = block.first().map(|word| W::from_bytes(*word)).unwrap_or_default();
        let neighbours = block.iter().zip(block.iter().skip(1));
        let changes: usize = neighbours
            .map(|(a, b)| usize::from(W::from_bytes(*a) != W::from_bytes(*b)))
            .sum();
        out.runs += changes + usize::from(first != last);
        last = block.last().map(|word| W::from_bytes(*word)).unwrap_or_default();
        out.packed_bytes += W::BITS / 8 + packed_size(W::BITS - any.leading_zeros());
    }
    out
}

/// Bits that the largest value needs.
pub(crate) fn max_bit_width(bits: usize, bytes: &[u8]) -> usize {
    fn of_words<W: Word>(bytes: &[u8]) -> usize {
        let words = W::words(bytes).iter();
        let any = words.fold(W::default(), |any, word| any | W::from_bytes(*word));
        W::BITS - any.leading_zeros()
    }
    match bits {
        8 => of_words::<u8>(bytes),
        16 => of_words::<u16>(bytes),
        32 => of_words::<u32>(bytes),
        64 => of_words::<u64>(bytes),
        _ => bits,
    }
}
