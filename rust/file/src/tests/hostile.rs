//! Corrupt bytes give rows or an error, never a panic or a huge allocation.

use bytes::Bytes;

use super::round_trip::{memory, write};
use super::samples::{self, Numbers};
use crate::schema::BlobView;
use crate::FileReader;

async fn small_file(test: &str) -> Vec<u8> {
    let store = memory(&format!("hostile-source-{test}"));
    write(&store, "a.lance", &[samples::batch(120, 3, 9)], 256).await;
    store.get("a.lance").await.unwrap().to_vec()
}

pub(super) async fn read_all(test: &str, bytes: Vec<u8>) -> bool {
    let store = memory(&format!("hostile-target-{test}"));
    store.put("b.lance", Bytes::from(bytes)).await.unwrap();
    let Ok(reader) = FileReader::open(store, "b.lance").await else {
        return false;
    };
    let mut good = true;
    let fields = reader.schema().fields.clone();
    let bytes = fields
        .iter()
        .filter(|f| f.has_blobs())
        .map(|f| f.with_blob_view(BlobView::Bytes));
    for field in fields.iter().cloned().chain(bytes) {
        let Ok(projection) = reader.project(std::slice::from_ref(&field), None) else {
            good = false;
            continue;
        };
        good &= reader
            .read(&projection, &[0..reader.num_rows().min(1000)])
            .await
            .is_ok();
        good &= reader.read(&projection, &[1..2, 50..60]).await.is_ok();
    }
    good
}

#[test]
fn test_a_file_cut_anywhere_is_refused() {
    esker_store::runtime().unwrap().block_on(async {
        let whole = small_file("cut").await;
        assert!(read_all("cut", whole.clone()).await);
        for length in 0..whole.len() {
            assert!(
                !read_all("cut", whole[..length].to_vec()).await,
                "cut to {length} of {} bytes",
                whole.len()
            );
        }
    });
}

#[test]
fn test_flipped_bits_end_in_rows_or_in_an_error() {
    esker_store::runtime().unwrap().block_on(async {
        let whole = small_file("flip").await;
        let mut numbers = Numbers(77);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + numbers.next() % 3 {
                let at = (numbers.next() % bytes.len() as u64) as usize;
                bytes[at] ^= 1 << (numbers.next() % 8);
            }
            read_all("flip", bytes).await;
        }
    });
}
