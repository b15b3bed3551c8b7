//! SQL filters by the rows that they keep. What pylance accepts has pylance's result here.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::rows::{batch, kept, DAY, JANUARY};
use crate::{ExprError, Predicate};

#[test]
fn test_days_are_midnights_of_the_zone_of_times() {
    let schema = Schema::new(vec![
        Field::new(
            "t",
            DataType::Timestamp(TimeUnit::Microsecond, Some("America/New_York".into())),
            true,
        ),
        Field::new("d", DataType::Date32, true),
    ]);
    // 2021-01-01 at 03:00 and at 06:00 in UTC: an hour before midnight and two behind it.
    let hour = DAY / 24;
    let day = i64::from(i32::try_from(JANUARY).unwrap()) * DAY;
    let times = TimestampMicrosecondArray::from(vec![day + 3 * hour, day + 6 * hour]).with_timezone("UTC");
    let days = Date32Array::from(vec![i32::try_from(JANUARY).unwrap(); 2]);
    let batch = RecordBatch::try_from_iter([("t", Arc::new(times) as ArrayRef), ("d", Arc::new(days))]).unwrap();
    for filter in [
        "t >= date '2021-01-01'",
        "date '2021-01-01' <= t",
        "t >= d",
        "d <= t",
        "t between date '2021-01-01' and date '2021-01-02'",
        "t >= '2021-01-01'",
        "cast(t as date) = d",
    ] {
        let found = Predicate::parse_sql(filter, &schema).unwrap().evaluate(&batch).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some(false), Some(true)], "{filter}");
    }
}

/// Filter and the rows it keeps, checked against pylance 14.
const AS_PYLANCE: &[(&str, &[i32])] = &[
    ("i > 1", &[2, 4]),
    ("I > 10", &[2, 3, 4]),
    ("`I` > 10", &[2, 3, 4]),
    ("s = \"a\"", &[1]),
    ("s = 'a'", &[1]),
    ("`my col` > 2", &[3, 4]),
    ("st.x > 1", &[2, 4]),
    ("st.`x` > 1", &[2, 4]),
    ("`st`.x > 1", &[2, 4]),
    ("st['x'] > 1", &[2, 4]),
    ("st[\"x\"] > 1", &[2, 4]),
    ("st.y.Z = 'p'", &[1]),
    ("st.y IS NULL", &[]),
    ("S = 'a'", &[1]),
    ("ts > timestamp '2021-01-02'", &[3, 4]),
    ("ts > date '2021-01-02'", &[3, 4]),
    ("tz > timestamp '2021-01-02 00:00:00'", &[3, 4]),
    ("tz > timestamp '2021-01-02T00:00:00Z'", &[3, 4]),
    ("d > date '2021-01-02'", &[3, 4]),
    ("d = timestamp '2021-01-02'", &[2]),
    ("dec > 2", &[2, 4]),
    ("dec = decimal(10,2) '2.25'", &[2]),
    ("dec = cast('2.25' as decimal(10,2))", &[2]),
    ("l is null", &[3]),
    ("array_has(l, 1)", &[1]),
    ("array_contains(l, 3)", &[2]),
    ("array_has_any(l, [1,3])", &[1, 2]),
    ("array_length(l) = 1", &[2]),
    ("l[1] = 3", &[2]),
    ("l = [3]", &[2]),
    ("b", &[1, 4]),
    ("not b", &[2]),
    ("~b", &[2]),
    ("b is true", &[1, 4]),
    ("b is not true", &[2, 3]),
    ("b is false", &[2]),
    ("b is not false", &[1, 3, 4]),
    ("b = true", &[1, 4]),
    ("isnan(f)", &[2]),
    ("f > 1", &[1, 2, 4]),
    ("f = 1.2", &[1]),
    ("f > 1.2", &[2, 4]),
    ("f in (1.2, 4)", &[1, 4]),
    ("f between 1.2 and 2", &[1]),
    ("u = 18446744073709551615", &[3]),
    ("u > 9223372036854775807", &[3]),
    ("by = X'ff'", &[2]),
    ("x'6'=by", &[]),
    ("s like 'a%'", &[1]),
    ("s ilike 'd_'", &[4]),
    ("s not like 'a%'", &[2, 4]),
    ("s in ('a','b')", &[1, 2]),
    ("s not in ('a')", &[2, 4]),
    ("s not in ('a', null)", &[]),
    ("s in ('a', null)", &[1]),
    ("i in (1, 2)", &[1, 2]),
    ("i between 1 and 3", &[1, 2]),
    ("i not between 1 and 3", &[4]),
    ("s is not null", &[1, 2, 4]),
    ("starts_with(s,'a')", &[1]),
    ("contains(s,'d')", &[4]),
    ("regexp_match(s,'^D')", &[4]),
    ("not regexp_match(s,'^D')", &[1, 2, 3]),
    ("regexp_like(s,'^D')", &[4]),
    ("length(s)=1", &[1, 2]),
    ("lower(s)='dd'", &[4]),
    ("s || 'x' = 'ax'", &[1]),
    ("is_valid(s)", &[1, 2, 4]),
    ("i = 1 or i is null", &[1, 3]),
    ("i == 1", &[1]),
    ("i != 1", &[2, 4]),
    ("i <> 1", &[2, 4]),
    ("i = null", &[]),
    ("i % 2 = 0", &[2, 4]),
    ("i / 2 = 1", &[2]),
    ("-i = -1", &[1]),
    ("- 1 = -i", &[1]),
    ("i = -(-1)", &[1]),
    ("try_cast(s as int) = 1", &[]),
    ("cast(i as string) = '1'", &[1]),
    ("i::string = '1'", &[1]),
    ("cast(i as bigint) = 1", &[1]),
    ("arrow_cast(i,'Float32') = 1", &[1]),
    ("coalesce(i, 0) = 0", &[3]),
    ("date_part('day', ts) = 2", &[2]),
    ("date_trunc('day', ts) = timestamp '2021-01-02'", &[2]),
    ("i is distinct from 1", &[2, 3, 4]),
    ("true", &[1, 2, 3, 4]),
    ("false", &[]),
    ("i > 1 and s = 'b'", &[2]),
    ("i>1 AND NOT (s='b')", &[4]),
    ("ts > now()", &[]),
    ("abs(i) = 1", &[1]),
    ("n > 2 -- comment", &[3, 4]),
    ("\"s\" = 'a'", &[]),
    ("ls = 'a'", &[1]),
    ("dict = 'a'", &[1, 4]),
    ("dict in ('a', 'b')", &[1, 2, 4]),
    ("dict like 'a%'", &[1, 4]),
    ("dict is null", &[3]),
    ("v is null", &[3]),
];

