//! How a column of descriptions is marked.

use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::column_encoding::ColumnEncoding as Kind;

/// What a blob column says of itself as a whole.
pub(crate) fn column_encoding() -> pb::ColumnEncoding {
    let values = pb::ColumnEncoding {
        column_encoding: Some(Kind::Values(())),
    };
    pb::ColumnEncoding {
        column_encoding: Some(Kind::Blob(Box::new(pb::Blob {
            inner: Some(Box::new(values)),
        }))),
    }
}
