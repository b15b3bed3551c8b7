//! Interval arithmetic for pruning: the bounds of a value, and the possible truth values of a condition.

use std::cmp::Ordering;

use arrow_schema::DataType;
use datafusion_common::ScalarValue;

/// The possible truth values of a condition: at least one of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) is_true: bool,
    pub(crate) is_false: bool,
    pub(crate) is_null: bool,
}

impl Truth {
    /// Nothing is known.
    pub(crate) const ANY: Truth = Truth {
        is_true: true,
        is_false: true,
        is_null: true,
    };

    /// Certainly false.
    pub(crate) const FALSE: Truth = Truth {
        is_true: false,
        is_false: true,
        is_null: false,
    };

    /// Impossible: no truth value.
    pub(crate) const NONE: Truth = Truth {
        is_true: false,
        is_false: false,
        is_null: false,
    };

    /// Certainly null.
    pub(crate) const NULL: Truth = Truth {
        is_true: false,
        is_false: false,
        is_null: true,
    };

    /// A truth that is never null.
    pub(crate) fn known(is_true: bool, is_false: bool) -> Truth {
        Truth {
            is_true,
            is_false,
            is_null: false,
        }
    }

    /// The union of both.
    pub(crate) fn either(self, other: Truth) -> Truth {
        Truth {
            is_true: self.is_true || other.is_true,
            is_false: self.is_false || other.is_false,
            is_null: self.is_null || other.is_null,
        }
    }

    pub(crate) fn not(self) -> Truth {
        Truth {
            is_true: self.is_false,
            is_false: self.is_true,
            is_null: self.is_null,
        }
    }

    pub(crate) fn negate_if(self, negated: bool) -> Truth {
        if negated {
            self.not()
        } else {
            self
        }
    }

    pub(crate) fn and(self, other: Truth) -> Truth {
        Truth {
            is_true: self.is_true && other.is_true,
            is_false: self.is_false || other.is_false,
            is_null: (self.is_null && (other.is_null || other.is_true)) || (other.is_null && self.is_true),
        }
    }

    pub(crate) fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }
}

/// The bounds of a value, and whether it may be null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interval {
    /// `None` if unknown.
    pub(crate) low: Option<ScalarValue>,
    pub(crate) high: Option<ScalarValue>,
    pub(crate) has_values: bool,
    pub(crate) has_nulls: bool,
    /// Whether it is an IEEE NaN: neither less than, nor equal to, nor greater than anything.
    pub(crate) is_unordered: bool,
}

impl Interval {
    /// Anything.
    pub(crate) fn unknown() -> Interval {
        Interval {
            low: None,
            high: None,
            has_values: true,
            has_nulls: true,
            is_unordered: false,
        }
    }

    /// One value.
    pub(crate) fn point(value: &ScalarValue) -> Interval {
        let bound = Some(value.clone()).filter(|value| !value.is_null());
        Interval {
            low: bound.clone(),
            has_values: bound.is_some(),
            has_nulls: bound.is_none(),
            high: bound,
            is_unordered: false,
        }
    }

    /// The same column, assumed to be an unordered NaN; `None` if it cannot hold one.
    pub(crate) fn unordered(&self) -> Option<Interval> {
        let kind = self.low.as_ref().or(self.high.as_ref())?.data_type();
        (self.has_values && kind.is_floating()).then(|| Interval {
            low: None,
            high: None,
            is_unordered: true,
            ..self.clone()
        })
    }

    /// The same column, assumed to be a NaN with or without its sign; `None` if it cannot hold one.
    pub(crate) fn nan(&self, negative: bool) -> Option<Interval> {
        let kind = self.low.as_ref().or(self.high.as_ref())?.data_type();
        // Every NaN of that sign, from the least to the greatest in the total order.
        let (low, high) = match (kind, negative) {
            (DataType::Float32, false) => (float(0x7f80_0001), float(0x7fff_ffff)),
            (DataType::Float32, true) => (float(0xffff_ffff), float(0xff80_0001)),
            (DataType::Float64, false) => (double(0x7ff0_0000_0000_0001), double(0x7fff_ffff_ffff_ffff)),
            (DataType::Float64, true) => (double(0xffff_ffff_ffff_ffff), double(0xfff0_0000_0000_0001)),
            _ => return Some(Interval::unknown()),
        };
        self.has_values.then(|| Interval {
            low: Some(low),
            high: Some(high),
            ..self.clone()
        })
    }

    /// Whether it is null.
    pub(crate) fn is_null(&self) -> Truth {
        Truth::known(self.has_nulls, self.has_values)
    }

