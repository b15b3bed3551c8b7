//! JSON paths: `$`, `.key`, `:key`, `["key"]`, `[0]`, `[last - 1]`, `[0, 2]`, `[1 to 3]`, `[*]` and `.*`.
//!
//! The `$` may be left out. A step that does not fit a value finds nothing; `[*]` of what is no array is the value itself.

use super::{JsonResult, Node, View};

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    AllKeys,
    AllItems,
    Items(Vec<(Index, Index)>),
}

/// A number from the start, or back from the last item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    First(i64),
    Last(i64),
}

impl Index {
    fn of(self, count: i64) -> i64 {
        match self {
            Index::First(number) => number,
            Index::Last(back) => count.saturating_sub(1).saturating_sub(back),
        }
    }
}

impl Path {
    /// Parses a path.
    pub(crate) fn parse(text: &str) -> JsonResult<Self> {
        let invalid = |why: &str| {
            format!("invalid JSONPath '{text}' (InvalidJsonPath): {why}; expected one such as $.key[0].\"other key\"")
        };
        let mut rest = text.trim();
        let mut steps = Vec::new();
        match rest.strip_prefix('$') {
            Some(after) => rest = after,
            None if rest.is_empty() || rest.starts_with(['.', '[', ':']) => {}
            None => {
                let (step, after) = key(rest).ok_or_else(|| invalid("it does not begin with $ or a key"))?;
                steps.push(step);
                rest = after;
            }
        }
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return Ok(Path { steps });
            }
            if rest.starts_with('?') {
                return Err(invalid(
                    "filters are not supported yet, filter by a column's expression",
                ));
            }
            let (step, after) = match rest.strip_prefix('[') {
                Some(inner) => bracket(inner).ok_or_else(|| invalid("a bracket holds no index, key or *"))?,
                None => {
                    let after = rest.strip_prefix(['.', ':']);
                    let after = after.ok_or_else(|| invalid("a step begins with '.', ':' or '['"))?;
                    key(after).ok_or_else(|| invalid("a key is missing"))?
                }
            };
            steps.push(step);
            rest = after;
        }
    }

    /// The values that the path leads to.
    pub(crate) fn select<'a>(&self, root: View<'a>) -> JsonResult<Vec<View<'a>>> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for view in found {
                step.follow(view, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    fn follow<'a>(&self, view: View<'a>, out: &mut Vec<View<'a>>) -> JsonResult<()> {
        match (self, view.node()?) {
            (Step::Key(key), Node::Object(pairs)) => {
                out.extend(pairs.into_iter().find(|(name, _)| name == key).map(|(_, value)| value));
            }
            (Step::AllKeys, Node::Object(pairs)) => out.extend(pairs.into_iter().map(|(_, value)| value)),
            (Step::AllItems, Node::Array(items)) => out.extend(items),
            (Step::AllItems, _) => out.push(view),
            (Step::Items(ranges), Node::Array(items)) => {
                let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
                for (first, last) in ranges {
                    let (first, last) = (first.of(count).max(0), last.of(count).min(count.saturating_sub(1)));
                    let indices = (first..=last).filter_map(|index| usize::try_from(index).ok());
                    out.extend(indices.filter_map(|index| items.get(index).copied()));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A key behind a dot, and what follows it.
fn key(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((Step::AllKeys, rest));
    }
    if text.starts_with('"') {
        return quoted(text);
    }
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let (name, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    (!name.is_empty()).then(|| (Step::Key(name.to_owned()), rest))
}

fn quoted(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Step::Key(name), text.get(at + 1..)?)),
            '\\' => name.push(letters.next()?.1),
            other => name.push(other),
        }
    }
    None
}

/// What follows `[`, with the text behind `]`.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let text = text.trim_start();
    let (step, rest) = if let Some(rest) = text.strip_prefix('*') {
        (Step::AllItems, rest)
    } else if text.starts_with('"') {
        quoted(text)?
    } else {
        let (inner, _) = text.split_once(']')?;
        let ranges = inner.split(',').map(|part| match part.split_once(" to ") {
            Some((first, last)) => Some((index(first)?, index(last)?)),
            None => index(part).map(|only| (only, only)),
        });
        (Step::Items(ranges.collect::<Option<_>>()?), text.get(inner.len()..)?)
    };
    Some((step, rest.trim_start().strip_prefix(']')?))
}

fn index(text: &str) -> Option<Index> {
    let text = text.trim();
    match text.strip_prefix("last") {
        None => text.parse().ok().map(Index::First),
        Some("") => Some(Index::Last(0)),
        Some(rest) => {
            let back = rest.trim_start().strip_prefix('-')?;
            back.trim().parse::<u32>().ok().map(|back| Index::Last(i64::from(back)))
        }
    }
}
