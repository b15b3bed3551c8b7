//! Strings that field metadata want compressed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, LargeStringArray, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};

use super::round_trip::{memory, write};
use crate::schema::Schema;
use crate::writer::check_schema;
use crate::{FileReader, FileVersion};

fn schema(data_type: &DataType, scheme: &str) -> Arc<ArrowSchema> {
    let metadata = HashMap::from([("lance-encoding:compression".to_string(), scheme.to_string())]);
    let field = Field::new("x", data_type.clone(), true).with_metadata(metadata);
    Arc::new(ArrowSchema::new(vec![field]))
}

fn words() -> Vec<Option<String>> {
    (0..3000_u64)
        .map(|i| (i % 11 != 4).then(|| format!("https://example.com/{}/page?number={i}", i % 13)))
        .collect()
}

async fn sizes_and_rows(array: ArrayRef, scheme: &str) -> u64 {
    let batch = RecordBatch::try_new(schema(array.data_type(), scheme), vec![array.clone()]).unwrap();
    let store = memory(&format!("compression-{scheme}-{}", array.data_type()));
    write(
        &store,
        "a.lance",
        &[batch.slice(0, 1000), batch.slice(1000, 2000)],
        8 << 20,
    )
    .await;
    let reader = FileReader::open(store, "a.lance").await.unwrap();
    let projection = reader.project(&reader.schema().fields, None).unwrap();
    let rows = [5..6, 900..1100, 2999..3000];
    let places = UInt64Array::from_iter_values(rows.iter().cloned().flatten());
    let wanted = arrow_select::take::take(&array, &places, None).unwrap();
    let found = reader.read(&projection, &rows).await.unwrap();
    assert_eq!(found.column(0), &wanted, "{scheme}");
    reader.container().unwrap().size()
}

#[test]
fn test_compressed_strings_are_smaller_and_come_back() {
    esker_store::runtime().unwrap().block_on(async {
        let words = words();
        let bytes = BinaryArray::from_iter(words.iter().map(|w| w.as_ref().map(|w| w.as_bytes())));
        let arrays: [ArrayRef; 3] = [
            Arc::new(StringArray::from(words.clone())),
            Arc::new(LargeStringArray::from(words)),
            Arc::new(bytes),
        ];
        for array in arrays {
            let plain = sizes_and_rows(array.clone(), "none").await;
            for scheme in ["zstd", "lz4", "fsst"] {
                if scheme == "fsst" && array.data_type() == &DataType::LargeUtf8 {
                    continue;
                }
                let size = sizes_and_rows(array.clone(), scheme).await;
                assert!(size * 10 < plain * 8, "{scheme}: {size} bytes instead of {plain}");
            }
        }
    });
}

#[test]
fn test_fsst_of_large_types_is_refused() {
    let schema = Schema::from_arrow(&schema(&DataType::LargeUtf8, "fsst")).unwrap();
    let error = check_schema(&schema, FileVersion::V2_0).unwrap_err();
    assert!(error.to_string().contains("use string or binary"), "{error}");
}
