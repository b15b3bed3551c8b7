//! Graveler, lakeFS's committed storage: SSTables, ranges, metaranges, their differences and merges.
