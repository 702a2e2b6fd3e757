//! Cost of a schema for a call: compiling it once, and checking arguments of some hundred bytes each time.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_schema::Schema;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "description": "The name of the city."},
            "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "hourly": {"type": "boolean"},
        },
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn bench(criterion: &mut Criterion) {
    let raw = RawJson::from(schema());
    let compiled = Schema::compile(&raw).expect("the schema is usable");
    let right = json!({"city": "Longyearbyen, Svalbard and Jan Mayen", "units": "celsius", "days": 7, "hourly": true});
    let wrong = json!({"city": "Oslo", "units": "kelvin", "days": 20});
    criterion.bench_function("compile", |bencher| {
        bencher.iter(|| Schema::compile(black_box(&raw)).is_ok());
    });
    criterion.bench_function("check what fits", |bencher| {
        bencher.iter(|| compiled.check(black_box(&right)).is_ok());
    });
    criterion.bench_function("check what does not fit", |bencher| {
        bencher.iter(|| compiled.check(black_box(&wrong)).is_ok());
    });

    let tree = json!({"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}});
    let compiled = Schema::compile(&RawJson::from(tree)).expect("the schema is usable");
    let value = (0..8).fold(
        json!({"name": "leaf"}),
        |inner, _| json!({"name": "node", "children": [inner]}),
    );
    criterion.bench_function("check a tree", |bencher| {
        bencher.iter(|| compiled.check(black_box(&value)).is_ok());
    });

    // Worst case of a small pair: the whole budget of a counted check.
    let branch = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a"]});
    let compiled = Schema::compile(&RawJson::from(
        json!({"oneOf": [branch, branch, branch, {"type": "string"}]}),
    ))
    .expect("the schema is usable");
    let value = (0..14).fold(json!(1), |inner, _| json!({"a": inner, "b": inner}));
    criterion.bench_function("check what blows up", |bencher| {
        bencher.iter(|| compiled.check(black_box(&value)).is_ok());
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
