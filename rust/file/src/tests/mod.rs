//! Files through the public door: what is written comes back, and damaged bytes end in an error.

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