/// Filters that pylance refuses and we take.
const BEYOND_PYLANCE: &[(&str, &[i32])] = &[
    ("ts > '2021-01-02'", &[3, 4]),
    ("tz > '2021-01-02'", &[3, 4]),
    ("ns > '2021-01-02'", &[3, 4]),
    ("ns > timestamp '2021-01-02'", &[3, 4]),
    ("ns > timestamp '0001-01-01'", &[1, 2, 3, 4]),
    ("d > '2021-01-02'", &[3, 4]),
    ("ts = '2021-01-02T00:00:00'", &[2]),
    ("ts between '2021-01-02' and '2021-01-03'", &[2, 3]),
    ("ts in ('2021-01-02', '2021-01-03')", &[2, 3]),
    ("t = '00:00:00.000001'", &[1]),
    ("t = time '00:00:00.000001'", &[1]),
    ("dec = 2.25", &[2]),
    ("dec > 2.0", &[2, 4]),
    ("dec = 2.251", &[]),
    ("dec = decimal '2.25'", &[2]),
    ("g = 1.2", &[1]),
    ("i > 1.5", &[2, 4]),
    ("i = '1'", &[1]),
    ("i in ('1','2')", &[1, 2]),
    ("i < 18446744073709551615", &[1, 2, 4]),
    ("u > -1", &[1, 2, 3, 4]),
    ("u8 > -1", &[1, 2, 3, 4]),
    ("u8 = 300", &[]),
    ("u8 < 300", &[1, 2, 3, 4]),
    ("by = 'a'", &[1]),
    ("fb = X'6262'", &[2]),
    ("i & 1 = 1", &[1]),
    ("b is unknown", &[3]),
    ("case when i=1 then true else false end", &[1]),
    ("case i when 1 then 'x' when 2 then 'y' end = 'y'", &[2]),
    ("cast(i as int64) = 1", &[1]),
    ("cast(i as varchar) = '1'", &[1]),
    ("extract(day from ts) = 2", &[2]),
    ("position('b' in s) = 1", &[2]),
    ("substring(s from 1 for 1) = 'a'", &[1]),
    ("substr(s,1,1) = 'a'", &[1]),
    ("trim(s) = 'a'", &[1]),
    ("s ~ '^a'", &[1]),
    ("s similar to 'a'", &[1]),
    ("ts + interval '1 day' > timestamp '2021-01-04'", &[4]),
    ("du > interval '2 second'", &[3, 4]),
    ("sv = 'a'", &[1]),
    ("sv like 'D%'", &[4]),
    ("b = 'true'", &[1, 4]),
    ("round(g) = 4", &[4]),
    ("(i, n) = (1, 1)", &[1]),
    ("i = 1.0", &[1]),
    ("i > 1e2", &[]),
    ("u = 18446744073709551616", &[]),
    ("u < 18446744073709551616", &[1, 2, 3, 4]),
    ("n < 3000000000", &[1, 2, 3, 4]),
    ("i > -9223372036854775808", &[1, 2, 4]),
    ("2 = any(l)", &[1]),
    ("i = any([1, 2])", &[1, 2]),
    ("'2021-01-02' < d", &[3, 4]),
    ("n in (1, 2.5)", &[1]),
    ("dec in (1.5, 4)", &[1, 4]),
    ("ns < timestamp '9999-12-31' and ns > date '0001-01-01'", &[1, 2, 3, 4]),
    ("ns between timestamp '0001-01-01' and timestamp '2021-01-02'", &[1, 2]),
    ("ns in (timestamp '2021-01-02', timestamp '9999-12-31')", &[2]),
    ("t > time '00:00:00.000002'", &[3, 4]),
    ("not (t = time '00:00:00.000001')", &[2, 3, 4]),
    ("not (t < time '00:00:00.000003' or t > time '00:00:00.000003')", &[3]),
    ("not (regexp_match(s,'^D') or i = 1)", &[2]),
];

