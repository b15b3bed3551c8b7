//! Levels of nesting, 64 compared at a time: a bit for each entry, the first one lowest, and what is made of such bits.
#![allow(unsafe_code)]

/// A level as a file stores it: a little-endian integer.
pub type Level = [u8; 2];

/// Entries that a word has bits of.
pub const WORD: usize = 64;

/// What of an entry is compared: a repetition level of `least` at least, a definition level of `most` at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For repetition levels.
    pub least: u16,
    /// For definition levels.
    pub most: u16,
}

/// A bit for each of `entries` entries: whether it is within the bounds. Levels that are not given are within them; bits behind the last
/// entry are 0, as those of levels that are missing.
pub fn within(entries: usize, rep: Option<&[Level]>, def: Option<&[Level]>, bounds: Bounds) -> Vec<u64> {
    let mut words = vec![u64::MAX; entries.div_ceil(WORD)];
    if let (Some(last), rest @ 1..) = (words.last_mut(), entries % WORD) {
        *last = (1 << rest) - 1;
    }
    if let Some(rep) = rep {
        keep(rep, Side::AtLeast(bounds.least), &mut words);
    }
    if let Some(def) = def {
        keep(def, Side::AtMost(bounds.most), &mut words);
    }
    words
}

/// Takes away the bits of entries whose level is `level`.
pub fn without(levels: &[Level], level: u16, words: &mut [u64]) {
    keep(levels, Side::Not(level), words);
}

/// How many bits are set.
pub fn count(words: &[u64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor counts bits, as was just asked.
        return unsafe { count_popcnt(words) };
    }
    count_by(words)
}

/// A place among the items of lists.
pub trait Place: Copy {
    /// The place as this type has it, of which higher bits are cut off.
    fn of(place: i64) -> Self;
}

impl Place for i32 {
    #[inline(always)]
    fn of(place: i64) -> i32 {
        let [first, second, third, fourth, ..] = place.to_le_bytes();
        i32::from_le_bytes([first, second, third, fourth])
    }
}

impl Place for i64 {
    #[inline(always)]
    fn of(place: i64) -> i64 {
        place
    }
}

/// Appends where each list starts among its items. A list starts at each entry with a bit in `lists`, and an item at each with one in
/// `inside`, or at each of the `entries` where that is not given. Returns the items up to the last entry, after `items_before` others.
pub fn append_starts<P: Place>(
    lists: &[u64],
    inside: Option<&[u64]>,
    entries: usize,
    items_before: i64,
    places: &mut Vec<P>,
) -> i64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has all of them, as was just asked.
        return unsafe { append_starts_bmi2(lists, inside, entries, items_before, places) };
    }
    append_starts_by(lists, inside, entries, items_before, places)
}

/// The largest of some levels, 0 where there are none.
pub fn largest(levels: &[Level]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { largest_avx2(levels) };
    }
    largest_of(levels)
}

/// Those of the bits whose place has a bit in `chosen`, one behind the other, in words; and how many they are.
pub fn chosen(bits: &[u64], chosen: &[u64]) -> (Vec<u64>, usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has BMI2, as was just asked.
        return unsafe { chosen_bmi2(bits, chosen) };
    }
    chosen_by(bits, chosen, portable_extract)
}

/// What a level is compared with.
#[derive(Clone, Copy)]
enum Side {
    AtLeast(u16),
    AtMost(u16),
    Not(u16),
}

/// Keeps the bits of the entries whose level is as asked.
fn keep(levels: &[Level], side: Side, words: &mut [u64]) {
    let (whole, rest) = levels.as_chunks::<WORD>();
    let (whole_words, others) = words.split_at_mut(whole.len().min(words.len()));
    keep_whole(whole, side, whole_words);
    if let Some((word, others)) = others.split_first_mut() {
        let mut padded = [[0; 2]; WORD];
        padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        keep_whole(&[padded], side, std::slice::from_mut(word));
        *word &= (1_u64 << rest.len()) - 1;
        others.fill(0);
    }
}

fn keep_whole(levels: &[[Level; WORD]], side: Side, words: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { keep_avx2(levels, side, words) };
    }
    keep_portable(levels, side, words);
}

