//! Lance tables: manifests, fragments, transactions, deletion vectors, scan and take plans.
