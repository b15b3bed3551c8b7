//! Writing validity: one bit a value, and only where there is a null.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBufferBuilder;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use esker_proto::lance::encodings::nullable::{AllNull, NoNull, Nullability, SomeNull};

use crate::v2_0::encode::{encoding, share, PageBuffers};
use crate::v2_0::flat::encode::flat;

/// Nothing but nulls.
pub(crate) fn all_nulls() -> pb::ArrayEncoding {
    encoding(Kind::Nullable(Box::new(pb::Nullable {
        nullability: Some(Nullability::AllNulls(AllNull {})),
    })))
}

/// The validity bitmap of all arrays.
pub(crate) fn validity(arrays: &[ArrayRef], out: &mut PageBuffers) -> pb::ArrayEncoding {
    let mut bits = BooleanBufferBuilder::new(arrays.iter().map(|a| a.len()).sum());
    for array in arrays {
        match array.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(array.len(), true),
        }
    }
    flat(1, out.add(vec![share(bits.finish().into_inner())]))
}

/// Values with their validity, or without where there are no nulls.
pub(crate) fn wrap(validity: Option<pb::ArrayEncoding>, values: pb::ArrayEncoding) -> pb::ArrayEncoding {
    let values = Some(Box::new(values));
    let nullability = match validity {
        None => Nullability::NoNulls(Box::new(NoNull { values })),
        Some(validity) => Nullability::SomeNulls(Box::new(SomeNull {
            validity: Some(Box::new(validity)),
            values,
        })),
    };
    encoding(Kind::Nullable(Box::new(pb::Nullable {
        nullability: Some(nullability),
    })))
}
