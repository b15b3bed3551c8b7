//! What can go wrong with an expression, by who must act.

use datafusion_common::DataFusionError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ExprError>;

/// Why an expression could not be understood or evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExprError {
    /// The expression is wrong: it does not parse, names what does not exist, or has a type that does not fit. The caller changes it.
    #[error("{0}")]
    InvalidArgument(String),
    /// The expression is right, but esker cannot evaluate it.
    #[error("{0}")]
    Unsupported(String),
}

impl ExprError {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Converts DataFusion's error: `doing` says what failed, DataFusion's own prefixes are dropped.
    pub(crate) fn from_datafusion(doing: &str, error: &DataFusionError) -> Self {
        let root = error.find_root();
        let message = match root {
            DataFusionError::Plan(message)
            | DataFusionError::Execution(message)
            | DataFusionError::NotImplemented(message)
            | DataFusionError::Configuration(message) => message.clone(),
            DataFusionError::ArrowError(error, _) => error.to_string(),
            other => other.strip_backtrace(),
        };
        // Only the first line: the others are advice for callers of DataFusion.
        let line = message.lines().next().unwrap_or_default().trim_end_matches('.');
        let line = line.strip_prefix("Error during planning: ").unwrap_or(line);
        let text = format!("{doing}: {}", lower_first(line));
        match root {
            DataFusionError::NotImplemented(_) => Self::Unsupported(text),
            _ => Self::InvalidArgument(text),
        }
    }
}

/// Lower case for the first letter, unless the first word is an acronym.
pub(crate) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}
