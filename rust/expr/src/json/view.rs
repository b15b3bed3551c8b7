//! A look into JSONB, in place. Any bytes give a value or an error.

use super::number::Number;
use super::{JsonResult, DEPTH_LIMIT};

/// A value within JSONB.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    kind: u32,
    payload: &'a [u8],
    depth: usize,
}

/// What a value is.
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'a str),
    Array(Vec<View<'a>>),
    Object(Vec<(&'a str, View<'a>)>),
}

const CONTAINER: u32 = 5;

impl<'a> View<'a> {
    /// The value that whole bytes hold.
    pub(crate) fn root(bytes: &'a [u8]) -> JsonResult<Self> {
        let (head, rest) = word(bytes)?;
        if head >> 28 != 2 {
            let (kind, payload, depth) = (CONTAINER, bytes, 0);
            return Ok(View { kind, payload, depth });
        }
        let (entry, rest) = word(rest)?;
        let (payload, _) = part(rest, entry)?;
        let (kind, depth) = (entry >> 28, 0);
        Ok(View { kind, payload, depth })
    }

    /// The value itself; the items of a container are views again.
    pub(crate) fn node(&self) -> JsonResult<Node<'a>> {
        Ok(match self.kind {
            0 => Node::Null,
            1 => Node::Text(text(self.payload)?),
            2 => Node::Number(Number::read(self.payload)?),
            3 => Node::Bool(false),
            4 => Node::Bool(true),
            CONTAINER => self.container()?,
            kind => {
                return Err(format!(
                    "found a value of kind {kind} in JSONB; a newer esker may read it"
                ))
            }
        })
    }

    fn container(&self) -> JsonResult<Node<'a>> {
        if self.depth > DEPTH_LIMIT {
            return Err(format!(
                "expected at most {DEPTH_LIMIT} levels of nesting in JSONB, found more"
            ));
        }
        let (head, rest) = word(self.payload)?;
        let count = usize::try_from(head & 0x0fff_ffff).map_err(|_| damaged())?;
        match head >> 28 {
            8 => {
                let (entries, mut rest) = rest.split_at_checked(4 * count).ok_or_else(damaged)?;
                Ok(Node::Array(self.items(entries, &mut rest)?))
            }
            4 => {
                let (keys, rest) = rest.split_at_checked(4 * count).ok_or_else(damaged)?;
                let (entries, mut rest) = rest.split_at_checked(4 * count).ok_or_else(damaged)?;
                let keys = self.items(keys, &mut rest)?;
                let values = self.items(entries, &mut rest)?;
                let keys = keys.into_iter().map(|key| text(key.payload));
                let pairs = keys.zip(values).map(|(key, value)| Ok((key?, value)));
                Ok(Node::Object(pairs.collect::<JsonResult<_>>()?))
            }
            2 if self.depth > 0 => Err("found a scalar's head within JSONB".to_owned()),
            kind => Err(format!("expected an array or an object in JSONB, found kind {kind}")),
        }
    }

    fn items(&self, entries: &[u8], rest: &mut &'a [u8]) -> JsonResult<Vec<View<'a>>> {
        let depth = self.depth + 1;
        let views = entries.chunks_exact(4).map(|entry| {
            let (entry, _) = word(entry)?;
            let (payload, after) = part(rest, entry)?;
            *rest = after;
            let kind = entry >> 28;
            Ok(View { kind, payload, depth })
        });
        views.collect()
    }

    /// The JSONB of this value alone.
    pub(crate) fn to_jsonb(self) -> JsonResult<Vec<u8>> {
        if self.kind == CONTAINER {
            return Ok(self.payload.to_vec());
        }
        let length = u32::try_from(self.payload.len()).map_err(|_| damaged())?;
        let mut out = 0x2000_0000_u32.to_be_bytes().to_vec();
        out.extend(((self.kind << 28) | length).to_be_bytes());
        out.extend(self.payload);
        Ok(out)
    }

    /// The value of a key, or of an index of an array.
    pub(crate) fn get(&self, key: &str) -> JsonResult<Option<View<'a>>> {
        Ok(match self.node()? {
            Node::Object(pairs) => pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value),
            Node::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index).copied()),
            _ => None,
        })
    }
}

fn damaged() -> String {
    "JSONB ends before its values do".to_owned()
}

fn word(bytes: &[u8]) -> JsonResult<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    Ok((u32::from_be_bytes(*word), rest))
}

fn part(bytes: &[u8], entry: u32) -> JsonResult<(&[u8], &[u8])> {
    let length = usize::try_from(entry & 0x0fff_ffff).map_err(|_| damaged())?;
    bytes.split_at_checked(length).ok_or_else(damaged)
}

fn text(bytes: &[u8]) -> JsonResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| format!("expected UTF-8 in JSONB: {error}"))
}
