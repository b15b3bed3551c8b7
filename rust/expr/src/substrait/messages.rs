//! The Substrait messages that an expression is made of, as far as we read them.
//!
//! They are written out here instead of taken from the published crate: that one follows the newest version of the format, which has given
//! the numbers of the timestamp literals and of the extension URIs that pyarrow still writes to nobody. Other fields are skipped.

use bytes::Bytes;
use prost::{Message, Oneof};

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

/// Gives a number to a type, a type's variation or a function.
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

/// A message whose presence is all that matters.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ignored {}

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

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Literal {
    #[prost(
        oneof = "LiteralType",
        tags = "1, 2, 3, 5, 7, 10, 11, 12, 13, 14, 16, 17, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37"
    )]
    pub(crate) literal: Option<LiteralType>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum LiteralType {
    #[prost(bool, tag = "1")]
    Boolean(bool),
    #[prost(int32, tag = "2")]
    I8(i32),
    #[prost(int32, tag = "3")]
    I16(i32),
    #[prost(int32, tag = "5")]
    I32(i32),
    #[prost(int64, tag = "7")]
    I64(i64),
    #[prost(float, tag = "10")]
    Fp32(f32),
    #[prost(double, tag = "11")]
    Fp64(f64),
    #[prost(string, tag = "12")]
    String(String),
    #[prost(bytes = "vec", tag = "13")]
    Binary(Vec<u8>),
    /// Microseconds since 1970, of no time zone. No longer in the format.
    #[prost(int64, tag = "14")]
    Timestamp(i64),
    #[prost(int32, tag = "16")]
    Date(i32),
    /// Microseconds since midnight. No longer in the format.
    #[prost(int64, tag = "17")]
    Time(i64),
    #[prost(string, tag = "21")]
    FixedChar(String),
    #[prost(message, tag = "22")]
    VarChar(VarChar),
    #[prost(bytes = "vec", tag = "23")]
    FixedBinary(Vec<u8>),
    #[prost(message, tag = "24")]
    Decimal(Decimal),
    #[prost(message, tag = "25")]
    Struct(Ignored),
    /// Microseconds since 1970 in UTC. No longer in the format.
    #[prost(int64, tag = "27")]
    TimestampTz(i64),
    #[prost(bytes = "vec", tag = "28")]
    Uuid(Vec<u8>),
    #[prost(message, tag = "29")]
    Null(Type),
    #[prost(message, tag = "30")]
    List(LiteralList),
    #[prost(message, tag = "31")]
    EmptyList(Box<ListType>),
    #[prost(message, tag = "33")]
    UserDefined(UserDefinedLiteral),
    #[prost(message, tag = "34")]
    PrecisionTimestamp(Precise),
    #[prost(message, tag = "35")]
    PrecisionTimestampTz(Precise),
    #[prost(message, tag = "37")]
    PrecisionTime(Precise),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VarChar {
    #[prost(string, tag = "1")]
    pub(crate) value: String,
}

/// A whole number in 16 bytes, little endian, to be divided by 10 to the power of `scale`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Decimal {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) value: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub(crate) precision: i32,
    #[prost(int32, tag = "3")]
    pub(crate) scale: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LiteralList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<Literal>,
}

/// A value of a type from the table, packed in one of protobuf's wrapper messages.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserDefinedLiteral {
    #[prost(uint32, tag = "1")]
    pub(crate) type_reference: u32,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<Packed>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Packed {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// A moment in units of 10 to the power of minus `precision` seconds.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Precise {
    #[prost(int32, tag = "1")]
    pub(crate) precision: i32,
    #[prost(int64, tag = "2")]
    pub(crate) value: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Type {
    #[prost(
        oneof = "Kind",
        tags = "1, 2, 3, 5, 7, 10, 11, 12, 13, 14, 16, 17, 21, 22, 23, 24, 25, 27, 28, 29, 30, 32, 33, 34, 36"
    )]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Kind {
    #[prost(message, tag = "1")]
    Bool(Ignored),
    #[prost(message, tag = "2")]
    I8(Ignored),
    #[prost(message, tag = "3")]
    I16(Ignored),
    #[prost(message, tag = "5")]
    I32(Ignored),
    #[prost(message, tag = "7")]
    I64(Ignored),
    #[prost(message, tag = "10")]
    Fp32(Ignored),
    #[prost(message, tag = "11")]
    Fp64(Ignored),
    #[prost(message, tag = "12")]
    String(Ignored),
    #[prost(message, tag = "13")]
    Binary(Ignored),
    #[prost(message, tag = "14")]
    Timestamp(Ignored),
    #[prost(message, tag = "16")]
    Date(Ignored),
    #[prost(message, tag = "17")]
    Time(Ignored),
    #[prost(message, tag = "21")]
    FixedChar(Ignored),
    #[prost(message, tag = "22")]
    VarChar(Ignored),
    #[prost(message, tag = "23")]
    FixedBinary(FixedBinaryType),
    #[prost(message, tag = "24")]
    Decimal(DecimalType),
    #[prost(message, tag = "25")]
    Struct(StructType),
    #[prost(message, tag = "27")]
    List(Box<ListType>),
    #[prost(message, tag = "28")]
    Map(Box<MapType>),
    #[prost(message, tag = "29")]
    TimestampTz(Ignored),
    #[prost(message, tag = "30")]
    UserDefined(UserDefinedType),
    #[prost(message, tag = "32")]
    Uuid(Ignored),
    #[prost(message, tag = "33")]
    PrecisionTimestamp(PreciseType),
    #[prost(message, tag = "34")]
    PrecisionTimestampTz(PreciseType),
    #[prost(message, tag = "36")]
    PrecisionTime(PreciseType),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FixedBinaryType {
    #[prost(int32, tag = "1")]
    pub(crate) length: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DecimalType {
    #[prost(int32, tag = "1")]
    pub(crate) scale: i32,
    #[prost(int32, tag = "2")]
    pub(crate) precision: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructType {
    #[prost(message, repeated, tag = "1")]
    pub(crate) types: Vec<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) element: Option<Box<Type>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MapType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) key: Option<Box<Type>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) value: Option<Box<Type>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserDefinedType {
    #[prost(uint32, tag = "1")]
    pub(crate) type_reference: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PreciseType {
    #[prost(int32, tag = "1")]
    pub(crate) precision: i32,
}
