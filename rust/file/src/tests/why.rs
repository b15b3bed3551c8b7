//! Why a page is written as it is.

use super::round_trip::{memory, write_as};
use super::samples_levels::batch;
use crate::inspect::inspect;
use crate::why::why;
use crate::{FileReader, FileVersion, Goal};

#[test]
fn test_of_the_alternatives_one_is_chosen_and_it_is_the_smallest_allowed() {
    esker_store::runtime().unwrap().block_on(async {
        for version in [FileVersion::V2_1, FileVersion::V2_2] {
            let store = memory(&format!("why-{version}"));
            write_as(version, &store, "a.lance", &[batch(version, 4000, 4, 21)], 8 << 20).await;
            let reader = FileReader::open(store, "a.lance").await.unwrap();
            let layout = inspect(&reader).unwrap();
            let mut named = Vec::new();
            for column in &layout.columns {
                let found = why(&reader, column.index, 0, Goal::Balanced).await.unwrap();
                let chosen: Vec<_> = found.iter().filter(|way| way.chosen).collect();
                assert_eq!(chosen.len(), 1, "{}: {found:?}", column.field);
                for other in found.iter().filter(|way| way.reason == "larger") {
                    assert!(other.bytes >= chosen[0].bytes, "{}: {found:?}", column.field);
                }
                named.push((column.field.clone(), chosen[0].name.clone()));
            }
            let name_of = |field: &str| named.iter().find(|(name, _)| name == field).unwrap().1.as_str();
            // What is taken in general compression may be another way, which is as short.
            let runs = layout
                .columns
                .iter()
                .find(|column| column.field == "runs numbers")
                .unwrap();
            let fast = why(&reader, runs.index, 0, Goal::Fast).await.unwrap();
            assert!(fast.iter().any(|way| way.chosen && way.name == "runs"));
            assert_eq!(name_of("wide vectors"), "full zip");
            assert_eq!(name_of("all_null"), "constant");
            assert!(why(&reader, 0, 99, Goal::Balanced).await.is_err());
            assert!(why(&reader, 999, 0, Goal::Balanced).await.is_err());
        }
    });
}
