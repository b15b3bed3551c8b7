//! Tests of the public interface: round trips, and corrupt bytes.

mod blobs;
mod compression;
mod encodings_v2_0;
mod groups;
mod hostile;
mod read_counts;
mod round_trip;
mod round_trip_levels;
mod samples;
mod samples_levels;
mod why;
