//! x
use arrow_array::*;
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let n = 1_000_000;
    let b = RecordBatch::try_from_iter([
        ("i", Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef),
        (
            "s",
            Arc::new(StringArray::from_iter_values((0..n).map(|k| format!("row {k}")))) as ArrayRef,
        ),
        (
            "f",
            Arc::new(Float32Array::from_iter_values((0..n).map(|k| k as f32))) as ArrayRef,
        ),
    ])
    .unwrap();
    for n in [1000, 10000, 20000, 40000] {
        let q = format!(
            "i in ({})",
            (0..n).map(|k| format!("{k}")).collect::<Vec<_>>().join(",")
        );
        let t = Instant::now();
        let p = esker_expr::Predicate::parse_sql(&q, &b.schema()).unwrap();
        println!("{n} in parse {:?}", t.elapsed());
        let t = Instant::now();
        p.evaluate(&b).unwrap();
        println!("   evaluate {:?}", t.elapsed());
        let q = format!(
            "s in ({})",
            (0..n).map(|k| format!("'{k}'")).collect::<Vec<_>>().join(",")
        );
        let t = Instant::now();
        let p = esker_expr::Predicate::parse_sql(&q, &b.schema()).unwrap();
        println!("{n} in parse {:?}", t.elapsed());
        let t = Instant::now();
        p.evaluate(&b).unwrap();
        println!("   evaluate {:?}", t.elapsed());
    }
}
