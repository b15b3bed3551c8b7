//! The messages around an expression: its schema, and the extensions that its anchors refer to.

use prost::{Message, Oneof};

use super::{Expression, Ignored, StructType};

/// One or more expressions over a schema, and the functions that they call.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExtendedExpression {
    #[prost(message, repeated, tag = "2")]
    pub(crate) extensions: Vec<ExtensionDeclaration>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) referred_expr: Vec<ExpressionReference>,
    #[prost(message, optional, tag = "4")]
    pub(crate) base_schema: Option<NamedStruct>,
}

/// Assigns an anchor to a type, a type variation or a function.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExtensionDeclaration {
    #[prost(oneof = "Declared", tags = "1, 3")]
    pub(crate) declared: Option<Declared>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Declared {
    #[prost(message, tag = "1")]
    Type(Anchor),
    #[prost(message, tag = "3")]
    Function(Anchor),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Anchor {
    #[prost(uint32, tag = "2")]
    pub(crate) anchor: u32,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExpressionReference {
    #[prost(oneof = "Referred", tags = "1, 2")]
    pub(crate) referred: Option<Referred>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Referred {
    #[prost(message, tag = "1")]
    Expression(Expression),
    #[prost(message, tag = "2")]
    Measure(Ignored),
}

/// Names of all fields, depth first, and their types.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedStruct {
    #[prost(string, repeated, tag = "1")]
    pub(crate) names: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) structure: Option<StructType>,
}
