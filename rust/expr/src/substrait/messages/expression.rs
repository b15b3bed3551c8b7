//! Expressions.

use bytes::Bytes;
use prost::{Message, Oneof};

use super::{Ignored, Literal, Type};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Expression {
    #[prost(oneof = "Rex", tags = "1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13")]
    pub(crate) rex: Option<Rex>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Rex {
    #[prost(message, tag = "1")]
    Literal(Literal),
    #[prost(message, tag = "2")]
    Selection(Box<FieldReference>),
    #[prost(message, tag = "3")]
    ScalarFunction(ScalarFunction),
    #[prost(message, tag = "5")]
    WindowFunction(Ignored),
    #[prost(message, tag = "6")]
    IfThen(Box<IfThen>),
    #[prost(message, tag = "7")]
    Switch(Box<Switch>),
    #[prost(message, tag = "8")]
    SingularOrList(Box<SingularOrList>),
    #[prost(message, tag = "9")]
    MultiOrList(Ignored),
    #[prost(message, tag = "11")]
    Cast(Box<Cast>),
    #[prost(message, tag = "12")]
    Subquery(Ignored),
    #[prost(message, tag = "13")]
    Nested(Ignored),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FieldReference {
    #[prost(oneof = "ReferenceType", tags = "1, 2")]
    pub(crate) reference: Option<ReferenceType>,
    #[prost(oneof = "ReferenceRoot", tags = "3, 4, 5")]
    pub(crate) root: Option<ReferenceRoot>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ReferenceType {
    #[prost(message, tag = "1")]
    Direct(ReferenceSegment),
    #[prost(message, tag = "2")]
    Masked(Ignored),
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ReferenceRoot {
    #[prost(message, tag = "3")]
    Expression(Box<Expression>),
    #[prost(message, tag = "4")]
    Root(Ignored),
    #[prost(message, tag = "5")]
    Outer(Ignored),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReferenceSegment {
    #[prost(oneof = "Segment", tags = "1, 2, 3")]
    pub(crate) segment: Option<Segment>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Segment {
    #[prost(message, tag = "1")]
    MapKey(Ignored),
    #[prost(message, tag = "2")]
    StructField(Box<PositionSegment>),
    #[prost(message, tag = "3")]
    ListElement(Box<PositionSegment>),
}

/// The n-th field of a struct or the n-th element of a list, from 0, and what to take of that.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PositionSegment {
    #[prost(int32, tag = "1")]
    pub(crate) position: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) child: Option<Box<ReferenceSegment>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScalarFunction {
    #[prost(uint32, tag = "1")]
    pub(crate) function_reference: u32,
    /// How arguments were written before version 0.13 of the format.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) old_arguments: Vec<Bytes>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) arguments: Vec<Argument>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) options: Vec<FunctionOption>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Argument {
    #[prost(oneof = "ArgumentKind", tags = "1, 2, 3")]
    pub(crate) kind: Option<ArgumentKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ArgumentKind {
    #[prost(string, tag = "1")]
    Enum(String),
    #[prost(message, tag = "2")]
    Type(Ignored),
    /// An [`Expression`], left encoded: a chain of ten conditions is deeper than prost decodes in one go.
    #[prost(bytes = "bytes", tag = "3")]
    Value(Bytes),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionOption {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) preference: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IfThen {
    #[prost(message, repeated, tag = "1")]
    pub(crate) ifs: Vec<IfClause>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) otherwise: Option<Box<Expression>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IfClause {
    #[prost(message, optional, tag = "1")]
    pub(crate) condition: Option<Expression>,
    #[prost(message, optional, tag = "2")]
    pub(crate) then: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Switch {
    #[prost(message, optional, boxed, tag = "3")]
    pub(crate) matched: Option<Box<Expression>>,
    #[prost(message, repeated, tag = "1")]
    pub(crate) ifs: Vec<IfValue>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) otherwise: Option<Box<Expression>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IfValue {
    #[prost(message, optional, tag = "1")]
    pub(crate) value: Option<Literal>,
    #[prost(message, optional, tag = "2")]
    pub(crate) then: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SingularOrList {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) value: Option<Box<Expression>>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) options: Vec<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cast {
    #[prost(message, optional, tag = "1")]
    pub(crate) to: Option<Type>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) input: Option<Box<Expression>>,
    /// 1 makes null of what cannot be cast, anything else an error.
    #[prost(int32, tag = "3")]
    pub(crate) failure_behavior: i32,
}
