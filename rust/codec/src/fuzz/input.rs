//! Parses parameters from the first bytes of a fuzzing input.

/// The rest of an input.
pub(super) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *byte
    }

    /// A number below 65536.
    pub fn number(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// A number of any size: one in eight is near the maximum.
    pub fn large_number(&mut self) -> usize {
        let number = self.number();
        if number % 8 == 7 {
            usize::MAX - number / 8
        } else {
            number / 8
        }
    }

    /// A valid width of values, and now and then an invalid one.
    pub fn bits(&mut self) -> u64 {
        let byte = self.byte();
        match byte % 16 {
            15 => u64::from(byte),
            other => 8 << (other % 4),
        }
    }

    /// The next bytes, at most `length`.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}
