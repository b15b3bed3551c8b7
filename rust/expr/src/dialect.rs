//! The SQL that filters are written in: pylance's, so that a filter means the same in both.
//!
//! `` `name` `` quotes a column, `'text'` and `"text"` are strings, names keep their case.

use sqlparser::dialect::Dialect;
use sqlparser::keywords::{Keyword, RESERVED_FOR_IDENTIFIER};

/// Backticks quote names; both other quotes hold strings.
#[derive(Debug, Default)]
pub(crate) struct FilterDialect;

impl Dialect for FilterDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    /// After NOT the parser would try what follows once more as the arguments of a function, at each of the NOTs within one another.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        keyword == Keyword::NOT || RESERVED_FOR_IDENTIFIER.contains(&keyword)
    }
}
