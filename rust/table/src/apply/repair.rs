//! The version of a table's data files, put right where a release of Lance noted it wrongly.
//!
//! Lance 0.16 could note 0.1 for a table whose files are of 2.0. The next commit notes what they are. A table with files of both cannot be
//! read by anybody, and is refused.

use esker_file::version::FileVersion;

use super::draft::is_older_than;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;

/// The releases that noted it rightly.
const RIGHT_SINCE: [u64; 3] = [0, 17, 0];

/// The version of `base`'s data files, which may not be the one that it notes.
pub(crate) fn storage_version(base: &Manifest) -> Result<FileVersion> {
    let noted = base.data_storage_version()?;
    let is_doubtful = matches!(base.writer_version(), Some(("lance", release)) if is_older_than(release, RIGHT_SINCE));
    if noted != FileVersion::V0_1 || !is_doubtful {
        return Ok(noted);
    }
    let (mut old, mut new) = (None, None);
    for fragment in base.fragments() {
        for file in fragment?.files() {
            match file.version()? {
                FileVersion::V0_1 => old = Some(file.path.clone()),
                version => new = new.max(Some((version, file.path.clone()))),
            }
        }
    }
    match (old, new) {
        (Some(old), Some((version, new))) => Err(TableError::corrupt(
            base.path(),
            format!(
                "expected data files of one format, found {old} of 0.1 and {new} of {version}. The dataset contains a mixture of file \
                 versions; restore a version from before they were mixed"
            ),
        )),
        (None, Some((version, _))) => Ok(version),
        _ => Ok(noted),
    }
}
