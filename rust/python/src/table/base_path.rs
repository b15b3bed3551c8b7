//! Base paths, as tuples.

use esker_proto::lance::table as pb;

/// Id (0 if none was assigned yet), name, whether it is the root of a table, and path.
pub(crate) type PyBasePath = (u32, Option<String>, bool, String);

pub(super) fn base_path_parts(base: &pb::BasePath) -> PyBasePath {
    (base.id, base.name.clone(), base.is_dataset_root, base.path.clone())
}

pub(super) fn base_path((id, name, is_dataset_root, path): PyBasePath) -> pb::BasePath {
    pb::BasePath {
        id,
        name,
        is_dataset_root,
        path,
    }
}
