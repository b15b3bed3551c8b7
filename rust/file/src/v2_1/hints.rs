//! What a field's metadata asks of its encoding: the keys `lance-encoding:...`.

use super::general::encode::Scheme;
use crate::error::{FileError, Result};
use crate::schema::Field;

/// What is asked for; what is not is decided by the values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Hints {
    pub(crate) compression: Option<Compression>,
    pub(crate) rle_threshold: Option<f64>,
    pub(crate) split_bytes: Option<bool>,
    pub(crate) dict_divisor: Option<u64>,
    pub(crate) dict_size_ratio: Option<f64>,
    pub(crate) structure: Option<Structure>,
    pub(crate) dict_values: Option<Compression>,
}

/// A compression that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// The values as they are.
    Plain,
    /// Strings of symbols.
    Fsst,
    /// A general scheme.
    General(Scheme),
}

/// A layout that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structure {
    MiniBlock,
    FullZip,
}

impl Hints {
    /// Reads the metadata of a field that is called `name`, on top of what fields around it ask for.
    pub(crate) fn of(field: &Field, name: &str, around: &Hints) -> Result<Hints> {
        let key = |key: &'static str| Key { field, name, key };
        let level = key("compression-level").parsed("a whole number", |_: &i32| true)?;
        let mut hints = around.clone();
        if let Some(compression) = key("compression").compression(level)? {
            hints.compression = Some(compression);
        }
        let share = |value: &f64| (0.0..=1.0).contains(value);
        if let Some(threshold) = key("rle-threshold").parsed("a number from 0 to 1", share)? {
            hints.rle_threshold = Some(threshold);
        }
        match key("bss").text()? {
            None => {}
            Some("on") => hints.split_bytes = Some(true),
            Some("off") => hints.split_bytes = Some(false),
            Some("auto") => hints.split_bytes = None,
            Some(found) => return Err(key("bss").wrong("off, on or auto", found)),
        }
        if let Some(divisor) = key("dict-divisor").parsed("a whole number from 1", |value: &u64| *value > 0)? {
            hints.dict_divisor = Some(divisor);
        }
        let ratio = |value: &f64| *value > 0.0 && *value <= 1.0;
        if let Some(ratio) = key("dict-size-ratio").parsed("a number above 0, at most 1", ratio)? {
            hints.dict_size_ratio = Some(ratio);
        }
        match key("structural-encoding")
            .text()?
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None => {}
            Some("miniblock") => hints.structure = Some(Structure::MiniBlock),
            Some("fullzip") => hints.structure = Some(Structure::FullZip),
            Some(found) => return Err(key("structural-encoding").wrong("miniblock or fullzip", found)),
        }
        let level = key("dict-values-compression-level").parsed("a whole number", |_: &i32| true)?;
        if let Some(compression) = key("dict-values-compression").compression(level)? {
            if compression == Compression::Fsst {
                return Err(key("dict-values-compression").wrong("none, lz4 or zstd", "fsst"));
            }
            hints.dict_values = Some(compression);
        }
        Ok(hints)
    }

    /// The general scheme that is asked for.
    pub(crate) fn general(&self) -> Option<Scheme> {
        match self.compression {
            Some(Compression::General(scheme)) => Some(scheme),
            _ => None,
        }
    }
}

/// One key of a field's metadata.
struct Key<'a> {
    field: &'a Field,
    name: &'a str,
    key: &'static str,
}

impl<'a> Key<'a> {
    fn full(&self) -> String {
        format!("lance-encoding:{}", self.key)
    }

    fn wrong(&self, expected: &str, found: &str) -> FileError {
        FileError::invalid(format!(
            "column '{}': expected {} to be {expected}, found '{found}'",
            self.name,
            self.full()
        ))
    }

    fn text(&self) -> Result<Option<&'a str>> {
        match self.field.metadata.get(&self.full()) {
            None => Ok(None),
            Some(value) => match std::str::from_utf8(value) {
                Ok(text) => Ok(Some(text.trim())),
                Err(_) => Err(self.wrong("text", "bytes that are not UTF-8")),
            },
        }
    }

    fn parsed<T: std::str::FromStr>(&self, expected: &str, good: impl Fn(&T) -> bool) -> Result<Option<T>> {
        let Some(text) = self.text()? else { return Ok(None) };
        match text.parse().ok().filter(good) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(expected, text)),
        }
    }

    fn compression(&self, level: Option<i32>) -> Result<Option<Compression>> {
        Ok(match self.text()? {
            None => None,
            Some("none") => Some(Compression::Plain),
            Some("fsst") => Some(Compression::Fsst),
            Some("lz4") => Some(Compression::General(Scheme {
                name: "lz4",
                level: None,
            })),
            Some("zstd") => Some(Compression::General(Scheme { name: "zstd", level })),
            Some(found) => return Err(self.wrong("none, lz4, zstd or fsst", found)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(key: &str, value: &str) -> Result<Hints> {
        let mut field = Field::default();
        field.metadata.insert(format!("lance-encoding:{key}"), value.into());
        Hints::of(&field, "a.b", &Hints::default())
    }

    #[test]
    fn test_what_is_asked_for_is_understood() {
        assert_eq!(
            hints("compression", "none").unwrap().compression,
            Some(Compression::Plain)
        );
        assert_eq!(hints("rle-threshold", "0.25").unwrap().rle_threshold, Some(0.25));
        assert_eq!(hints("bss", "on").unwrap().split_bytes, Some(true));
        assert_eq!(
            hints("structural-encoding", "FullZip").unwrap().structure,
            Some(Structure::FullZip)
        );
    }

    #[test]
    fn test_what_makes_no_sense_names_column_and_key() {
        for (key, value) in [
            ("compression", "gzip"),
            ("compression-level", "high"),
            ("rle-threshold", "2"),
            ("bss", "yes"),
            ("dict-divisor", "0"),
            ("dict-size-ratio", "0"),
            ("structural-encoding", "columnar"),
            ("dict-values-compression", "fsst"),
        ] {
            let error = hints(key, value).unwrap_err().to_string();
            assert!(
                error.contains("'a.b'") && error.contains(key) && error.contains(value),
                "{error}"
            );
        }
    }
}
