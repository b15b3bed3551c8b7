//! What a write prefers where a smaller file takes longer to decode.

use crate::error::{FileError, Result};

/// How small files are to be. A field's metadata may ask for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// No general compression around values: the smallest of the ways that decode at once.
    Fast,
    /// General compression where it makes a page smaller without making it slower.
    #[default]
    Balanced,
    /// The smallest of all ways.
    Small,
}

impl Goal {
    const NAMED: [(&'static str, Goal); 3] = [
        ("fast", Goal::Fast),
        ("balanced", Goal::Balanced),
        ("small", Goal::Small),
    ];

    /// The goal of a name.
    pub fn parse(name: &str) -> Result<Goal> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, goal)| *goal).ok_or_else(|| {
            FileError::invalid(format!(
                "expected compression 'fast', 'balanced' or 'small', found '{name}'"
            ))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(_, goal)| *goal == self);
        found.map_or("balanced", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_name_is_a_goal_and_back() {
        for goal in [Goal::Fast, Goal::Balanced, Goal::Small] {
            assert_eq!(Goal::parse(goal.name()).unwrap(), goal);
        }
        let error = Goal::parse("tiny").unwrap_err().to_string();
        assert!(error.contains("'tiny'") && error.contains("'small'"), "{error}");
    }
}
