//! Overwrite and Restore: new contents replace all old ones.

use esker_file::version::FileVersion;
use esker_proto::lance::table as pb;

use super::bases::{set_bases, with_new_bases};
use super::draft::{config_of, set_config, set_data_format, set_map, Draft};
use super::fragments::{check_new_fragments, push_fragments, with_row_ids};
use super::repair::storage_version;
use super::CommitParams;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_list::FragmentList;
use crate::manifest::{field, Manifest};
use crate::operation::Operation;
use crate::row_ids::RowIdAllocator;
use crate::transaction::is_application_key;

pub(super) fn overwrite(base: Option<&Manifest>, operation: Operation, params: &CommitParams) -> Result<Draft> {
    let Operation::Overwrite {
        fragments: new,
        schema,
        config: set,
        initial_bases,
    } = operation
    else {
        return Err(TableError::invalid("expected an Overwrite"));
    };
    if !initial_bases.is_empty() && base.is_some() {
        return Err(TableError::invalid(
            "expected initial_bases for a new table only, found a table; add them to it by add_bases",
        ));
    }
    schema.schema()?.check_column_names(None)?;
    let bases = with_new_bases(base.map_or(&[], Manifest::base_paths), initial_bases)?;
    let version = match (params.data_storage_version, base) {
        (Some(asked), _) => asked,
        (None, Some(base)) => storage_version(base)?,
        (None, None) => match new.iter().flat_map(Fragment::files).next() {
            Some(file) => file.version()?,
            None => FileVersion::V2_0,
        },
    };
    let mut row_ids = RowIdAllocator::new(base, params.stable_row_ids);
    let new = with_row_ids(row_ids.as_mut(), &new)?;
    let mixed_files = check_new_fragments(&new, version, &schema.field_ids()?, &bases)?;
    let mut fragments = FragmentList::default();
    let highest = base.map(Manifest::max_fragment_id).transpose()?.flatten();
    let max_fragment_id = push_fragments(&mut fragments, &new, highest)?;
    let mut raw = base.map(|base| base.raw.clone()).unwrap_or_default();
    raw.set_all_bytes(field::SCHEMA, schema.fields().iter().map(AsRef::as_ref));
    let message = pb::Manifest {
        schema_metadata: schema.metadata().clone(),
        ..Default::default()
    };
    set_map(&mut raw, field::SCHEMA_METADATA, &message)?;
    if !set.is_empty() {
        let mut config = config_of(&raw)?;
        config.extend(set);
        set_config(&mut raw, config)?;
    }
    set_data_format(&mut raw, version);
    set_bases(&mut raw, &bases);
    Ok(Draft {
        raw,
        fragments,
        index_section: None,
        max_fragment_id,
        mixed_files,
        row_ids,
        gone_field_id: -1,
    })
}

/// Restores an older version's contents. Ids given out since then stay taken, and the applications' last numbers stay noted.
pub(super) fn restore(base: &Manifest, restored: &Manifest) -> Result<Draft> {
    let mut draft = Draft::of(restored)?;
    draft.max_fragment_id = draft.max_fragment_id.max(base.max_fragment_id()?);
    draft.gone_field_id = base.max_field_id()?;
    match &mut draft.row_ids {
        Some(row_ids) => row_ids.skip_to(base.next_row_id()),
        None if base.has_stable_row_ids() => {
            return Err(TableError::invalid(format!(
                "expected a version with stable row ids to restore, found version {} from before the table had them; \
                 its row addresses could be taken for ids of other rows",
                restored.version()
            )))
        }
        None => {}
    }
    let mut config = restored.config().clone();
    let records = base.config().iter().filter(|(key, _)| is_application_key(key));
    config.extend(records.map(|(key, value)| (key.clone(), value.clone())));
    if &config != restored.config() {
        set_config(&mut draft.raw, config)?;
    }
    Ok(draft)
}
