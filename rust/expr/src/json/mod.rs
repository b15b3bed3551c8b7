//! JSON columns: text as users have it, JSONB as files hold it, and paths into it.
//!
//! ```text
//! value  = container | 0x20000000, entry, payload                     a scalar stands in a container of its own
//! array  = 0x80000000 | count, entry of each item, payloads
//! object = 0x40000000 | count, entry of each key, entry of each value, keys, payloads      keys sorted by their bytes
//! entry  = kind << 28 | length of the payload       0 null, 1 text, 2 number, 3 false, 4 true, 5 container
//! number = 0x00 zero | 0x10 NaN | 0x20 infinity | 0x30 -infinity | 0x40 int | 0x50 uint, 1, 2, 4 or 8 bytes | 0x60 float, 8 bytes
//! ```
//!
//! All numbers are big-endian.

mod batch;
mod number;
mod parse;
mod path;
mod print;
mod view;

pub use batch::{to_jsonb, to_text};
pub(crate) use number::{rounded, Number};
pub(crate) use path::Path;
pub(crate) use print::print;
pub(crate) use view::{Node, View};

/// The deepest nesting of text and of JSONB: each level takes a level of the thread's stack.
pub(crate) const DEPTH_LIMIT: usize = 500;

/// What is wrong with a value, without its place.
pub(crate) type JsonResult<T> = std::result::Result<T, String>;

/// The JSONB of a text.
pub(crate) fn encode(text: &str) -> JsonResult<Vec<u8>> {
    let mut out = Vec::new();
    parse::parse(text)?.write(&mut out)?;
    Ok(out)
}

/// The text of a JSONB value.
pub(crate) fn decode(bytes: &[u8]) -> JsonResult<String> {
    let mut out = String::new();
    print(&View::root(bytes)?, &mut out)?;
    Ok(out)
}
