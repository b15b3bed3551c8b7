//! FSST: string compression with one-byte codes, each of which stands for a symbol of up to eight bytes.
//!
//! ```text
//! symbol table   2312 bytes, padded with zeros
//!   0            number of symbols, 0 to 255
//!   1            terminator: a byte that no symbol of two or more bytes contains; 0 if there is none
//!   2            suffix limit: codes below it are symbols of two bytes that a longer symbol starts with
//!   3            1: the values are codes; 0: they are stored as they are
//!   4            "TSSF" (the magic number 0x46535354)
//!   8            8 bytes for each symbol
//!   8 + 8 n      1 byte for each symbol: its length, 1 to 8
//! value          codes; 255 is an escape: the byte after it stands for itself
//! ```

mod decode;
mod decode_run;
mod decode_values;
mod encode;
mod encode_values;
mod matcher;
mod train;

pub use decode::Decoder;
pub use encode::Encoder;

/// The bytes of a symbol table as files hold it.
pub const SYMBOL_TABLE_SIZE: usize = 8 + 256 * 8 + 256;

const MAGIC: [u8; 4] = *b"TSSF";
const ESCAPE: u8 = 255;
const MAX_SYMBOL: usize = 8;
