//! Predicates and column expressions: SQL or Substrait in, evaluated on a record batch.
