//! Resolves a written column name in a schema.

use arrow_schema::{DataType, Fields, Schema};

use crate::error::{ExprError, Result};

/// At most so many names are listed in an error message.
const LISTED: usize = 20;

/// The field names that the written `path` resolves to: an exact match, else the only match that ignores case.
pub(crate) fn resolve(schema: &Schema, path: &[&str]) -> Result<Vec<String>> {
    let mut fields = schema.fields();
    let mut found: Vec<String> = Vec::with_capacity(path.len());
    for (depth, written) in path.iter().enumerate() {
        let field = find(fields, written).ok_or_else(|| unknown(fields, &found, written))?;
        found.push(field.name().clone());
        match field.data_type() {
            DataType::Struct(children) => fields = children,
            other if depth + 1 < path.len() => {
                return Err(ExprError::invalid(format!(
                    "expected a struct to take field {} from, found column {} of type {other}",
                    path.get(depth + 1).copied().unwrap_or_default(),
                    found.join(".")
                )));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn find<'a>(fields: &'a Fields, written: &str) -> Option<&'a arrow_schema::FieldRef> {
    if let Some(exact) = fields.iter().find(|field| field.name() == written) {
        return Some(exact);
    }
    let folded = written.to_lowercase();
    let mut similar = fields.iter().filter(|field| field.name().to_lowercase() == folded);
    match (similar.next(), similar.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The error for an unknown name: it lists the existing names, the closest first.
fn unknown(fields: &Fields, parents: &[String], written: &str) -> ExprError {
    let (what, place) = match parents {
        [] => ("column", String::new()),
        _ => ("field", format!(" in {}", parents.join("."))),
    };
    let folded = written.to_lowercase();
    let mut names: Vec<&String> = fields.iter().map(|field| field.name()).collect();
    if names.is_empty() {
        return ExprError::invalid(format!("expected a {what}{place}, found {written}: there are none"));
    }
    names.sort_by_key(|name| edit_distance(&name.to_lowercase(), &folded));
    let mut listed = names
        .iter()
        .take(LISTED)
        .map(|name| name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > LISTED {
        listed.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    ExprError::invalid(format!("expected a {what}{place}, found {written}: there are {listed}"))
}

/// The Levenshtein distance: how many characters must be added, removed or replaced to turn `left` into `right`.
pub(crate) fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = *cell;
            before = replaced.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Field;

    fn schema() -> Schema {
        let inner = Field::new("Zeta", DataType::Utf8, true);
        Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("A", DataType::Int64, true),
            Field::new("Name", DataType::Utf8, true),
            Field::new("point", DataType::Struct(vec![inner].into()), true),
        ])
    }

    #[test]
    fn test_an_exact_name_wins_over_one_of_another_case() {
        assert_eq!(resolve(&schema(), &["A"]).unwrap(), ["A"]);
        assert_eq!(resolve(&schema(), &["a"]).unwrap(), ["a"]);
    }

    #[test]
    fn test_another_case_finds_the_only_such_name() {
        assert_eq!(resolve(&schema(), &["name"]).unwrap(), ["Name"]);
        assert_eq!(resolve(&schema(), &["POINT", "zeta"]).unwrap(), ["point", "Zeta"]);
    }

    #[test]
    fn test_an_unknown_name_lists_the_closest_first() {
        let message = resolve(&schema(), &["nam"]).unwrap_err().to_string();
        assert_eq!(message, "expected a column, found nam: there are Name, a, A, point");
        let message = resolve(&schema(), &["point", "x"]).unwrap_err().to_string();
        assert_eq!(message, "expected a field in point, found x: there are Zeta");
    }

    #[test]
    fn test_a_field_of_a_number_is_refused() {
        let message = resolve(&schema(), &["a", "x"]).unwrap_err().to_string();
        assert_eq!(
            message,
            "expected a struct to take field x from, found column a of type Int64"
        );
    }

    #[test]
    fn test_edit_distance_counts_letters() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }
}
