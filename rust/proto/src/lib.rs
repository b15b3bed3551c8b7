//! The generated protobuf messages of the Lance formats and of Graveler. What each field means stands in `protos/`.

/// The namespace of the published definitions.
pub mod lance {
    /// The schema, and the metadata of files of version 0.1.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod file {
        include!("generated/lance.file.rs");

        /// The container of 2.x files.
        pub mod v2 {
            include!("generated/lance.file.v2.rs");
        }
    }

    /// How a page of a version 2.0 file lays out one array.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod encodings {
        include!("generated/lance.encodings.rs");
    }

    /// How a page of a version 2.1 or 2.2 file lays out its values.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod encodings21 {
        include!("generated/lance.encodings21.rs");
    }

    /// Manifests, fragments, transactions and row ids.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod table {
        include!("generated/lance.table.rs");
    }
}

/// What repositories store.
pub mod graveler {
    /// Objects.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod catalog {
        include!("generated/graveler.catalog.rs");
    }

    /// Ranges.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod committed {
        include!("generated/graveler.committed.rs");
    }

    /// Commits, branches and tags.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod refs {
        include!("generated/graveler.refs.rs");
    }
}

/// The well-known messages that others refer to.
pub mod google {
    pub use prost_types::Timestamp;
}
