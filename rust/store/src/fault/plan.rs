//! A plan of faults: which operation meets which fault, listed one by one or drawn from a seed.
//!
//! ```text
//! plan    = part *("," part)                    the empty text is the plan without faults
//! part    = fault "@" operation                 as in lose_reply@4 or tear:100@7
//!         | "seed:" seed ":" per_mille ":" kind *("+" kind)
//!         | "disk:" bytes                       how much can be written before the disk is full
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::error::{Result, StoreError};

/// What goes wrong at one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The writer stops before the operation has its effect. Its store is dead from then on.
    CrashBefore,
    /// The writer stops when the operation has had its effect, and never learns of it. Its store is dead from then on.
    CrashAfter,
    /// As [`Fault::CrashBefore`], but the whole process is killed (SIGKILL).
    KillBefore,
    /// As [`Fault::CrashAfter`], but the whole process is killed (SIGKILL).
    KillAfter,
    /// The writer stops in the middle of a write, after this many bytes. No store shows a part of an object under its name, so this leaves
    /// a temporary file on local files and nothing in memory. Operations that write no bytes ignore it.
    Tear(u64),
    /// The operation has its effect, but returns an error.
    LoseReply,
    /// The operation has no effect and returns an error.
    Fail,
    /// The disk is full from this operation on: writes fail, everything else works. Operations that write no bytes ignore it.
    DiskFull,
    /// The operation takes this much longer.
    Delay(Duration),
    /// A listing comes in random order. Other operations ignore it.
    Reorder,
    /// A stale listing: the last this many changed objects are not in it yet. Other operations ignore it.
    Age(usize),
}

/// The kinds of faults that a seed draws from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// [`Fault::CrashBefore`] and [`Fault::CrashAfter`].
    Crash,
    /// [`Fault::Tear`].
    Tear,
    /// [`Fault::LoseReply`].
    LoseReply,
    /// [`Fault::Fail`].
    Fail,
    /// [`Fault::DiskFull`].
    DiskFull,
    /// [`Fault::Delay`], up to a few milliseconds.
    Delay,
    /// [`Fault::Reorder`].
    Reorder,
    /// [`Fault::Age`].
    Age,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 8] = [
        Self::Crash,
        Self::Tear,
        Self::LoseReply,
        Self::Fail,
        Self::DiskFull,
        Self::Delay,
        Self::Reorder,
        Self::Age,
    ];

    /// The kind's name in a plan's text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Tear => "tear",
            Self::LoseReply => "lose_reply",
            Self::Fail => "fail",
            Self::DiskFull => "disk_full",
            Self::Delay => "delay",
            Self::Reorder => "reorder",
            Self::Age => "age",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Draw {
    seed: u64,
    per_mille: u32,
    kinds: Vec<FaultKind>,
}

/// Which operations of a store fail, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    at: BTreeMap<u64, Fault>,
    draw: Option<Draw>,
    disk_limit: Option<u64>,
}

impl FaultPlan {
    /// A plan without faults: operations are only counted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a fault at the operation of that number, counted from zero.
    #[must_use]
    pub fn at(mut self, operation: u64, fault: Fault) -> Self {
        self.at.insert(operation, fault);
        self
    }

    /// Draws faults from a seed: of a thousand operations, on average `per_mille` meet one of these kinds.
    #[must_use]
    pub fn from_seed(mut self, seed: u64, per_mille: u32, kinds: &[FaultKind]) -> Self {
        self.draw = Some(Draw {
            seed,
            per_mille,
            kinds: kinds.to_vec(),
        });
        self
    }

    /// The disk is full once this many bytes were written. Deleting frees nothing.
    #[must_use]
    pub fn with_disk_limit(mut self, bytes: u64) -> Self {
        self.disk_limit = Some(bytes);
        self
    }

    pub(super) fn disk_limit(&self) -> Option<u64> {
        self.disk_limit
    }

    /// The fault of an operation, which depends only on the plan and the operation's number.
    pub(super) fn fault(&self, operation: u64) -> Option<Fault> {
        if let Some(fault) = self.at.get(&operation) {
            return Some(*fault);
        }
        let draw = self.draw.as_ref()?;
        let mut random = random_for(draw.seed, operation);
        if random.random_range(0..1000) >= draw.per_mille || draw.kinds.is_empty() {
            return None;
        }
        let kind = draw.kinds.get(random.random_range(0..draw.kinds.len()))?;
        Some(match kind {
            FaultKind::Crash if random.random() => Fault::CrashBefore,
            FaultKind::Crash => Fault::CrashAfter,
            FaultKind::Tear => Fault::Tear(random.random_range(0..100_000)),
            FaultKind::LoseReply => Fault::LoseReply,
            FaultKind::Fail => Fault::Fail,
            FaultKind::DiskFull => Fault::DiskFull,
            FaultKind::Delay => Fault::Delay(Duration::from_micros(random.random_range(0..5000))),
            FaultKind::Reorder => Fault::Reorder,
            FaultKind::Age => Fault::Age(random.random_range(1..4)),
        })
    }

