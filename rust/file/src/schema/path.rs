//! Paths to fields: names with dots between them, in backticks where they hold dots themselves.

/// The names along a path. Backticks quote one, in which two stand for one; what is quoted wrongly is split at every dot.
pub fn parts_of(path: &str) -> Vec<String> {
    let unquoted = || path.split('.').map(|part| part.trim_matches('`').to_owned());
    quoted_parts(path).unwrap_or_else(|| unquoted().collect())
}

fn quoted_parts(path: &str) -> Option<Vec<String>> {
    let (mut parts, mut rest) = (Vec::new(), path);
    loop {
        let (part, after) = match rest.strip_prefix('`') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (part, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                (part.to_owned(), after)
            }
        };
        parts.push(part);
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None => return after.is_empty().then_some(parts),
        }
    }
}

/// The name up to the backtick that ends it, and what follows that.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut name, mut left) = (String::new(), quoted);
    loop {
        let (before, behind) = left.split_once('`')?;
        name.push_str(before);
        match behind.strip_prefix('`') {
            Some(more) => {
                name.push('`');
                left = more;
            }
            None => return Some((name, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_in_backticks_hold_dots() {
        let cases: &[(&str, &[&str])] = &[
            ("a", &["a"]),
            ("a.b", &["a", "b"]),
            ("`a`", &["a"]),
            ("s.`a.b`", &["s", "a.b"]),
            ("`s`.`a.b`.c", &["s", "a.b", "c"]),
            ("s.`x``y`", &["s", "x`y"]),
            ("s.x`y", &["s", "x`y"]),
            ("", &[""]),
            ("a..b", &["a", "", "b"]),
            // Quoted wrongly.
            ("s.`c", &["s", "c"]),
            ("`a`b.c", &["a`b", "c"]),
        ];
        for (path, parts) in cases {
            assert_eq!(&parts_of(path), parts, "{path}");
        }
    }
}
