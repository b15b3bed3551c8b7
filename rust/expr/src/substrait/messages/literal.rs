//! Literals.

use prost::{Message, Oneof};

use super::{Ignored, ListType, Type};

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
