//! Speed of the search for secrets in prose, JSON and a large base64 image, none of which contains one.

use std::hint::black_box;

use base64::{Engine, engine::general_purpose::STANDARD};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raw_json::RawJson;
use serde_json::json;
use tool_core::SecretSearch;

fn prose(size: usize) -> String {
    let line = "The quick brown fox jumps over the lazy dog, again and again; nobody knows why (yet).\n";
    line.repeat(size / line.len() + 1)[..size].to_owned()
}

fn records(size: usize) -> String {
    let record = |id| json!({"id": id, "name": format!("someone {id}"), "url": "https://h/a%20b?x=1&y=2", "tags": ["a", "b"]});
    let records: Vec<_> = (0..size / 90).map(record).collect();
    json!({ "items": records }).to_string()
}

/// Returns arbitrary bytes in place of an image.
fn image(size: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let bytes = (0..size * 3 / 4).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    });
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

/// Returns a page whose text has all kinds of escapes.
fn page(size: usize) -> String {
    let line = "<a href=\"/search?q=a%20b%2Fc&amp;n=1\">caf&#233; &amp; bar</a>\n";
    line.repeat(size / line.len() + 1)[..size].to_owned()
}

fn search(criterion: &mut Criterion) {
    let secrets = [
        "CANARYq8Zt+Lm/4vW==",
        "sk-0123456789abcdefghijklmnop",
        "correct-horse-battery",
    ];
    let search = SecretSearch::new(secrets);
    for (size, name) in [(1 << 10, "1 KiB"), (64 << 10, "64 KiB"), (1 << 20, "1 MiB")] {
        let of_text = |text: &str| RawJson::from(json!({"content": [{"type": "text", "text": text}]}));
        let values = [
            ("prose", of_text(&prose(size))),
            ("JSON", RawJson::parse(records(size)).expect("JSON")),
            ("JSON in a text", of_text(&records(size))),
            (
                "image",
                RawJson::from(json!({"content": [{"type": "image", "data": image(size)}]})),
            ),
            ("page", of_text(&page(size))),
        ];
        let mut group = criterion.benchmark_group(name);
        for (kind, value) in values {
            assert!(search.hide_in_json(&value).is_none(), "there is nothing to hide");
            group.throughput(Throughput::Bytes(value.len() as u64));
            group.bench_function(kind, |bencher| {
                bencher.iter(|| search.hide_in_json(black_box(&value)));
            });
        }
        let encoded = image(size);
        group.bench_function("decode the image once", |bencher| {
            bencher.iter(|| STANDARD.decode(black_box(&encoded)));
        });
        group.finish();
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
