//! The table of functions and foreign types, which a message refers to by number (anchor).

use std::collections::HashMap;

use super::messages as proto;
use super::messages::Declared;
use crate::error::{ExprError, Result};

/// The functions and types by their anchors.
pub(super) struct Extensions {
    types: HashMap<u32, String>,
    functions: HashMap<u32, String>,
}

impl Extensions {
    pub(super) fn new(declarations: &[proto::ExtensionDeclaration]) -> Self {
        let (mut types, mut functions) = (HashMap::new(), HashMap::new());
        for declaration in declarations {
            match &declaration.declared {
                Some(Declared::Type(anchor)) => types.insert(anchor.anchor, anchor.name.clone()),
                Some(Declared::Function(anchor)) => functions.insert(anchor.anchor, anchor.name.clone()),
                None => None,
            };
        }
        Self { types, functions }
    }

    pub(super) fn type_name(&self, anchor: u32) -> Result<&str> {
        self.types.get(&anchor).map(String::as_str).ok_or_else(|| {
            ExprError::invalid(format!(
                "expected the Substrait type {anchor} to be declared, found no declaration"
            ))
        })
    }

    /// The function's name without the types of its arguments.
    pub(super) fn function_name(&self, anchor: u32) -> Result<&str> {
        let name = self.functions.get(&anchor).ok_or_else(|| {
            ExprError::invalid(format!(
                "expected the Substrait function {anchor} to be declared, found no declaration"
            ))
        })?;
        Ok(name.split_once(':').map_or(name, |(name, _)| name))
    }
}
