//! Transactions: a change as its writer staged it. Concurrent writers check it for conflicts, and the commit applies it to the latest
//! version.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_file::schema::Schema;
use esker_proto::lance::table as pb;
use prost::Message;
use uuid::Uuid;

use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::operation::{NewSchema, Operation, OperationKind};
use crate::raw::{walk, RawMessage};

/// The folder of transactions, relative to the table's root.
pub const TRANSACTIONS_DIR: &str = "_transactions";

/// Transactions of at most this many bytes stand in the manifest that they made, too: a reader of that version reads them all.
const INLINE_BYTES: usize = 64 << 10;

/// What an error calls a transaction before its file is known.
const WHAT: &str = "transaction";

/// The field that holds the transaction's own id.
const UUID: u32 = 2;

/// The transaction property with the application's id: together with [`APPLICATION_VERSION`] it makes a commit idempotent.
pub const APPLICATION_ID: &str = "esker.application.id";

/// The transaction property that numbers the application's commits.
pub const APPLICATION_VERSION: &str = "esker.application.version";

/// The prefix of the config keys that hold each application's last number.
pub const APPLICATION_PREFIX: &str = "esker.application.";

/// Whether a key of the config holds the last number of an application.
pub fn is_application_key(key: &str) -> bool {
    key.starts_with(APPLICATION_PREFIX)
}

/// One staged or committed change. Immutable, and kept as its encoded bytes, unknown fields included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    encoded: Bytes,
    read_version: u64,
    uuid: String,
    tag: String,
    properties: BTreeMap<String, String>,
    kind: OperationKind,
    message: Bytes,
}

impl Transaction {
    /// A change to version `read_version`, the version that the writer read; 0 for a table that does not exist yet.
    pub fn new(read_version: u64, operation: &Operation, properties: BTreeMap<String, String>) -> Result<Self> {
        let head = pb::Transaction {
            read_version,
            uuid: Uuid::new_v4().hyphenated().to_string(),
            transaction_properties: properties,
            ..Default::default()
        };
        let mut encoded = head.encode_to_vec();
        crate::raw::push_length_delimited(&mut encoded, operation.kind().field(), &operation.encode()?);
        Self::decode(&Bytes::from(encoded))
    }

    /// New rows.
    pub fn append(read_version: u64, fragments: &[Fragment], properties: BTreeMap<String, String>) -> Result<Self> {
        let fragments = fragments.to_vec();
        Self::new(read_version, &Operation::Append { fragments }, properties)
    }

    /// A new table (`read_version` 0), or new contents in place of all old ones. `config` is merged into the table's.
    pub fn overwrite(
        read_version: u64,
        fragments: &[Fragment],
        schema: &Schema,
        config: BTreeMap<String, String>,
        properties: BTreeMap<String, String>,
    ) -> Result<Self> {
        let operation = Operation::Overwrite {
            fragments: fragments.to_vec(),
            schema: NewSchema::from(schema),
            config,
            initial_bases: vec![],
        };
        Self::new(read_version, &operation, properties)
    }

    /// The same change under another UUID.
    pub fn with_uuid(&self, uuid: &str) -> Result<Self> {
        let mut raw = RawMessage::decode(&self.encoded).map_err(|error| error.of(WHAT))?;
        raw.set_bytes(UUID, uuid.as_bytes());
        Self::decode(&Bytes::from(raw.encode()))
    }

    /// Decodes a transaction file, or the transaction inside a manifest file.
    pub fn decode(encoded: &Bytes) -> Result<Self> {
        let mut head = Vec::new();
        let mut operation = (OperationKind::Unknown(0), Bytes::new());
        for record in walk(encoded) {
            let record = record.map_err(|error| error.of(WHAT))?;
            match OperationKind::from_field(record.number) {
                Some(kind) => operation = (kind, encoded.slice(record.payload)),
                None => head.extend_from_slice(encoded.get(record.record).unwrap_or_default()),
            }
        }
        let head = pb::Transaction::decode(head.as_slice());
        let head = head.map_err(|error| TableError::corrupt(WHAT, error.to_string()))?;
        Ok(Self {
            encoded: encoded.clone(),
            read_version: head.read_version,
            uuid: head.uuid,
            tag: head.tag,
            properties: head.transaction_properties,
            kind: operation.0,
            message: operation.1,
        })
    }

