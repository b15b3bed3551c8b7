//! The lowest room of esker: ranges, puts and put-if-absent over local files, memory and object stores.