fn keep_portable(levels: &[[Level; WORD]], side: Side, words: &mut [u64]) {
    for (word, levels) in words.iter_mut().zip(levels) {
        *word &= match side {
            Side::AtLeast(bound) => flags(levels, |level| level >= bound),
            Side::AtMost(bound) => flags(levels, |level| level <= bound),
            Side::Not(other) => flags(levels, |level| level != other),
        };
    }
}

/// A bit for each level that is as asked.
fn flags(levels: &[Level; WORD], is: impl Fn(u16) -> bool) -> u64 {
    let mut flags = [0_u8; WORD];
    for (flag, level) in flags.iter_mut().zip(levels) {
        *flag = u8::from(is(u16::from_le_bytes(*level)));
    }
    // Eight bytes of 0 or 1 become bits: each is multiplied to its place in the highest byte.
    let (eights, _) = flags.as_chunks::<8>();
    let pack = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.iter().rev().fold(0, |word, eight| word << 8 | pack(eight))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn keep_avx2(levels: &[[Level; WORD]], side: Side, words: &mut [u64]) {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi16, _mm256_max_epu16, _mm256_min_epu16, _mm256_movemask_epi8, _mm256_packs_epi16,
        _mm256_permute4x64_epi64, _mm256_set1_epi16,
    };
    /// The levels in the lanes of four registers.
    #[target_feature(enable = "avx2")]
    fn lanes(levels: &[Level; WORD]) -> [__m256i; 4] {
        use std::arch::x86_64::_mm256_loadu_si256;
        let at = levels.as_ptr().cast::<__m256i>();
        // SAFETY: 64 levels of two bytes are the bytes of four registers, and are loaded from wherever they are.
        unsafe {
            [
                _mm256_loadu_si256(at),
                _mm256_loadu_si256(at.add(1)),
                _mm256_loadu_si256(at.add(2)),
                _mm256_loadu_si256(at.add(3)),
            ]
        }
    }
    /// The bits of four registers of lanes that are all ones or all zeros.
    #[target_feature(enable = "avx2")]
    fn bits([first, second, third, fourth]: [__m256i; 4]) -> u64 {
        // Halves of registers are packed with each other: the order of their quarters is 0, 2, 1, 3 then.
        let low = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_packs_epi16(first, second));
        let high = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_packs_epi16(third, fourth));
        let (low, high) = (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high));
        u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
    }
    /// Keeps the bits of the lanes for which a comparison is all ones.
    macro_rules! keep {
        ($lane:ident => $compared:expr) => {
            for (word, levels) in words.iter_mut().zip(levels) {
                let mut found = lanes(levels);
                for $lane in &mut found {
                    *$lane = $compared;
                }
                *word &= bits(found);
            }
        };
    }
    let all = |level: u16| _mm256_set1_epi16(level.cast_signed());
    match side {
        Side::AtLeast(bound) => {
            let bound = all(bound);
            keep!(lane => _mm256_cmpeq_epi16(_mm256_max_epu16(*lane, bound), *lane));
        }
        Side::AtMost(bound) => {
            let bound = all(bound);
            keep!(lane => _mm256_cmpeq_epi16(_mm256_min_epu16(*lane, bound), *lane));
        }
        Side::Not(other) => {
            let (other, none) = (all(other), all(0));
            keep!(lane => _mm256_cmpeq_epi16(_mm256_cmpeq_epi16(*lane, other), none));
        }
    }
}