fn check(cases: &[(&str, &[i32])]) {
    let schema = batch().schema();
    let mut wrong = Vec::new();
    for (filter, rows) in cases {
        match Predicate::parse_sql(filter, &schema) {
            Ok(predicate) if kept(&predicate) == *rows => {}
            Ok(predicate) => wrong.push(format!("{filter}: kept {:?}, expected {rows:?}", kept(&predicate))),
            Err(error) => wrong.push(format!("{filter}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn test_filters_keep_the_rows_that_pylance_keeps() {
    check(AS_PYLANCE);
}

#[test]
fn test_filters_beyond_pylance_keep_the_right_rows() {
    check(BEYOND_PYLANCE);
}

#[test]
fn test_the_canonical_text_parses_to_the_same_rows() {
    let schema = batch().schema();
    for (filter, rows) in AS_PYLANCE.iter().chain(BEYOND_PYLANCE) {
        let text = Predicate::parse_sql(filter, &schema).unwrap().to_string();
        let again = Predicate::parse_sql(&text, &schema).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(kept(&again), *rows, "{text}");
    }
}

#[test]
fn test_nulls_stay_null() {
    let batch = batch();
    let mask = Predicate::parse_sql("i > 1", &batch.schema())
        .unwrap()
        .evaluate(&batch)
        .unwrap();
    assert_eq!(
        mask,
        arrow_array::BooleanArray::from(vec![Some(false), Some(true), None, Some(true)])
    );
}

#[test]
fn test_what_no_row_can_make_true_is_known() {
    let schema = Schema::new(vec![
        Field::new("i", DataType::Int64, true),
        Field::new("certain", DataType::Int64, false),
        Field::new("f", DataType::Float64, true),
    ]);
    let is_never = |text: &str| Predicate::parse_sql(text, &schema).unwrap().is_never();
    for text in ["false", "1 = 0", "null = 1", "false and i = 1", "i in (1) and 2 < 1"] {
        assert!(is_never(text), "{text}");
    }
    for text in [
        "true",
        "i = 1",
        "certain is not null",
        "false or i = 1",
        "i is null",
        "random() < 0",
        "f = f",
        "i = null or true",
    ] {
        assert!(!is_never(text), "{text}");
    }
}

#[test]
fn test_columns_are_the_top_level_ones_it_reads() {
    let schema = batch().schema();
    let columns = |text: &str| Predicate::parse_sql(text, &schema).unwrap().columns().to_vec();
    assert_eq!(columns("st.y.Z = 'p' and i > 1 or S is null"), ["i", "s", "st"]);
    assert_eq!(columns("true"), Vec::<String>::new());
}

#[test]
fn test_and_keeps_what_both_keep() {
    let schema = batch().schema();
    let left = Predicate::parse_sql("i > 1 or i is null", &schema).unwrap();
    let both = left.and(&Predicate::parse_sql("n < 4", &schema).unwrap()).unwrap();
    assert_eq!(kept(&both), [2, 3]);
    assert_eq!(both.columns(), ["i", "n"]);
    assert_eq!(both.to_string(), "(i > 1 OR i IS NULL) AND (n < 4)");
    assert_eq!(kept(&Predicate::parse_sql(&both.to_string(), &schema).unwrap()), [2, 3]);
}

#[test]
fn test_a_predicate_runs_on_many_threads() {
    let batch = batch();
    let predicate = Predicate::parse_sql("i > 1 and s like 'b%'", &batch.schema()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (predicate, batch) = (predicate.clone(), &batch);
            scope.spawn(move || assert_eq!(predicate.evaluate(batch).unwrap().true_count(), 1));
        }
    });
}

#[test]
fn test_a_long_chain_of_conditions_does_not_overflow_the_stack() {
    let schema = batch().schema();
    for operator in ["or", "and"] {
        let filter = (0..3_000)
            .map(|k| format!("i != {k} {operator} s = '{k}'"))
            .collect::<Vec<_>>();
        let filter = filter.join(&format!(" {operator} "));
        let predicate = Predicate::parse_sql(&filter, &schema).unwrap();
        predicate.evaluate(&batch()).unwrap();
    }
    let listed = (2..100_000).map(|k| k.to_string()).collect::<Vec<_>>().join(", ");
    let predicate = Predicate::parse_sql(&format!("i in ({listed})"), &schema).unwrap();
    assert_eq!(kept(&predicate), [2, 4]);
}

/// Filters that are as deep as they are long.
fn deep(times: usize) -> Vec<String> {
    let rep = |text: &str| text.repeat(times);
    vec![
        format!("i = 0{}", rep("+1")),
        format!("i = {}1", rep("- ")),
        format!("i{} = 1", rep("::bigint")),
        format!("i{}", rep(" is null")),
        format!("{}b{}", rep("("), rep(")")),
        format!("{}b", rep("not ")),
        format!("{}b{}", rep("not ("), rep(")")),
        format!("{}b b{}", rep("not ("), rep(")")),
        format!("l{} = 1", rep("[1]")),
        format!("i = {}1{}", rep("abs("), rep(")")),
        format!("st{} = 1", rep(".x")),
        format!("{}b", rep("b = ")),
        format!("{}b", rep("b and not b or ")),
        format!("s = 'a'{}", rep(" || 'b'")),
        format!("{}b{}", rep("b and ("), rep(")")),
        format!("{}true{}", rep("case when b then "), rep(" else false end")),
    ]
}

#[test]
fn test_a_deep_expression_is_refused_or_works_but_never_overflows_the_stack() {
    let check = || {
        for filter in [10, 40, 90, 150, 199, 20_000].into_iter().flat_map(deep) {
            match Predicate::parse_sql(&filter, &batch().schema()) {
                Ok(predicate) => drop(predicate.evaluate(&batch())),
                Err(error) => assert!(matches!(error, ExprError::InvalidArgument(_)), "{error}"),
            }
        }
    };
    // A quarter of what a thread has by default.
    std::thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(check)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn test_zeros_of_both_signs_are_in_a_list_that_has_one() {
    use arrow_array::{Float64Array, RecordBatch};
    let rows = RecordBatch::try_from_iter([(
        "x",
        std::sync::Arc::new(Float64Array::from(vec![0.0, -0.0, 1.0])) as arrow_array::ArrayRef,
    )])
    .unwrap();
    for (filter, count) in [
        ("x IN (0, 5, 6, 7)", 2),
        ("x NOT IN (-0.0, 5, 6, 7)", 1),
        ("CASE x WHEN -0.0 THEN true ELSE false END", 2),
    ] {
        let predicate = Predicate::parse_sql(filter, &rows.schema()).unwrap();
        assert_eq!(predicate.evaluate(&rows).unwrap().true_count(), count, "{filter}");
    }
}

#[test]
fn test_a_condition_decides_for_which_rows_the_next_is_computed() {
    for filter in [
        "CASE WHEN n = 1 THEN false ELSE 10 / (n - 1) > 1 END",
        "n <> 1 AND 10 / (n - 1) > 1",
        "coalesce(n = 1 AND NULL, 10 / (n - 1) > 1)",
    ] {
        let schema = batch().schema();
        let predicate = Predicate::parse_sql(filter, &schema).unwrap();
        match filter.starts_with("coalesce") {
            // Null for the first row, which is therefore computed.
            true => assert!(predicate.evaluate(&batch()).is_err()),
            false => assert_eq!(kept(&predicate), [2, 3, 4], "{filter}"),
        }
    }
}
