//! What it takes to decode pages, by encoding and type, beside a copy of the values and beside what `v2_1/choose/price.rs` says:
//! `cargo bench -p esker-file`. An argument takes the cases with that in their name; `--check` fails where a price is off by more than
//! three times.
//!
//! Each file is one column in memory, read whole, over and over. A price that is off misleads the writer: change the table.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema as ArrowSchema};
use esker_file::schema::Schema;
use esker_file::why::why;
use esker_file::{FileReader, FileVersion, FileWriter, Goal, WriteOptions};

/// Values of a column.
const VALUES: usize = 1 << 19;

/// How long each case runs at most.
const BUDGET: Duration = Duration::from_millis(250);

/// How far a price may be off.
const OFF: f64 = 3.0;

fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..VALUES).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33 ^ state >> 17
    })
}

fn words(distinct: u64, seed: u64) -> Vec<String> {
    random(seed)
        .map(|n| format!("customer#{:09}", n % distinct * 7919 % 1_000_003))
        .collect()
}

fn urls() -> Vec<String> {
    const WORDS: [&str; 8] = [
        "item", "search", "orders", "basket", "stories", "people", "news", "about",
    ];
    let url = |n: u64| {
        let word = |shift: u64| WORDS[(n >> shift & 7) as usize];
        format!(
            "https://www.example.com/{}/{}?id={}&ref={}",
            word(3),
            word(9),
            n % 1_000_000,
            word(20)
        )
    };
    random(5).map(url).collect()
}

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let mut clock = 1_700_000_000_000_000_i64;
    let times: Vec<i64> = random(3)
        .map(|n| {
            clock += (n % 600_000) as i64;
            clock
        })
        .collect();
    let small = |seed, range| random(seed).map(move |n| n % range);
    let text = |values: Vec<String>| Arc::new(StringArray::from(values)) as ArrayRef;
    vec![
        (
            "int64 small",
            Arc::new(Int64Array::from_iter_values(small(1, 10_000).map(|n| n as i64))),
        ),
        ("int64 time", Arc::new(Int64Array::from_iter_values(times))),
        (
            "int64 runs",
            Arc::new(Int64Array::from_iter_values((0..VALUES as i64).map(|n| n / 90))),
        ),
        (
            "int32 small",
            Arc::new(Int32Array::from_iter_values(small(2, 1000).map(|n| n as i32))),
        ),
        (
            "int16 few",
            Arc::new(Int16Array::from_iter_values(small(9, 4).map(|n| n as i16 * 4999))),
        ),
        (
            "double decimal",
            Arc::new(Float64Array::from_iter_values(
                small(4, 3_000_000).map(|n| n as f64 / 100.0),
            )),
        ),
        (
            "double noise",
            Arc::new(Float64Array::from_iter_values(
                random(4).map(|n| 1.0 / (n as f64 + 1.0)),
            )),
        ),
        (
            "double few",
            Arc::new(Float64Array::from_iter_values(
                small(7, 2000).map(|n| 1.0 / (n as f64 + 1.0)),
            )),
        ),
        (
            "float",
            Arc::new(Float32Array::from_iter_values(
                small(6, 100_000).map(|n| n as f32 / 1000.0),
            )),
        ),
        ("text few", text(words(40, 1))),
        ("text 100,000", text(words(100_000, 2))),
        ("text url", text(urls())),
    ]
}

/// GB/s of a copy of so many bytes.
fn copy_speed(bytes: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let begin = Instant::now();
        black_box(black_box(&from).to_vec());
        best = best.min(begin.elapsed());
    }
    bytes as f64 / best.as_secs_f64() / 1e9
}

/// Time that this thread has run, where the system tells it: others that run beside it do not count.
fn thread_time(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

struct Case {
    name: String,
    batch: RecordBatch,
    goal: Goal,
}

impl Case {
    /// Prints a line; true if the price is off.
    async fn run(&self) -> bool {
        let store = esker_store::open(&format!("memory://pages-{}", self.name), &HashMap::new(), true).unwrap();
        let schema = Schema::from_arrow(&self.batch.schema()).unwrap();
        let options = WriteOptions {
            version: FileVersion::V2_2,
            goal: self.goal,
            threads: 1,
            ..WriteOptions::default()
        };
        let begin = Instant::now();
        let mut writer = FileWriter::create(&store, "a.lance", &schema, options).await.unwrap();
        writer.write(&self.batch).await.unwrap();
        let written = writer.finish().await.unwrap();
        let write = begin.elapsed().as_secs_f64();
        let reader = FileReader::open(store.clone(), "a.lance").await.unwrap();
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        let (start, mut reads) = (Instant::now(), 0);
        let begin = thread_time(start);
        while reads == 0 || start.elapsed() < BUDGET {
            black_box(reader.read(&projection, &[0..VALUES as u64]).await.unwrap());
            reads += 1;
        }
        let spent = thread_time(start).saturating_sub(begin) / reads;
        let reader = FileReader::open(store, "a.lance").await.unwrap();
        let ways = why(&reader, 0, 0, self.goal).await.unwrap();
        let chosen = ways.iter().find(|way| way.chosen).unwrap();
        let column = reader.container().unwrap().column(0).unwrap();
        let in_page = column.pages[0].num_values as f64;
        let plain = self.batch.get_array_memory_size();
        let (found, told) = (
            spent.as_secs_f64() * 1e9 / VALUES as f64,
            chosen.nanoseconds as f64 / in_page,
        );
        println!(
            "{:<34} {:<22} {:>7.2} {:>8.2} {:>8.2} {:>6.2} {:>7.2} {:>7.2} {:>9.3}",
            self.name,
            chosen.name,
            written.size as f64 / VALUES as f64,
            found,
            told,
            found / told.max(0.001),
            plain as f64 / spent.as_secs_f64() / 1e9,
            copy_speed(plain),
            write * 1e9 / VALUES as f64,
        );
        found > told * OFF || told > found * OFF
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let filter = arguments.iter().find(|argument| !argument.starts_with("--"));
    println!(
        "{:<34} {:<22} {:>7} {:>8} {:>8} {:>6} {:>7} {:>7} {:>9}",
        "column", "way", "bytes", "ns", "price", "ratio", "GB/s", "copy", "write ns"
    );
    let asked = [
        ("", "fast"),
        ("", "balanced"),
        ("", "small"),
        ("none", "fast"),
        ("lz4", "small"),
        ("zstd", "small"),
    ];
    let mut off = Vec::new();
    for (name, array) in columns() {
        for (compression, goal) in asked {
            let mut metadata = HashMap::new();
            if !compression.is_empty() {
                metadata.insert("lance-encoding:compression".to_string(), compression.to_string());
            }
            let field = Field::new("c", array.data_type().clone(), false).with_metadata(metadata);
            let case = Case {
                name: format!("{name}, {}", if compression.is_empty() { goal } else { compression }),
                batch: RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field])), vec![array.clone()]).unwrap(),
                goal: Goal::parse(goal).unwrap(),
            };
            if filter.is_some_and(|filter| !case.name.contains(filter.as_str())) {
                continue;
            }
            if esker_store::runtime().unwrap().block_on(case.run()) {
                off.push(case.name);
            }
        }
    }
    if !off.is_empty() {
        println!("prices that are off more than {OFF} times: {}", off.join("; "));
        assert!(!check, "the table of prices has to be changed");
    }
}
