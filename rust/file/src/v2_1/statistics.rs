//! Statistics of a page's fixed-width values for choosing an encoding, computed in one pass.

use esker_codec::bitpack::{packed_size, Word, BLOCK};

/// Of so many blocks one is looked at first for runs.
const SAMPLED: usize = 8;

/// Facts about values of one width.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics {
    /// Runs of equal values; an estimate where they are not even two values long.
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
    let blocks = words.chunks(BLOCK);
    Statistics {
        runs: runs::<W>(words),
        packed_bytes: blocks
            .map(|block| W::BITS / 8 + packed_size(W::BITS - any::<W>(block).leading_zeros()))
            .sum(),
    }
}

/// The bits that any word has.
fn any<W: Word>(words: &[W::Bytes]) -> W {
    let mut any = W::default();
    for word in words {
        any = any | W::from_bytes(*word);
    }
    any
}

/// How many runs of equal words there are. Values that hardly repeat are most columns: some blocks tell that.
fn runs<W: Word>(words: &[W::Bytes]) -> usize {
    if words.is_empty() {
        return 0;
    }
    let blocks = words.chunks(BLOCK).step_by(SAMPLED);
    let (mut looked, mut changed) = (0_usize, 0_usize);
    for block in blocks.filter(|_| words.len() > SAMPLED * BLOCK) {
        looked += block.len();
        changed += changes::<W>(block);
    }
    if changed * 2 > looked {
        let runs = changed as u128 * words.len() as u128 / looked as u128;
        return usize::try_from(runs).unwrap_or(words.len());
    }
    1 + changes::<W>(words)
}

fn changes<W: Word>(words: &[W::Bytes]) -> usize {
    let Some((first, rest)) = words.split_first() else {
        return 0;
    };
    let (mut before, mut changes) = (W::from_bytes(*first), 0);
    for word in rest {
        let word = W::from_bytes(*word);
        changes += usize::from(word != before);
        before = word;
    }
    changes
}

/// Bits that the largest value needs.
pub(crate) fn max_bit_width(bits: usize, bytes: &[u8]) -> usize {
    fn of_words<W: Word>(bytes: &[u8]) -> usize {
        W::BITS - any::<W>(W::words(bytes)).leading_zeros()
    }
    match bits {
        8 => of_words::<u8>(bytes),
        16 => of_words::<u16>(bytes),
        32 => of_words::<u32>(bytes),
        64 => of_words::<u64>(bytes),
        _ => bits,
    }
}