#[inline(always)]
fn count_by(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_popcnt(words: &[u64]) -> usize {
    count_by(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,popcnt")]
fn append_starts_bmi2<P: Place>(
    lists: &[u64],
    inside: Option<&[u64]>,
    entries: usize,
    items_before: i64,
    places: &mut Vec<P>,
) -> i64 {
    append_starts_by(lists, inside, entries, items_before, places)
}

#[inline(always)]
fn append_starts_by<P: Place>(
    lists: &[u64],
    inside: Option<&[u64]>,
    entries: usize,
    items_before: i64,
    places: &mut Vec<P>,
) -> i64 {
    let (before, count) = (places.len(), count_by(lists));
    places.reserve(count);
    let mut room = places.spare_capacity_mut().iter_mut();
    let mut items = items_before;
    let mut others = inside.map(<[u64]>::iter);
    let (mut left, mut written) = (entries, 0_usize);
    for lists in lists {
        let inside = others.as_mut().map(|inside| inside.next().copied().unwrap_or(0));
        let inside = inside.unwrap_or(u64::MAX);
        let mut lists = *lists;
        while lists != 0 {
            let before = inside & (lists & lists.wrapping_neg()).wrapping_sub(1);
            lists &= lists.wrapping_sub(1);
            if let Some(place) = room.next() {
                place.write(P::of(items.wrapping_add(i64::from(before.count_ones()))));
                written += 1;
            }
        }
        let here = (inside.count_ones() as usize).min(left);
        items = items.wrapping_add(i64::try_from(here).unwrap_or(0));
        left = left.saturating_sub(WORD);
    }
    debug_assert_eq!(written, count);
    // SAFETY: `written` places behind those that were there are written, in order, and there is memory for them.
    unsafe { places.set_len(before + written) };
    items
}

#[inline(always)]
fn largest_of(levels: &[Level]) -> u16 {
    levels
        .iter()
        .fold(0, |largest, level| largest.max(u16::from_le_bytes(*level)))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn largest_avx2(levels: &[Level]) -> u16 {
    largest_of(levels)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,popcnt")]
fn chosen_bmi2(bits: &[u64], chosen: &[u64]) -> (Vec<u64>, usize) {
    chosen_by(bits, chosen, |bits, chosen| std::arch::x86_64::_pext_u64(bits, chosen))
}

#[inline(always)]
fn chosen_by(bits: &[u64], chosen: &[u64], extract: impl Fn(u64, u64) -> u64) -> (Vec<u64>, usize) {
    let mut out = Vec::with_capacity(bits.len().saturating_add(1));
    let (mut word, mut filled, mut total) = (0_u64, 0_u32, 0_usize);
    for (bits, chosen) in bits.iter().zip(chosen) {
        let (next, count) = (extract(*bits, *chosen), chosen.count_ones());
        total = total.saturating_add(count as usize);
        word |= next << filled;
        filled += count;
        if filled >= u64::BITS {
            out.push(word);
            filled -= u64::BITS;
            // The bits of `next` that did not fit: all but `count - filled`.
            word = next.checked_shr(count - filled).unwrap_or(0);
        }
    }
    if filled > 0 {
        out.push(word);
    }
    (out, total)
}

fn portable_extract(bits: u64, chosen: u64) -> u64 {
    match chosen {
        u64::MAX => bits,
        0 => 0,
        mut left => {
            let (mut word, mut place) = (0, 0);
            while left != 0 {
                word |= (bits >> left.trailing_zeros() & 1) << place;
                left &= left - 1;
                place += 1;
            }
            word
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits_of(words: &[u64], len: usize) -> Vec<bool> {
        (0..len)
            .map(|place| {
                words
                    .get(place / WORD)
                    .is_some_and(|word| word >> (place % WORD) & 1 == 1)
            })
            .collect()
    }

    fn levels() -> impl Strategy<Value = Vec<u16>> {
        let level = prop_oneof![0_u16..6, Just(u16::MAX), Just(0x7fff), Just(0x8000), any::<u16>()];
        prop::collection::vec(level, 0..300)
    }

    proptest! {
        #[test]
        fn test_bits_say_what_each_level_says(
            rep in levels(), def in levels(), least in prop_oneof![0_u16..6, any::<u16>()], most in prop_oneof![0_u16..6, any::<u16>()],
            sides in 0..4,
        ) {
            let entries = rep.len().min(def.len());
            let stored = |levels: &[u16]| levels[..entries].iter().map(|level| level.to_le_bytes()).collect::<Vec<Level>>();
            let (reps, defs) = (stored(&rep), stored(&def));
            let (has_rep, has_def) = (sides & 1 == 1, sides & 2 == 2);
            let bounds = Bounds { least, most };
            let mut words = within(entries, has_rep.then_some(&reps[..]), has_def.then_some(&defs[..]), bounds);
            let is = |place: usize| (!has_rep || rep[place] >= least) && (!has_def || def[place] <= most);
            let wanted: Vec<bool> = (0..entries).map(is).collect();
            prop_assert_eq!(bits_of(&words, entries.div_ceil(WORD) * WORD)[entries..].iter().filter(|bit| **bit).count(), 0);
            prop_assert_eq!(count(&words), wanted.iter().filter(|is| **is).count());
            prop_assert_eq!(bits_of(&words, entries), wanted);
            without(&defs, most, &mut words);
            let wanted: Vec<bool> = (0..entries).map(|place| is(place) && def[place] != most).collect();
            prop_assert_eq!(bits_of(&words, entries), wanted);
            prop_assert_eq!(largest(&defs), def[..entries].iter().copied().max().unwrap_or(0));
        }

        #[test]
        fn test_the_processor_and_plain_code_agree(levels in prop::collection::vec(any::<[[u8; 2]; WORD]>(), 0..4), bound: u16) {
            for side in [Side::AtLeast(bound), Side::AtMost(bound), Side::Not(bound), Side::Not(0)] {
                let (mut fast, mut plain) = (vec![u64::MAX; levels.len()], vec![u64::MAX; levels.len()]);
                keep_whole(&levels, side, &mut fast);
                keep_portable(&levels, side, &mut plain);
                prop_assert_eq!(fast, plain);
            }
        }

        #[test]
        fn test_lists_start_behind_the_items_before_them(
            words in prop::collection::vec((any::<u64>(), prop_oneof![Just(u64::MAX), Just(0), any::<u64>()]), 0..9),
            last in 1..=WORD, has_inside: bool, items_before in prop_oneof![Just(0_i64), Just(i64::from(i32::MAX)), any::<i64>()],
        ) {
            let entries = (words.len() * WORD).saturating_sub(WORD - last);
            let (mut lists, mut inside): (Vec<u64>, Vec<u64>) = words.iter().copied().unzip();
            for words in [&mut lists, &mut inside] {
                if let Some(word) = words.last_mut() {
                    *word &= u64::MAX >> (WORD - last);
                }
            }
            let bits = (bits_of(&lists, entries), bits_of(&inside, entries));
            let (mut items, mut expected) = (items_before, vec![-1_i64]);
            for (list, item) in bits.0.into_iter().zip(bits.1) {
                if list {
                    expected.push(items);
                }
                items = items.wrapping_add(i64::from(item || !has_inside));
            }
            let inside = has_inside.then_some(&inside[..]);
            let (mut fast, mut plain, mut narrow) = (vec![-1_i64], vec![-1_i64], vec![-1_i32]);
            prop_assert_eq!(append_starts(&lists, inside, entries, items_before, &mut fast), items);
            prop_assert_eq!(append_starts_by(&lists, inside, entries, items_before, &mut plain), items);
            append_starts(&lists, inside, entries, items_before, &mut narrow);
            prop_assert_eq!(narrow, expected.iter().map(|place| i32::of(*place)).collect::<Vec<_>>());
            prop_assert_eq!(&fast, &expected);
            prop_assert_eq!(plain, expected);
        }

        #[test]
        fn test_chosen_bits_come_one_behind_the_other(
            words in prop::collection::vec((any::<u64>(), prop_oneof![Just(0), Just(u64::MAX), Just(1_u64 << 63), any::<u64>()]), 0..12),
        ) {
            let (bits, mask): (Vec<u64>, Vec<u64>) = words.iter().copied().unzip();
            let len = words.len() * WORD;
            let wanted: Vec<bool> = bits_of(&bits, len).into_iter().zip(bits_of(&mask, len)).filter(|(_, is)| *is).map(|(bit, _)| bit).collect();
            let (found, total) = chosen(&bits, &mask);
            prop_assert_eq!(total, wanted.len());
            prop_assert_eq!(found.len(), total.div_ceil(WORD));
            prop_assert_eq!(bits_of(&found, total), wanted);
            prop_assert_eq!((found, total), chosen_by(&bits, &mask, portable_extract));
        }
    }

    #[test]
    fn test_levels_that_are_missing_are_not_within() {
        let levels = [[0, 0]; 70];
        let bounds = Bounds { least: 0, most: 0 };
        let words = within(200, Some(&levels), None, bounds);
        assert_eq!(words, [u64::MAX, 0b11_1111, 0, 0]);
        assert_eq!(within(3, Some(&levels), None, bounds), [0b111]);
        assert!(within(0, None, None, bounds).is_empty());
    }
}