    /// The random numbers of one operation.
    pub(super) fn random(&self, operation: u64) -> StdRng {
        random_for(self.draw.as_ref().map_or(0, |draw| !draw.seed), operation)
    }
}

fn random_for(seed: u64, operation: u64) -> StdRng {
    // Seeds and operations are small numbers: spread them over all bits, so that neighbours draw unrelated numbers.
    StdRng::seed_from_u64(seed ^ operation.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CrashBefore => f.write_str("crash_before"),
            Self::CrashAfter => f.write_str("crash_after"),
            Self::KillBefore => f.write_str("kill_before"),
            Self::KillAfter => f.write_str("kill_after"),
            Self::Tear(bytes) => write!(f, "tear:{bytes}"),
            Self::LoseReply => f.write_str("lose_reply"),
            Self::Fail => f.write_str("fail"),
            Self::DiskFull => f.write_str("disk_full"),
            Self::Delay(time) => write!(f, "delay:{}", time.as_micros()),
            Self::Reorder => f.write_str("reorder"),
            Self::Age(objects) => write!(f, "age:{objects}"),
        }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self
            .at
            .iter()
            .map(|(operation, fault)| format!("{fault}@{operation}"))
            .collect();
        if let Some(Draw { seed, per_mille, kinds }) = &self.draw {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            parts.push(format!("seed:{seed}:{per_mille}:{}", kinds.join("+")));
        }
        parts.extend(self.disk_limit.map(|bytes| format!("disk:{bytes}")));
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Fault {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        parse_fault(text).ok_or_else(|| {
            let message = "expected a fault, as in crash_after, lose_reply or age:2";
            StoreError::invalid_argument(format!("fault {text:?}"), message)
        })
    }
}

impl FromStr for FaultPlan {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let mut plan = Self::none();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            plan = plan.with_part(part).ok_or_else(|| {
                let message =
                    "expected FAULT@OPERATION (as in crash_after@3, tear:100@7, delay:MICROSECONDS@0, age:2@5), \
                               seed:SEED:PER_MILLE:KIND+KIND or disk:BYTES";
                StoreError::invalid_argument(format!("fault plan {part:?}"), message)
            })?;
        }
        Ok(plan)
    }
}

impl FaultPlan {
    fn with_part(self, part: &str) -> Option<Self> {
        if let Some(bytes) = part.strip_prefix("disk:") {
            return Some(self.with_disk_limit(bytes.parse().ok()?));
        }
        if let Some(draw) = part.strip_prefix("seed:") {
            let mut words = draw.splitn(3, ':');
            let (seed, per_mille) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let kinds: Option<Vec<FaultKind>> = match words.next()? {
                "" => Some(Vec::new()),
                names => names.split('+').map(parse_kind).collect(),
            };
            return Some(self.from_seed(seed, per_mille, &kinds?));
        }
        let (fault, operation) = part.split_once('@')?;
        Some(self.at(operation.parse().ok()?, parse_fault(fault)?))
    }
}

fn parse_kind(name: &str) -> Option<FaultKind> {
    FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn parse_fault(text: &str) -> Option<Fault> {
    let (name, value) = text
        .split_once(':')
        .map_or((text, None), |(name, value)| (name, Some(value)));
    Some(match (name, value) {
        ("crash_before", None) => Fault::CrashBefore,
        ("crash_after", None) => Fault::CrashAfter,
        ("kill_before", None) => Fault::KillBefore,
        ("kill_after", None) => Fault::KillAfter,
        ("lose_reply", None) => Fault::LoseReply,
        ("fail", None) => Fault::Fail,
        ("disk_full", None) => Fault::DiskFull,
        ("reorder", None) => Fault::Reorder,
        ("tear", Some(bytes)) => Fault::Tear(bytes.parse().ok()?),
        ("delay", Some(micros)) => Fault::Delay(Duration::from_micros(micros.parse().ok()?)),
        ("age", Some(objects)) => Fault::Age(objects.parse().ok()?),
        _ => return None,
    })
}
