//! The store that fails on purpose: each fault does what it says, and a plan replays.

use std::os::unix::process::ExitStatusExt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::conformance::{paths, put};
use crate::error::Result;
use crate::fault::{Fault, FaultKind, FaultPlan, FaultStore};
use crate::local::LocalStore;
use crate::{block_on, memory, PutOutcome, Store, StoreRef};

fn in_memory() -> StoreRef {
    Arc::new(memory::private().unwrap())
}

fn failing(inner: &StoreRef, plan: FaultPlan) -> FaultStore {
    FaultStore::new(Arc::clone(inner), plan)
}

/// What a commit does: list for the latest version, write a data file, then a manifest that names it.
async fn commit(store: &FaultStore, name: &str) -> Result<()> {
    loop {
        let latest = store.list("_versions/").await?.len();
        let mut writer = store.writer(&format!("data/{name}")).await?;
        writer.write(Bytes::from(vec![1; 400_000])).await?;
        writer.finish().await?;
        store
            .put(&format!("_transactions/{name}"), Bytes::from(name.to_owned()))
            .await?;
        let manifest = format!("_versions/{latest:05}");
        match store.put_if_absent(&manifest, Bytes::from(name.to_owned())).await {
            Ok(PutOutcome::Exists) => {}
            Ok(PutOutcome::Created) => return Ok(()),
            // After an error, look for our own manifest before calling the commit failed.
            Err(error) => match store.get(&manifest).await {
                Ok(found) if found == name.as_bytes() => return Ok(()),
                _ => return Err(error),
            },
        }
    }
}

fn check_table(store: &StoreRef) -> usize {
    let manifests = paths(store, "_versions/");
    for manifest in &manifests {
        let name = String::from_utf8(block_on(store.get(manifest)).unwrap().to_vec()).unwrap();
        assert_eq!(block_on(store.get(&format!("data/{name}"))).unwrap().len(), 400_000);
    }
    manifests.len()
}

#[test]
fn test_without_faults_operations_are_counted_and_nothing_else() {
    let inner = in_memory();
    let store = failing(&inner, FaultPlan::none());
    block_on(commit(&store, "a")).unwrap();
    let verbs: Vec<&str> = store.operations().iter().map(|operation| operation.verb).collect();
    assert_eq!(
        verbs,
        [
            "list",
            "writer",
            "writer.write",
            "writer.finish",
            "put",
            "put_if_absent"
        ]
    );
    assert_eq!(store.operations()[2].bytes, 400_000);
    assert!(store.cause_of_death().is_none());
    assert_eq!(check_table(&inner), 1);
}

#[test]
fn test_a_crash_at_any_operation_leaves_the_old_version_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    for fault in [Fault::CrashBefore, Fault::CrashAfter, Fault::Tear(300_000)] {
        for point in 0..6 {
            for local in [true, false] {
                number += 1;
                let inner: StoreRef = match local {
                    true => Arc::new(LocalStore::new("t", folder.path().join(number.to_string()), true).unwrap()),
                    false => in_memory(),
                };
                block_on(commit(&failing(&inner, FaultPlan::none()), "first")).unwrap();
                let store = failing(&inner, FaultPlan::none().at(point, fault));
                let result = block_on(commit(&store, "second"));
                let met = store.operations().last().unwrap().fault.is_some();
                assert_eq!(result.is_err(), met, "{fault} at {point}");
                if met {
                    assert_eq!(store.count(), point + 1);
                    let landed = point == 5 && fault == Fault::CrashAfter;
                    assert_eq!(check_table(&inner), 1 + usize::from(landed));
                    let error = block_on(store.get("data/first")).unwrap_err().to_string();
                    assert!(
                        error.contains("dead since") && error.contains(&fault.to_string()),
                        "{error}"
                    );
                }
                let before = check_table(&inner);
                block_on(commit(&failing(&inner, FaultPlan::none()), "third")).unwrap();
                assert_eq!(check_table(&inner), before + 1);
            }
        }
    }
}

