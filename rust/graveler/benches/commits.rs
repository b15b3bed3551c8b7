//! Whole commits: `cargo bench -p esker-graveler --bench commits -- [ENTRIES]...`.
//!
//! First a million entries into an empty repository, alternating with Pebble's writer if `ESKER_PEBBLE` names it (see
//! `tests/interop/pebble`); then, for each number of entries, operations on a content of that size. Files go to a folder without fsync
//! below `TMPDIR`; from fifty million on, entries are small, so that they fit on a disk. `ESKER_ROUNDS=0` skips the first part.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use esker_graveler::apply::{apply, apply_stream};
use esker_graveler::change::Changes;
use esker_graveler::change_stream::ChangeStream;
use esker_graveler::diff::Diff;
use esker_graveler::entry::{AddressType, EntryEncoder, EntryRef};
use esker_graveler::list::List;
use esker_graveler::metarange::Metarange;
use esker_graveler::storage::{Storage, CACHE_BYTES, PREFIX};
use esker_graveler::write::SplitRule;
use esker_graveler::TableId;
use esker_store::block_on;
use esker_store::local::LocalStore;

const FIRST: usize = 1_000_000;
const BATCH: usize = 1 << 15;
const SYNTHETIC: usize = 50_000_000;

fn mixed(number: usize) -> u64 {
    let mut x = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

struct Parts {
    path: String,
    address: String,
    e_tag: String,
}

/// The object of a number: a day has 10,000 of them.
fn parts(i: usize) -> Parts {
    Parts {
        path: format!("tables/events/day={:06}/part-{i:011}.parquet", i / 10_000),
        address: format!("data/gk7b4lj3r3s72mqf/{:016x}{:04x}", mixed(i), i & 0xffff),
        e_tag: format!("{:016x}{:016x}", mixed(2 * i), mixed(2 * i + 1)),
    }
}

fn encoded(encoder: &mut EntryEncoder, number: usize, parts: &Parts, changes: &mut Changes) {
    let entry = EntryRef {
        address: &parts.address,
        address_type: AddressType::Relative,
        last_modified: Some((1_700_000_000 + number as i64, 0)),
        size: (mixed(number) % 100_000_000) as i64,
        e_tag: &parts.e_tag,
        content_type: "",
    };
    let write = |buffer: &mut Vec<u8>| encoder.encode_value_to(entry, buffer);
    changes.push_with(parts.path.as_bytes(), Some(write)).unwrap();
}

/// Batches of the even numbers; odd ones are free for what comes later.
fn stream(count: usize, parts_of: impl Fn(usize, &mut dyn FnMut(&Parts)) + Send + 'static) -> ChangeStream {
    let batches = (0..count).step_by(BATCH).map(move |start| {
        let (mut changes, mut encoder) = (Changes::new(), EntryEncoder::default());
        for n in start..count.min(start + BATCH) {
            parts_of(n, &mut |parts| encoded(&mut encoder, 2 * n, parts, &mut changes));
        }
        Ok(changes)
    });
    ChangeStream::new(Box::new(batches))
}

fn changes(numbers: impl Iterator<Item = usize>) -> Arc<Changes> {
    let (mut changes, mut encoder) = (Changes::new(), EntryEncoder::default());
    numbers.for_each(|n| encoded(&mut encoder, n, &parts(n), &mut changes));
    Arc::new(changes)
}

fn storage(folder: &Path) -> Arc<Storage> {
    let store = LocalStore::new(folder.to_str().unwrap(), folder, false).unwrap();
    Storage::new(Arc::new(store), PREFIX, CACHE_BYTES)
}

/// The CPU seconds of this process.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat.split(' ').map(|field| field.parse().unwrap_or(0.0)).collect();
    fields.get(13..15).map_or(0.0, |ticks| (ticks[0] + ticks[1]) / 100.0)
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or("VmHWM: unknown")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn pebble(program: &str, records: &Changes) -> (f64, f64) {
    let mut child = Command::new(program)
        .args(["time", "0", "20971520", "50000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = Vec::new();
    for record in records.iter() {
        for part in [record.key, record.value.unwrap()] {
            input.extend_from_slice(&(part.len() as u32).to_le_bytes());
            input.extend_from_slice(part);
        }
    }
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let said = child.wait_with_output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let numbers: Vec<f64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (numbers[0], numbers[3])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn first_commit(folder: &Path, rounds: usize) {
    let given: Arc<Vec<Parts>> = Arc::new((0..FIRST).map(|n| parts(2 * n)).collect());
    let records = changes((0..FIRST).map(|n| 2 * n));
    let program = std::env::var("ESKER_PEBBLE").ok();
    let mut found: [Vec<(f64, f64)>; 3] = Default::default();
    for _ in 0..rounds {
        let rule = SplitRule::default();
        let mut timed = |at: usize, run: &dyn Fn()| {
            let (start, worked) = (Instant::now(), processor());
            run();
            found[at].push((start.elapsed().as_secs_f64(), processor() - worked));
        };
        timed(0, &|| {
            block_on(apply(&storage(folder), &Metarange::default(), &records, rule, false)).unwrap();
        });
        timed(1, &|| {
            let given = given.clone();
            let entries = stream(FIRST, move |n, call| call(&given[n]));
            block_on(apply_stream(
                &storage(folder),
                &Metarange::default(),
                entries,
                rule,
                false,
            ))
            .unwrap();
        });
        if let Some(program) = &program {
            found[2].push(pebble(program, &records));
        }
    }
    println!(
        "{:<56}{:>12}{:>15}{:>14}",
        "first commit", "entries/s", "beside Pebble", "by processor"
    );
    let titles = [
        "records as Pebble gets them, files put",
        "entries, with their identities, in a stream, files put",
        "Pebble: tables and ids, nothing put",
    ];
    let medians = found.map(|times| {
        let (wall, worked): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        (!wall.is_empty()).then(|| (median(wall), median(worked)))
    });
    for (title, (wall, worked)) in titles
        .iter()
        .zip(medians)
        .filter_map(|(title, found)| Some((title, found?)))
    {
        let beside = medians[2].map_or((f64::NAN, f64::NAN), |(w, p)| (w / wall, p / worked));
        println!(
            "{title:<56}{:>12.0}{:>15.2}{:>14.2}",
            FIRST as f64 / wall,
            beside.0,
            beside.1
        );
    }
}

fn report<T>(title: &str, folder: &Path, run: impl Fn(&Arc<Storage>) -> T) -> T {
    let (mut taken, mut last) = (Vec::new(), None);
    let mut said = String::new();
    for _ in 0..3 {
        let storage = storage(folder);
        let start = Instant::now();
        last = Some(run(&storage));
        taken.push(start.elapsed().as_secs_f64());
        let stats = storage.store().stats().take();
        said = format!(
            "{:>10.3} MB in {:>5}, {:>10.3} MB in {:>5}",
            stats.bytes_read as f64 / 1e6,
            stats.read_requests,
            stats.bytes_written as f64 / 1e6,
            stats.write_requests
        );
    }
    println!("{title:<44}{:>12.1} ms  {said}", median(taken) * 1000.0);
    last.unwrap()
}

fn steps(folder: &Path, count: usize) {
    let rule = SplitRule::default();
    let start = Instant::now();
    let synthetic = count >= SYNTHETIC;
    let entries = stream(count, move |n, call| {
        let mut parts = parts(2 * n);
        if synthetic {
            parts.address.truncate(10);
            parts.e_tag.clear();
        }
        call(&parts);
    });
    let base = block_on(apply_stream(
        &storage(folder),
        &Metarange::default(),
        entries,
        rule,
        false,
    ))
    .unwrap();
    let base = base.written.unwrap().metarange;
    println!(
        "\n{count} entries in {} ranges, written in {:.1} s; {}",
        base.ranges().len(),
        start.elapsed().as_secs_f64(),
        peak_memory()
    );
    let id = base.id().unwrap().clone();
    // The one key falls into the largest range.
    let largest = base.ranges().iter().max_by_key(|range| range.count).unwrap();
    let first = String::from_utf8(largest.min_key.clone()).unwrap();
    let first: usize = first[first.len() - 19..first.len() - 8].parse().unwrap();
    println!(
        "the largest range: {} entries, {} bytes",
        largest.count, largest.estimated_size
    );
    let one = changes(std::iter::once(first + 1));
    let step = 2 * count / 1000;
    let many = changes((0..1000).map(|n| (n * step + mixed(n) as usize % step) | 1));
    let commit = |storage: &Arc<Storage>, changes: &Arc<Changes>| {
        let base = block_on(storage.metarange(Some(&id))).unwrap();
        let applied = block_on(apply(storage, &base, changes, rule, false)).unwrap();
        applied.written.unwrap().metarange.id().unwrap().clone()
    };
    let with_one = report("commit one key", folder, |s| commit(s, &one));
    let with_many = report("commit 1,000 scattered keys", folder, |s| commit(s, &many));
    let diff = |storage: &Arc<Storage>, other: &TableId| {
        let left = block_on(storage.metarange(Some(&id))).unwrap();
        let right = block_on(storage.metarange(Some(other))).unwrap();
        block_on(Diff::new(storage, &left, &right, b"").next_batch(usize::MAX))
            .unwrap()
            .len()
    };
    assert_eq!(report("diff after one key", folder, |s| diff(s, &with_one)), 1);
    assert_eq!(report("diff after 1,000 keys", folder, |s| diff(s, &with_many)), 1000);
    report("read the metarange", folder, |s| {
        block_on(s.metarange(Some(&id))).unwrap()
    });
    let key = parts(count - count % 2).path;
    report("get one path", folder, |s| {
        block_on(s.get(&id, key.as_bytes())).unwrap().unwrap()
    });
    let list = |storage: &Arc<Storage>, prefix: &str, delimiter: &[u8]| {
        let metarange = block_on(storage.metarange(Some(&id))).unwrap();
        let mut list = List::new(storage, &metarange, prefix.as_bytes(), b"", delimiter);
        block_on(list.next_batch(usize::MAX)).unwrap().len()
    };
    let day = format!("tables/events/day={:06}/", count / 10_000);
    report("list a day", folder, |s| list(s, &day, b""));
    let days = report("list the days", folder, |s| list(s, "tables/events/", b"/"));
    println!("({days} days; {})", peak_memory());
}

fn main() {
    let words = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let sizes: Vec<usize> = words.collect();
    let folder = tempfile::tempdir().unwrap();
    let rounds = std::env::var("ESKER_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    if rounds > 0 {
        first_commit(&folder.path().join("first"), rounds);
    }
    for count in sizes {
        let part = folder.path().join(count.to_string());
        steps(&part, count);
        std::fs::remove_dir_all(part).unwrap();
    }
}
