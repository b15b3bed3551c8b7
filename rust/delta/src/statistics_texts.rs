//! The statistics of files as texts, for writers that put a file into the log again.

use arrow_array::cast::AsArray;
use arrow_array::Array;
use esker_store::StoreRef;

use crate::arrays::texts;
use crate::checkpoint_file::add_rows;
use crate::checkpoint_write::statistics_json;
use crate::chunk::{FileChunk, LineSpan, Source};
use crate::error::Result;
use crate::prune::Selection;
use crate::snapshot::Snapshot;
use crate::sparse::ParquetFile;
use crate::statistics::statistics_of_line;

impl Snapshot {
    /// The statistics of files as JSON; `None` for a file that has none, or whose log entry is gone.
    pub async fn statistics_texts(&self, store: &StoreRef, selection: &Selection) -> Result<Vec<Option<String>>> {
        let mut found = Vec::with_capacity(selection.len());
        for (view, rows) in self.views.iter().zip(&selection.rows) {
            if rows.is_empty() {
                continue;
            }
            let part = match &view.chunk.source {
                Source::Commits { files, lines } => of_lines(store, files, lines, rows).await?,
                Source::Parquet { path, group } => {
                    let read = self.of_group(store, path, *group, &view.chunk, rows).await;
                    match read {
                        Err(error) if error.is_of_file() => vec![None; rows.len()],
                        other => other?,
                    }
                }
            };
            found.extend(part);
        }
        Ok(found)
    }

    async fn of_group(
        &self,
        store: &StoreRef,
        path: &str,
        group: usize,
        chunk: &FileChunk,
        rows: &[u32],
    ) -> Result<Vec<Option<String>>> {
        let file = ParquetFile::open(store, path).await?;
        let leaves = file.leaves(&["add.path", "add.stats", "add.stats_parsed"]);
        let mut found = vec![None; rows.len()];
        let mut wanted = rows.iter().map(|row| *row as usize).zip(found.iter_mut()).peekable();
        let mut at = 0;
        for batch in file.read(store, group, &leaves).await? {
            let Some((add, paths)) = add_rows(&batch, path)? else {
                continue;
            };
            let stats = texts(add, "stats");
            let parsed = add
                .column_by_name("stats_parsed")
                .and_then(|parsed| parsed.as_struct_opt());
            for row in 0..batch.num_rows() {
                if add.is_null(row) || paths.is_null(row) {
                    continue;
                }
                if wanted.peek().is_some_and(|(number, _)| *number == at) {
                    if let Some((_, slot)) = wanted.next() {
                        // Another checkpoint of the same name may have other files.
                        let same = self.root.canonical(paths.value(row)) == chunk.path(at);
                        let text = stats.as_ref().filter(|stats| stats.is_valid(row));
                        *slot = match (same, text, parsed) {
                            (true, Some(text), _) => Some(text.value(row).to_owned()),
                            (true, None, Some(parsed)) => statistics_json(parsed, row),
                            _ => None,
                        };
                    }
                }
                at += 1;
            }
        }
        Ok(found)
    }
}

async fn of_lines(store: &StoreRef, files: &[String], lines: &[LineSpan], rows: &[u32]) -> Result<Vec<Option<String>>> {
    let mut found = Vec::with_capacity(rows.len());
    let mut open: Option<(u32, bytes::Bytes)> = None;
    for row in rows {
        let Some(line) = lines.get(*row as usize) else {
            found.push(None);
            continue;
        };
        if open.as_ref().is_none_or(|(file, _)| *file != line.file) {
            let path = files.get(line.file as usize).map(String::as_str).unwrap_or_default();
            let bytes = match store.get(path).await {
                Err(error) if error.is_not_found() => bytes::Bytes::new(),
                read => read?,
            };
            open = Some((line.file, bytes));
        }
        let text = open.as_ref().and_then(|(_, bytes)| statistics_of_line(bytes, *line));
        found.push(text.map(|text| text.into_owned()));
    }
    Ok(found)
}
