//! `SIMILAR TO`: translates SQL's regular expressions to those of the `regex` crate.
//!
//! | SQL | means |
//! |---|---|
//! | `%`, `_` | any text, any character |
//! | `\|` `*` `+` `?` `{m,n}` `(` `)` `[...]` | as in other regular expressions |
//! | `\` or the ESCAPE character | the next character itself |
//!
//! Every other character (`.` too) means itself, and the pattern matches the whole text.

use crate::error::{ExprError, Result};

/// Characters that are special in a regular expression.
const SPECIAL: &str = r"\.+*?()|[]{}^$#&-~";

/// The regular expression of a pattern. Without `escape`, no character escapes another.
pub(crate) fn regular_expression(pattern: &str, escape: Option<char>) -> Result<String> {
    let refuse = |why: &str| ExprError::invalid(format!("expected a pattern of SIMILAR TO, found '{pattern}': {why}"));
    let mut regex = String::from("^(?s:");
    let mut letters = pattern.chars().peekable();
    let mut open = 0_usize;
    // Whether there is an operand that a quantifier could repeat.
    let mut operand = false;
    while let Some(letter) = letters.next() {
        if Some(letter) == escape {
            let escaped = letters
                .next()
                .ok_or_else(|| refuse("nothing follows its escape character"))?;
            push_literal(&mut regex, escaped);
            operand = true;
            continue;
        }
        match letter {
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '|' => regex.push('|'),
            '(' => {
                open += 1;
                regex.push_str("(?:");
            }
            ')' => {
                open = open.checked_sub(1).ok_or_else(|| refuse("a ) has no ( before it"))?;
                regex.push(')');
            }
            '*' | '+' | '?' => {
                if !operand {
                    return Err(refuse(&format!("nothing stands before a {letter}")));
                }
                regex.push(letter);
            }
            '{' => {
                if !operand {
                    return Err(refuse("nothing stands before a {"));
                }
                let mut count = String::new();
                loop {
                    match letters.next() {
                        Some('}') => break,
                        Some(digit) if digit.is_ascii_digit() || digit == ',' => count.push(digit),
                        _ => return Err(refuse("a { has no count and } behind it")),
                    }
                }
                let parts: Vec<&str> = count.split(',').collect();
                match parts.as_slice() {
                    [low] | [low, _] if !low.is_empty() => regex.push_str(&format!("{{{count}}}")),
                    _ => return Err(refuse("a { has no count and } behind it")),
                }
            }
            '[' => set(&mut regex, &mut letters, escape).ok_or_else(|| refuse("a [ has no ] behind it"))?,
            other => push_literal(&mut regex, other),
        }
        operand = !matches!(letter, '(' | '|' | '*' | '+' | '?' | '{');
    }
    if open > 0 {
        return Err(refuse("a ( has no ) behind it"));
    }
    regex.push_str(")$");
    Ok(regex)
}

fn push_literal(regex: &mut String, letter: char) {
    if SPECIAL.contains(letter) {
        regex.push('\\');
    }
    regex.push(letter);
}

/// Translates a bracket expression up to its closing bracket.
fn set(regex: &mut String, letters: &mut std::iter::Peekable<std::str::Chars<'_>>, escape: Option<char>) -> Option<()> {
    regex.push('[');
    if letters.next_if_eq(&'^').is_some() {
        regex.push('^');
    }
    let mut first = true;
    loop {
        let letter = letters.next()?;
        match letter {
            _ if Some(letter) == escape => push_literal(regex, letters.next()?),
            ']' if !first => break,
            '[' if letters.peek() == Some(&':') => {
                // A class: [:alpha:].
                regex.push('[');
                loop {
                    let part = letters.next()?;
                    regex.push(part);
                    if part == ']' {
                        break;
                    }
                }
            }
            // A range has its hyphen between two letters.
            '-' if !first && letters.peek() != Some(&']') => regex.push('-'),
            other => push_literal(regex, other),
        }
        first = false;
    }
    regex.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_patterns_become_anchored_regular_expressions() {
        for (pattern, regex) in [
            ("a%", "^(?s:a.*)$"),
            ("a_|b.c", "^(?s:a.|b\\.c)$"),
            ("(ab)+c{2,3}d?", "^(?s:(?:ab)+c{2,3}d?)$"),
            ("[a-z[:digit:]]*", "^(?s:[a-z[:digit:]]*)$"),
            ("[^&]", "^(?s:[^\\&])$"),
            ("a\\%", "^(?s:a%)$"),
            ("^$", "^(?s:\\^\\$)$"),
            ("[]a]", "^(?s:[\\]a])$"),
            ("[a-]", "^(?s:[a\\-])$"),
        ] {
            assert_eq!(regular_expression(pattern, Some('\\')).unwrap(), regex, "{pattern}");
        }
        assert_eq!(regular_expression("a#%", Some('#')).unwrap(), "^(?s:a%)$");
        assert_eq!(regular_expression("a\\%", None).unwrap(), "^(?s:a\\\\.*)$");
    }

    #[test]
    fn test_patterns_that_are_none_are_refused() {
        for pattern in ["(a", "a)", "*a", "a|*", "[a", "a{", "a{x}", "a{,2}", "a\\", "a**"] {
            let error = regular_expression(pattern, Some('\\')).unwrap_err().to_string();
            assert!(error.starts_with("expected a pattern of SIMILAR TO"), "{error}");
        }
    }
}
