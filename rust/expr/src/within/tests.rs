use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array};
use arrow_cast::cast;
use arrow_schema::{Field, Schema, TimeUnit};
use proptest::prelude::*;

use crate::Predicate;

use super::*;

fn batch_of(values: &ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("a", values.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![values.clone()]).unwrap()
}

/// Whether a condition has the kernel, whose answers are DataFusion's.
fn has_kernel(condition: &str, values: &ArrayRef) -> bool {
    let batch = batch_of(values);
    let predicate = Predicate::parse_sql(condition, batch.schema_ref()).unwrap();
    let found = predicate.plan().evaluate(&batch).unwrap();
    let expected = predicate.plan().evaluate_physical(&batch).unwrap();
    assert_eq!(&found, &expected, "{condition} of {values:?}");
    predicate.plan().is_within()
}

fn types() -> Vec<DataType> {
    let mut types = vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Date32,
    ];
    for unit in [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ] {
        types.push(DataType::Timestamp(unit, None));
        types.push(DataType::Timestamp(unit, Some("+01:00".into())));
        types.push(DataType::Duration(unit));
    }
    types
}

#[test]
fn test_ranges_have_the_kernel_and_other_conditions_do_not() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(5), Some(-3)]));
    for condition in [
        "a = 5",
        "5 = a",
        "a > 1",
        "1 <= a",
        "a >= -3 AND a < 5",
        "a BETWEEN -3 AND 1",
        "a > 0 AND a > 1 AND 9 > a",
    ] {
        assert!(has_kernel(condition, &values), "{condition}");
    }
    // It may be simplified to false.
    has_kernel("a > 5 AND a < 1", &values);
    for condition in [
        "a <> 5",
        "a > 1 OR a = -3",
        "a NOT BETWEEN 0 AND 2",
        "a + 1 > 2",
        "a IS NULL",
        "NOT (a > 1 AND a < 3)",
    ] {
        assert!(!has_kernel(condition, &values), "{condition}");
    }
}

#[test]
fn test_floats_are_in_the_order_of_arrow() {
    let nan = f64::NAN;
    let values = [
        0.0,
        -0.0,
        1.5,
        -1.5,
        nan,
        -nan,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
    ];
    let doubles: ArrayRef = Arc::new(arrow_array::Float64Array::from(values.to_vec()));
    let floats = cast(&doubles, &DataType::Float32).unwrap();
    for condition in [
        "a > 1.5",
        "a >= 1.5",
        "a < -1.5",
        "a <= -1.5",
        "a = 1.5",
        "a > -2.0 AND a < 2.0",
        "a <= 1e300",
        "a > -1e300",
    ] {
        assert!(has_kernel(condition, &doubles), "{condition}");
        has_kernel(condition, &floats);
    }
    for condition in ["a > 0", "a = 0", "a >= -0.0", "a < 0"] {
        assert!(!has_kernel(condition, &doubles), "{condition}");
    }
}

#[test]
fn test_a_part_of_an_array_is_asked_as_a_part() {
    let values: ArrayRef = Arc::new(Int64Array::from(
        (0..500).map(|i| (i % 7 > 0).then_some(i)).collect::<Vec<_>>(),
    ));
    for (start, len) in [(0, 500), (1, 64), (63, 129), (77, 0), (499, 1)] {
        assert!(has_kernel("a >= 70 AND a < 200", &values.slice(start, len)));
    }
    let bytes: ArrayRef = Arc::new(UInt8Array::from_iter_values(0..=255));
    assert!(has_kernel("a > 250", &bytes.slice(3, 253)));
}

proptest! {
    #[test]
    fn test_answers_are_those_of_datafusion(
        numbers in proptest::collection::vec(proptest::option::of(-140_i64..300), 0..200),
        low in -150_i64..300,
        high in -150_i64..300,
        form in 0_usize..6,
    ) {
        let condition = match form {
            0 => format!("a >= {low} AND a < {high}"),
            1 => format!("a > {low} AND a <= {high}"),
            2 => format!("a = {low}"),
            3 => format!("a BETWEEN {low} AND {high}"),
            4 => format!("{low} < a"),
            _ => format!("a <= {high}"),
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        for data_type in types() {
            let Ok(values) = cast(&numbers, &data_type) else {
                continue;
            };
            let batch = batch_of(&values);
            // Bounds that the type cannot hold are refused by some types.
            if let Ok(predicate) = Predicate::parse_sql(&condition, batch.schema_ref()) {
                let found = predicate.plan().evaluate(&batch).unwrap();
                prop_assert_eq!(&found, &predicate.plan().evaluate_physical(&batch).unwrap(), "{} of {}", condition, data_type);
            }
        }
    }
}