#[test]
fn test_a_crashed_writer_leaves_its_temporary_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let inner: StoreRef = Arc::new(LocalStore::new("t", folder.path(), true).unwrap());
    for (point, fault) in [
        (3, Fault::CrashBefore),
        (2, Fault::Tear(300_000)),
        (1, Fault::CrashAfter),
    ] {
        let store = failing(&inner, FaultPlan::none().at(point, fault));
        block_on(commit(&store, "x")).unwrap_err();
        assert!(paths(&inner, "").is_empty());
        let left: Vec<_> = std::fs::read_dir(folder.path().join("data"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .collect();
        assert_eq!(left.len(), 1, "{fault}");
        let wanted = [400_000, 300_000, 0][3 - point as usize];
        assert_eq!(left[0].metadata().unwrap().len(), wanted, "{fault}");
        std::fs::remove_file(left[0].path()).unwrap();
    }
}

/// Not a test of its own: the body of the process that the next test starts and that gets killed.
#[test]
#[ignore = "run by test_a_process_killed_at_any_operation_leaves_the_old_version_or_the_new"]
fn child_that_is_killed() {
    let folder = std::env::var("ESKER_TEST_FOLDER").unwrap();
    let plan = FaultPlan::from_str(&std::env::var("ESKER_TEST_PLAN").unwrap()).unwrap();
    let inner: StoreRef = Arc::new(LocalStore::new("t", folder, true).unwrap());
    block_on(commit(&failing(&inner, plan), "second")).unwrap();
}

#[test]
fn test_a_process_killed_at_any_operation_leaves_the_old_version_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    for point in 0..6 {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let table = folder.path().join(format!("{fault}{point}"));
            let inner: StoreRef = Arc::new(LocalStore::new("t", &table, true).unwrap());
            block_on(commit(&failing(&inner, FaultPlan::none()), "first")).unwrap();
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "tests::fault::child_that_is_killed"])
                .env("ESKER_TEST_FOLDER", &table)
                .env("ESKER_TEST_PLAN", FaultPlan::none().at(point, fault).to_string())
                .output()
                .unwrap();
            assert_eq!(child.status.signal(), Some(9), "{child:?}");
            let landed = point == 5 && fault == Fault::KillAfter;
            assert_eq!(check_table(&inner), 1 + usize::from(landed), "{fault} at {point}");
            block_on(commit(&failing(&inner, FaultPlan::none()), "third")).unwrap();
            assert_eq!(check_table(&inner), 2 + usize::from(landed));
        }
    }
}

#[test]
fn test_a_lost_reply_has_its_effect_and_the_store_lives() {
    let inner = in_memory();
    for point in 0..6 {
        let store = failing(&inner, FaultPlan::none().at(point, Fault::LoseReply));
        let result = block_on(commit(&store, &format!("w{point}")));
        assert_eq!(result.is_ok(), point == 5, "{point}");
        assert!(store.cause_of_death().is_none());
    }
    assert_eq!(check_table(&inner), 1);
    assert_eq!(paths(&inner, "_transactions/").len(), 2);
}

#[test]
fn test_an_error_has_no_effect_and_shows_the_plan() {
    let inner = in_memory();
    let store = failing(&inner, FaultPlan::none().at(1, Fault::Fail));
    block_on(store.put("a", Bytes::from("x"))).unwrap();
    let error = block_on(store.put("b", Bytes::from("x"))).unwrap_err();
    assert_eq!((error.kind(), error.path()), ("io", "b"));
    assert!(error.to_string().contains("fail@1"), "{error}");
    assert_eq!(paths(&inner, ""), ["a"]);
}

#[test]
fn test_a_full_disk_stays_full_and_can_still_be_read() {
    let inner = in_memory();
    for plan in [
        FaultPlan::none().at(1, Fault::DiskFull),
        FaultPlan::none().with_disk_limit(15),
    ] {
        let store = failing(&inner, plan);
        block_on(store.put("a", Bytes::from("0123456789"))).unwrap();
        for _ in 0..2 {
            let error = block_on(store.put("b", Bytes::from("0123456789"))).unwrap_err();
            assert_eq!((error.kind(), error.os_code()), ("io", Some(28)), "{error}");
        }
        assert_eq!(block_on(store.get("a")).unwrap().len(), 10);
        block_on(store.delete("a")).unwrap();
    }
    assert!(paths(&inner, "").is_empty());
}

#[test]
fn test_listings_are_late_reordered_or_old() {
    let inner = in_memory();
    for name in 0..8 {
        put(&inner, &format!("v/{}", 7 - name), "x");
        std::thread::sleep(Duration::from_millis(1));
    }
    let plan = FaultPlan::from_str("delay:30000@0,reorder@1,age:3@2,age:99@3,reorder@4").unwrap();
    let store: StoreRef = Arc::new(failing(&inner, plan));
    let all = paths(&inner, "v/");
    let start = Instant::now();
    assert_eq!(paths(&store, "v/"), all);
    assert!(start.elapsed() >= Duration::from_millis(30));
    let mut shuffled = paths(&store, "v/");
    assert_ne!(shuffled, all);
    shuffled.sort();
    assert_eq!(shuffled, all);
    assert_eq!(paths(&store, "v/"), all[3..]);
    assert!(paths(&store, "v/").is_empty());
    block_on(store.get("v/1")).unwrap();
    assert_eq!(paths(&store, "v/"), all);
}

