//! How long a layer takes to find its own settings of a tool.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use tool_core::{Setting, Settings};

/// A setting of one of many layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Of<const LAYER: u32>(Duration);

impl<const LAYER: u32> Setting for Of<LAYER> {}

fn settings(n_layers: u32) -> Settings {
    let mut settings = Settings::default();
    let time = Duration::from_secs(1);
    macro_rules! set {
        ($($layer:literal)*) => {$(
            if $layer < n_layers {
                settings.set(Of::<$layer>(time));
            }
        )*};
    }
    set!(0 1 2 3 4 5 6 7 8 9 10 11);
    settings
}

fn slots(c: &mut Criterion) {
    let (none, two, all) = (settings(0), settings(2), settings(12));
    let mut group = c.benchmark_group("settings");
    group.bench_function("a field", |b| b.iter(|| black_box(&all).attempt_timeout));
    group.bench_function("absent of none", |b| {
        b.iter(|| black_box(&none).get::<Of<0>>().copied());
    });
    group.bench_function("absent of two", |b| {
        b.iter(|| black_box(&two).get::<Of<11>>().copied());
    });
    group.bench_function("second of two", |b| {
        b.iter(|| black_box(&two).get::<Of<1>>().copied());
    });
    group.bench_function("last of twelve", |b| {
        b.iter(|| black_box(&all).get::<Of<11>>().copied());
    });
    group.finish();
}

criterion_group!(benches, slots);
criterion_main!(benches);
