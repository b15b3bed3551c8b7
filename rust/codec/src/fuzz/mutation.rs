//! Seeded mutations: the same ones in each run.

/// A deterministic stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next_number() % (end.max(1) as u64)).unwrap_or(0)
    }
}

/// Flips one to three bits.
pub fn flip_bits(bytes: &mut [u8], numbers: &mut Numbers) {
    for _ in 0..=numbers.below(3) {
        let (at, bit) = (numbers.below(bytes.len()), numbers.below(8));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }
}

/// Does one of the things that break decoders: flipped bits, extreme numbers, bytes cut out, doubled, or exchanged.
pub fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const EXTREMES: [u64; 8] = [0, 1, 0x7f, 0x8000, 0xffff, 0x7fff_ffff, 0xffff_ffff_ffff, u64::MAX];
    let at = numbers.below(bytes.len());
    let length = 1 + numbers.below(16);
    let end = bytes.len().min(at.saturating_add(length));
    match numbers.below(6) {
        0 | 1 => flip_bits(bytes, numbers),
        2 => {
            let extreme = EXTREMES.get(numbers.below(EXTREMES.len())).copied().unwrap_or_default();
            let width = 1 << numbers.below(4);
            let places = bytes.iter_mut().skip(at).take(width);
            places.zip(extreme.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        3 => {
            bytes.drain(at..end);
        }
        4 => {
            let piece = bytes.get(at..end).unwrap_or_default().to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let other = numbers.below(bytes.len());
            for step in 0..length {
                if at + step < bytes.len() && other + step < bytes.len() {
                    bytes.swap(at + step, other + step);
                }
            }
        }
    }
}