#[test]
fn test_the_same_seed_fails_in_the_same_way() {
    let run = |seed: u64| {
        let store = failing(&in_memory(), FaultPlan::none().from_seed(seed, 200, &FaultKind::ALL));
        for round in 0..10 {
            let _ = block_on(commit(&store, &format!("{round}")));
        }
        let faults: Vec<_> = store
            .operations()
            .into_iter()
            .map(|operation| (operation.verb, operation.path, operation.fault))
            .collect();
        (faults, store.cause_of_death())
    };
    let mut deaths = 0;
    for seed in 0..40 {
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed}");
        deaths += usize::from(first.1.is_some());
    }
    assert!((10..=40).contains(&deaths), "{deaths}");
    assert_ne!(run(1), run(2));
}

#[test]
fn test_whatever_a_seed_does_no_commit_is_lost_or_half_seen() {
    for seed in 0..150 {
        let inner = in_memory();
        let mut landed = Vec::new();
        for writer in 0..5_u64 {
            // A stale listing may cost a retry here, never a version: put-if-absent decides.
            let kinds = [
                FaultKind::Crash,
                FaultKind::Tear,
                FaultKind::LoseReply,
                FaultKind::Fail,
                FaultKind::Reorder,
            ];
            let store = failing(&inner, FaultPlan::none().from_seed(seed * 1000 + writer, 100, &kinds));
            for round in 0..3 {
                let name = format!("{writer}-{round}");
                if block_on(commit(&store, &name)).is_ok() {
                    landed.push(name);
                }
            }
        }
        let seen: Vec<String> = paths(&inner, "_versions/")
            .iter()
            .map(|path| String::from_utf8(block_on(inner.get(path)).unwrap().to_vec()).unwrap())
            .collect();
        assert!(
            landed.iter().all(|name| seen.contains(name)),
            "seed {seed}: {landed:?} in {seen:?}"
        );
        assert_eq!(check_table(&inner), seen.len(), "seed {seed}");
    }
}

#[test]
fn test_a_plan_prints_as_what_it_parses_from() {
    let text = "crash_before@0,crash_after@1,kill_before@2,kill_after@3,tear:100@4,lose_reply@5,fail@6,disk_full@7,\
                delay:250@8,reorder@9,age:2@10,seed:42:50:crash+lose_reply,disk:1000";
    assert_eq!(FaultPlan::from_str(text).unwrap().to_string(), text);
    assert_eq!(FaultPlan::from_str("").unwrap(), FaultPlan::none());
    assert_eq!(
        FaultPlan::from_str(" fail@1 , fail@0 ").unwrap().to_string(),
        "fail@0,fail@1"
    );
    for wrong in [
        "fail",
        "fail@x",
        "fail:1@1",
        "tear@1",
        "what@1",
        "seed:1",
        "seed:1:2:what",
        "disk:x",
        "age:-1@1",
    ] {
        assert_eq!(
            FaultPlan::from_str(wrong).unwrap_err().kind(),
            "invalid_argument",
            "{wrong}"
        );
    }
}

#[test]
fn test_a_watcher_sees_each_operation_and_may_name_its_fault() {
    let inner = in_memory();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let watch = move |verb: &str, path: &str| {
        noted.lock().unwrap().push(format!("{verb} {path}"));
        (verb == "put_if_absent").then_some(Fault::CrashAfter)
    };
    let store = FaultStore::watched(Arc::clone(&inner), FaultPlan::none(), Box::new(watch));
    block_on(commit(&store, "a")).unwrap_err();
    assert_eq!(check_table(&inner), 1);
    let count = seen.lock().unwrap().len() as u64;
    assert_eq!(count, store.count());
    assert_eq!(seen.lock().unwrap().last().unwrap(), "put_if_absent _versions/00000");
    // `watch` is not called for a dead writer.
    block_on(store.list("")).unwrap_err();
    assert_eq!(seen.lock().unwrap().len() as u64, count);
}
