//! Types.

use prost::{Message, Oneof};

use super::Ignored;

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
