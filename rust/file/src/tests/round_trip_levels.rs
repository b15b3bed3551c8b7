//! What versions 2.1 and 2.2 write comes back: nesting of any depth, every compression, any page size, batch boundary and set of rows.

use std::ops::Range;

use proptest::prelude::*;

use super::round_trip::check_batch;
use super::samples_levels::batch;
use crate::FileVersion;

const VERSIONS: [FileVersion; 2] = [FileVersion::V2_1, FileVersion::V2_2];

#[test]
fn test_all_rows_come_back() {
    for version in VERSIONS {
        for (seed, one_in) in [(11, 0), (12, 3), (13, 1)] {
            let all = batch(version, 3000, one_in, seed);
            check_batch(version, &all, seed, &[10, 1500], 8 << 20, &[0..3000]);
        }
    }
}

#[test]
fn test_rows_around_chunk_edges_come_back() {
    for version in VERSIONS {
        let all = batch(version, 5000, 5, 14);
        let rows = [0..1, 1023..1025, 2047..2050, 4095..4097, 4999..5000];
        check_batch(version, &all, 14, &[], 8 << 20, &rows);
    }
}

#[test]
fn test_rows_around_page_edges_come_back() {
    for version in VERSIONS {
        let all = batch(version, 300, 4, 15);
        check_batch(version, &all, 15, &[7, 100, 101], 64, &[0..300]);
        check_batch(
            version,
            &all,
            16,
            &[7, 100, 101],
            64,
            &[0..1, 7..9, 15..17, 99..102, 299..300],
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn test_any_rows_of_any_file_come_back(
        later in any::<bool>(),
        rows in 1_usize..400,
        one_in in 0_u64..6,
        seed in any::<u64>(),
        mut cuts in prop::collection::vec(0_usize..400, 0..4),
        page_bytes in prop::sample::select(vec![1_u64, 50, 500, 5000, 8 << 20]),
        mut edges in prop::collection::vec(0_u64..400, 0..10),
    ) {
        cuts.sort_unstable();
        edges.iter_mut().for_each(|e| *e = (*e).min(rows as u64));
        edges.sort_unstable();
        let ranges: Vec<Range<u64>> = edges.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        let version = VERSIONS[usize::from(later)];
        check_batch(version, &batch(version, rows, one_in, seed), seed, &cuts, page_bytes, &ranges);
    }
}
