//! JSON text to values, and values to JSONB.
//!
//! Beside JSON it takes what pylance takes: numbers without a JSON form (NaN, Infinity), in hexadecimal, with a sign or without digits on one
//! side of the point; texts in single quotes, keys without any; items of an array that are left out, and an empty text, as null.

use std::collections::BTreeMap;

use super::number::Number;
use super::{JsonResult, DEPTH_LIMIT};

/// The greatest length that an entry can state.
const LONGEST: usize = (1 << 28) - 1;

/// A value of JSON.
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

/// The value of a whole text.
pub(super) fn parse(text: &str) -> JsonResult<Value> {
    let mut parser = Parser { text, at: 0 };
    parser.blank();
    if parser.at == text.len() {
        return Ok(Value::Null);
    }
    let value = parser.value(0)?;
    parser.blank();
    if parser.at < text.len() {
        return Err(parser.wrong("the end of the text"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c)) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &str) -> String {
        match self.rest().chars().next() {
            Some(found) => format!("expected {expected} at byte {}, found {found:?}", self.at),
            None => format!("expected {expected}, found the end of the text at byte {}", self.at),
        }
    }

    fn take(&mut self, wanted: u8, expected: &str) -> JsonResult<()> {
        if self.peek() != Some(wanted) {
            return Err(self.wrong(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> JsonResult<Value> {
        if depth > DEPTH_LIMIT {
            return Err(format!("expected at most {DEPTH_LIMIT} levels of nesting, found more"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(quote @ (b'"' | b'\'')) => self.string(quote).map(Value::Text),
            Some(b'0'..=b'9' | b'+' | b'-' | b'.') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> JsonResult<Value> {
        let known = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("nan", Value::Number(Number::Float(f64::NAN))),
            ("infinity", Value::Number(Number::Float(f64::INFINITY))),
        ];
        for (word, value) in known {
            let found = self.rest().get(..word.len());
            if found.is_some_and(|found| found.eq_ignore_ascii_case(word)) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("a value"))
    }

    fn number(&mut self) -> JsonResult<Value> {
        let rest = self.rest();
        if let Some((length, number)) = Number::parse_hexadecimal(rest) {
            self.at += length;
            return Ok(Value::Number(number));
        }
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'))
            .count();
        let text = rest.get(..length).unwrap_or_default();
        if let Some(number) = Number::parse(text) {
            self.at += length;
            return Ok(Value::Number(number));
        }
        let word = |word: &str| {
            let found = rest.get(1..=word.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(word))
        };
        let (length, number) = match text {
            "-" if word("infinity") => (9, f64::NEG_INFINITY),
            "+" if word("infinity") => (9, f64::INFINITY),
            "+" if word("nan") => (4, f64::NAN),
            _ => return Err(self.wrong("a number")),
        };
        self.at += length;
        Ok(Value::Number(Number::Float(number)))
    }

    fn array(&mut self, depth: usize) -> JsonResult<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.blank();
            // A value that is left out is null, as pylance has it, after the last comma too.
            items.push(match self.peek() {
                Some(b',' | b']') => Value::Null,
                _ => self.value(depth + 1)?,
            });
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.take(b']', "',' or ']'")?;
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> JsonResult<Value> {
        self.at += 1;
        let mut items = BTreeMap::new();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(items));
        }
        loop {
            self.blank();
            let key = self.key()?;
            self.blank();
            self.take(b':', "':'")?;
            self.blank();
            let value = self.value(depth + 1)?;
            if items.contains_key(&key) {
                return Err(format!("duplicate object attribute {key:?}, expected each key once"));
            }
            items.insert(key, value);
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.take(b'}', "',' or '}'")?;
        Ok(Value::Object(items))
    }

    fn key(&mut self) -> JsonResult<String> {
        if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            return self.string(quote);
        }
        let rest = self.rest();
        let is_name = |found: char| found.is_alphanumeric() || matches!(found, '_' | '$');
        let length = rest.find(|found| !is_name(found)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        if name.is_empty() || name.starts_with(char::is_numeric) {
            return Err(self.wrong("a key"));
        }
        let name = name.to_owned();
        self.at += length;
        Ok(name)
    }

    fn string(&mut self, quote: u8) -> JsonResult<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find([char::from(quote), '\\']).unwrap_or(rest.len());
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(found) if found == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(_) => self.escape(&mut out)?,
                None => return Err(self.wrong(&format!("{:?}", char::from(quote)))),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> JsonResult<()> {
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match escaped {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(out),
            _ => return Err(self.wrong("an escape of JSON")),
        };
        self.at += 2;
        out.push(plain);
        Ok(())
    }

    /// Four hexadecimal digits. Halves of a pair that lack the other half stay as they are written: no text can hold them.
    fn unicode(&mut self, out: &mut String) -> JsonResult<()> {
        let first = self
            .unit(self.at)
            .ok_or_else(|| self.wrong("an escape of four hexadecimal digits"))?;
        let mut length = 6;
        let mut decoded = char::from_u32(first);
        if (0xd800..0xdc00).contains(&first) {
            if let Some(second) = self.unit(self.at + 6) {
                length = 12;
                if (0xdc00..0xe000).contains(&second) {
                    decoded = char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                }
            }
        }
        match decoded {
            Some(decoded) => out.push(decoded),
            None => out.push_str(self.text.get(self.at..self.at + length).unwrap_or_default()),
        }
        self.at += length;
        Ok(())
    }

    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| all)
    }
}

impl Value {
    /// Appends the JSONB of the whole value.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> JsonResult<()> {
        if matches!(self, Value::Array(_) | Value::Object(_)) {
            return self.payload(out);
        }
        out.extend(0x2000_0000_u32.to_be_bytes());
        let place = out.len();
        out.extend([0; 4]);
        self.entry(place, out)
    }

    /// Appends the payload, and writes its entry to the place that was kept for it.
    fn entry(&self, place: usize, out: &mut Vec<u8>) -> JsonResult<()> {
        let kind = match self {
            Value::Null => 0,
            Value::Text(_) => 1,
            Value::Number(_) => 2,
            Value::Bool(false) => 3,
            Value::Bool(true) => 4,
            Value::Array(_) | Value::Object(_) => 5,
        };
        let start = out.len();
        self.payload(out)?;
        let length = out.len() - start;
        put(out, place, kind, length)
    }

    fn payload(&self, out: &mut Vec<u8>) -> JsonResult<()> {
        match self {
            Value::Null | Value::Bool(_) => {}
            Value::Text(text) => out.extend(text.as_bytes()),
            Value::Number(number) => number.write(out),
            Value::Array(items) => {
                let places = head(out, 0x8000_0000, items.len(), items.len())?;
                for (item, place) in items.iter().zip((places..).step_by(4)) {
                    item.entry(place, out)?;
                }
            }
            Value::Object(items) => {
                let places = head(out, 0x4000_0000, items.len(), 2 * items.len())?;
                for (key, place) in items.keys().zip((places..).step_by(4)) {
                    out.extend(key.as_bytes());
                    put(out, place, 1, key.len())?;
                }
                for (value, place) in items.values().zip((places + 4 * items.len()..).step_by(4)) {
                    value.entry(place, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends a container's head and room for its entries, and returns where these begin.
fn head(out: &mut Vec<u8>, kind: u32, count: usize, entries: usize) -> JsonResult<usize> {
    let count = u32::try_from(count).ok().filter(|count| *count < 1 << 28);
    let count = count.ok_or("expected fewer than 268,435,456 items in a container")?;
    out.extend((kind | count).to_be_bytes());
    let places = out.len();
    out.resize(places + 4 * entries, 0);
    Ok(places)
}

fn put(out: &mut [u8], place: usize, kind: u32, length: usize) -> JsonResult<()> {
    let length = u32::try_from(length).ok().filter(|_| length <= LONGEST);
    let length = length.ok_or_else(|| format!("expected values of at most {LONGEST} bytes, found a longer one"))?;
    if let Some(room) = out.get_mut(place..place + 4) {
        room.copy_from_slice(&((kind << 28) | length).to_be_bytes());
    }
    Ok(())
}
