//! The files that manifests and transactions refer to, as sets of names: each name is held once, however many versions refer to it.

use std::collections::HashSet;

use esker_store::mount::path_at_home;

use crate::error::Result;
use crate::fragment::{DataFile, Fragment};
use crate::index::Index;
use crate::manifest::Manifest;
use crate::operation::Operation;
use crate::transaction::{Transaction, TRANSACTIONS_DIR};

/// The names of the files that versions refer to: those of kept versions, and those of dropped ones.
#[derive(Debug, Default)]
pub struct FileReferences {
    kept: Names,
    dropped: Names,
}

impl FileReferences {
    /// No references.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the files of a kept version.
    pub fn keep(&mut self, manifest: &Manifest) -> Result<()> {
        self.kept.add_manifest(manifest)
    }

    /// Adds the files of a dropped version.
    pub fn discard(&mut self, manifest: &Manifest) -> Result<()> {
        self.dropped.add_manifest(manifest)
    }

    /// Keeps the files of a transaction that may still be committed, and the transaction's own file.
    pub fn keep_transaction(&mut self, transaction: &Transaction) -> Result<()> {
        self.kept
            .transactions
            .insert(format!("{TRANSACTIONS_DIR}/{}", transaction.file_name()));
        self.kept.add_operation(&transaction.operation()?);
        Ok(())
    }

    pub(super) fn kept(&self) -> &Names {
        &self.kept
    }

    pub(super) fn dropped(&self) -> &Names {
        &self.dropped
    }
}

/// Paths relative to the table's root, and the ids of indices.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub data: HashSet<String>,
    pub deletions: HashSet<String>,
    pub transactions: HashSet<String>,
    pub indices: HashSet<String>,
}

impl Names {
    fn add_manifest(&mut self, manifest: &Manifest) -> Result<()> {
        for fragment in manifest.fragments() {
            self.add_fragment(&fragment?);
        }
        if let Some(name) = manifest.transaction_file() {
            self.transactions.insert(format!("{TRANSACTIONS_DIR}/{name}"));
        }
        self.add_indices(&manifest.indices()?);
        Ok(())
    }

    /// Adds files under any base path: those outside of the root are not listed anyway, and a branch refers to its parent's files this way.
    fn add_fragment(&mut self, fragment: &Fragment) {
        for file in fragment.files() {
            self.add_data(file);
        }
        if let Some(file) = fragment.deletion_file() {
            let location = file.location(fragment.id());
            self.deletions.insert(path_at_home(&location).to_owned());
        }
    }

    fn add_data(&mut self, file: &DataFile) {
        let location = file.location();
        let path = path_at_home(&location);
        if !self.data.contains(path) {
            self.data.insert(path.to_owned());
        }
    }

    fn add_indices(&mut self, indices: &[Index]) {
        self.indices
            .extend(indices.iter().filter_map(Index::uuid).map(|uuid| uuid.to_string()));
    }

    fn add_operation(&mut self, operation: &Operation) {
        let mut fragments: Vec<&Fragment> = Vec::new();
        match operation {
            Operation::Append { fragments: new }
            | Operation::Overwrite { fragments: new, .. }
            | Operation::Merge { fragments: new, .. }
            | Operation::Delete {
                updated_fragments: new, ..
            } => fragments.extend(new),
            Operation::Update(update) => {
                fragments.extend(&update.updated_fragments);
                fragments.extend(&update.new_fragments);
            }
            Operation::Rewrite(rewrite) => {
                fragments.extend(rewrite.groups.iter().flat_map(|group| &group.new_fragments));
                self.indices
                    .extend(rewrite.rewritten_indices.iter().map(|index| index.new_id.to_string()));
            }
            Operation::CreateIndex { new_indices, .. } => self.add_indices(new_indices),
            Operation::DataReplacement { replacements } => {
                for (_, file) in replacements {
                    self.add_data(file);
                }
            }
            _ => {}
        }
        for fragment in fragments {
            self.add_fragment(fragment);
        }
    }
}