    /// The transaction as its file holds it.
    pub fn encode(&self) -> Bytes {
        self.encoded.clone()
    }

    /// Whether the manifest that it makes holds it as well. Then its file is for those alone who look before that manifest is there.
    pub fn is_inline(&self) -> bool {
        self.encoded.len() <= INLINE_BYTES
    }

    /// The read version: the version that the change was computed from.
    pub fn read_version(&self) -> u64 {
        self.read_version
    }

    /// The change's unique id.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// A tag for the version, if the writer gave one.
    pub fn tag(&self) -> Option<&str> {
        Some(self.tag.as_str()).filter(|tag| !tag.is_empty())
    }

    /// The user's own key-values, the commit message among them.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }

    /// What kind of change it is.
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The change itself, decoded.
    pub fn operation(&self) -> Result<Operation> {
        Operation::decode(self.kind, &self.message)
    }

    /// The encoded operation.
    pub(crate) fn message(&self) -> &Bytes {
        &self.message
    }

    /// The config key and value with the application's number of this change, if it has one.
    pub fn application_record(&self) -> Result<Option<(String, String)>> {
        let found = (
            self.properties.get(APPLICATION_ID),
            self.properties.get(APPLICATION_VERSION),
        );
        match found {
            (None, None) => Ok(None),
            (Some(id), Some(version)) if !id.is_empty() && version.parse::<u64>().is_ok() => {
                Ok(Some((format!("{APPLICATION_PREFIX}{id}"), version.clone())))
            }
            _ => Err(TableError::invalid(format!(
                "expected the transaction properties {APPLICATION_ID} (not empty) and {APPLICATION_VERSION} (a number) together, found {found:?}"
            ))),
        }
    }

    /// The name of its file in `_transactions/`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.txn", self.read_version, self.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::push_length_delimited;

    fn properties() -> BTreeMap<String, String> {
        [("__lance_commit_message".to_string(), "why".to_string())].into()
    }

    #[test]
    fn test_an_append_comes_back() {
        let fragments = [Fragment::new(vec![], 3), Fragment::new(vec![], 4)];
        let transaction = Transaction::append(7, &fragments, properties()).unwrap();
        let again = Transaction::decode(&transaction.encode()).unwrap();
        assert_eq!(again, transaction);
        assert_eq!(
            (again.read_version(), again.kind(), again.properties()),
            (7, OperationKind::Append, &properties())
        );
        assert_eq!(again.file_name(), format!("7-{}.txn", again.uuid()));
        let Operation::Append { fragments: found } = again.operation().unwrap() else {
            panic!("not an append")
        };
        assert_eq!(found, fragments);
    }

    #[test]
    fn test_two_transactions_never_share_a_uuid() {
        let stage = || Transaction::append(1, &[], BTreeMap::new()).unwrap();
        assert_ne!(stage().uuid(), stage().uuid());
    }

    #[test]
    fn test_unknown_operations_and_fields_are_kept() {
        let mut encoded = Transaction::append(1, &[], properties()).unwrap().encode().to_vec();
        push_length_delimited(&mut encoded, 50, b"future");
        push_length_delimited(&mut encoded, 120, b"operation");
        let encoded = Bytes::from(encoded);
        let transaction = Transaction::decode(&encoded).unwrap();
        assert_eq!(transaction.kind(), OperationKind::Unknown(120));
        assert_eq!(transaction.encode(), encoded);
        let none = Transaction::decode(&Bytes::new()).unwrap();
        assert_eq!(none.kind(), OperationKind::Unknown(0));
    }
}