    /// The value as a condition.
    pub(crate) fn truth(&self) -> Truth {
        let bound = |bound: &Option<ScalarValue>| match bound {
            Some(ScalarValue::Boolean(value)) => *value,
            _ => None,
        };
        Truth {
            is_true: self.has_values && bound(&self.high) != Some(false),
            is_false: self.has_values && bound(&self.low) != Some(true),
            is_null: self.has_nulls,
        }
    }

    /// The possible orderings with another value: less, equal, greater.
    fn compare(&self, other: &Interval) -> [bool; 3] {
        if !self.has_values || !other.has_values || self.is_unordered || other.is_unordered {
            return [false; 3];
        }
        // `None` if one of the two is unknown or their types differ.
        let order = |a: &Option<ScalarValue>, b: &Option<ScalarValue>| a.as_ref()?.partial_cmp(b.as_ref()?);
        let lowest = order(&self.low, &other.high);
        let highest = order(&self.high, &other.low);
        [
            !matches!(lowest, Some(Ordering::Greater | Ordering::Equal)),
            lowest != Some(Ordering::Greater) && highest != Some(Ordering::Less),
            !matches!(highest, Some(Ordering::Less | Ordering::Equal)),
        ]
    }

    /// Whether both have values and one is an unordered NaN: then every comparison is false.
    fn is_incomparable(&self, other: &Interval) -> bool {
        (self.is_unordered || other.is_unordered) && self.has_values && other.has_values
    }

    pub(crate) fn equals(&self, other: &Interval) -> Truth {
        let [less, equal, greater] = self.compare(other);
        Truth {
            is_true: equal,
            is_false: less || greater || self.is_incomparable(other),
            is_null: self.has_nulls || other.has_nulls,
        }
    }

    pub(crate) fn is_less(&self, other: &Interval) -> Truth {
        let [less, equal, greater] = self.compare(other);
        Truth {
            is_true: less,
            is_false: equal || greater || self.is_incomparable(other),
            is_null: self.has_nulls || other.has_nulls,
        }
    }

    /// Not the negation of less: for NaN both are false.
    pub(crate) fn is_at_least(&self, other: &Interval) -> Truth {
        let [less, equal, greater] = self.compare(other);
        Truth {
            is_true: equal || greater,
            is_false: less || self.is_incomparable(other),
            is_null: self.has_nulls || other.has_nulls,
        }
    }

    /// The bounds after a function that keeps the order of values.
    pub(crate) fn mapped(self, function: impl Fn(&ScalarValue) -> Option<ScalarValue>) -> Interval {
        let bound = |bound: &Option<ScalarValue>| bound.as_ref().and_then(&function);
        Interval {
            low: bound(&self.low),
            high: bound(&self.high),
            ..self
        }
    }

    /// The bounds after a cast that keeps the order of values; unknown after any other cast.
    pub(crate) fn cast(self, wanted: &DataType, may_fail: bool) -> Interval {
        if self.is_unordered {
            return Interval {
                has_nulls: self.has_nulls || may_fail,
                ..Interval::unknown()
            };
        }
        let bound = |bound: &Option<ScalarValue>| {
            let value = bound.as_ref()?;
            if !keeps_order(&value.data_type(), wanted) || is_nan(value) {
                return None;
            }
            value.cast_to(wanted).ok().filter(|value| !value.is_null())
        };
        let (low, high) = (bound(&self.low), bound(&self.high));
        let both = low.is_some() && high.is_some();
        Interval {
            has_nulls: self.has_nulls || (may_fail && !both),
            low,
            high,
            has_values: self.has_values,
            is_unordered: false,
        }
    }
}

/// A cast may turn one NaN into another.
pub(crate) fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(number)) => number.is_nan(),
        ScalarValue::Float64(Some(number)) => number.is_nan(),
        _ => false,
    }
}

fn float(bits: u32) -> ScalarValue {
    ScalarValue::Float32(Some(f32::from_bits(bits)))
}

fn double(bits: u64) -> ScalarValue {
    ScalarValue::Float64(Some(f64::from_bits(bits)))
}

/// Whether a cast is monotonic.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, Date32, Date64, Float32, Float64, LargeBinary, LargeUtf8, Timestamp, Utf8, Utf8View};
    let is_decimal = |t: &DataType| matches!(t, DataType::Decimal128(_, _));
    match (from, to) {
        _ if from == to => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) | (Binary | LargeBinary, Binary | LargeBinary) => {
            true
        }
        _ if from.is_integer() && (to.is_integer() || is_decimal(to)) => true,
        _ if from.is_integer() && matches!(to, Float32 | Float64) => true,
        (Float32, Float64) => true,
        _ if is_decimal(from) && is_decimal(to) => true,
        (Date32, Date64 | Timestamp(_, None)) => true,
        (Timestamp(_, from), Timestamp(_, to)) => from == to,
        _ => false,
    }
}
