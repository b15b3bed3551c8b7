//! Dispatches from the width that a file declares to a word type.

use crate::error::CodecError;

/// Evaluates an expression with the word type of `bits` bits bound to a name; an error for other widths.
macro_rules! for_word {
    ($bits:expr, $word:ident => $body:expr) => {
        match $bits {
            8 => {
                type $word = u8;
                $body
            }
            16 => {
                type $word = u16;
                $body
            }
            32 => {
                type $word = u32;
                $body
            }
            64 => {
                type $word = u64;
                $body
            }
            other => Err(unknown_bits(other)),
        }
    };
}
pub(crate) use for_word;

pub(crate) fn unknown_bits(bits: u64) -> CodecError {
    CodecError::Unsupported(format!(
        "expected values of 8, 16, 32 or 64 bits, found {bits} bits; a newer esker may read it"
    ))
}
