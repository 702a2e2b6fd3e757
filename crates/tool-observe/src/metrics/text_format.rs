//! Text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use prometheus::{
    TextEncoder,
    proto::{self, Bucket, Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType},
};

use super::{
    exposition::{Family, FamilyKind, MetricsPage, PREFIX, Sample, SampleValue},
    histogram::HistogramSnapshot,
};

/// Returns the page as text.
pub(super) fn render(page: MetricsPage) -> String {
    let mut text = String::new();
    for family in page.families() {
        let kind = match family.kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        if family.samples.is_empty() {
            // The library omits metrics without samples. The page names them, so that dashboards can be built on them.
            let Family { name, help, .. } = family;
            let _ = writeln!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
            continue;
        }
        // Fails only for metrics without a name or without samples.
        let _ = TextEncoder::new().encode_utf8(&[encode(family)], &mut text);
    }
    text
}

fn encode(family: Family) -> MetricFamily {
    let mut encoded = MetricFamily::default();
    encoded.set_name(format!("{PREFIX}{}", family.name));
    encoded.set_help(family.help);
    let kind = family.kind;
    encoded.set_field_type(match kind {
        FamilyKind::Counter => MetricType::COUNTER,
        FamilyKind::Gauge => MetricType::GAUGE,
        FamilyKind::Histogram => MetricType::HISTOGRAM,
    });
    let samples = family.samples.into_iter();
    encoded.set_metric(samples.map(|sample| metric(kind, sample)).collect());
    encoded
}

fn metric(kind: FamilyKind, sample: Sample) -> Metric {
    let labels = sample.labels.into_iter().map(|(name, value)| {
        let mut label = LabelPair::default();
        label.set_name(name);
        label.set_value(value);
        label
    });
    let mut metric = Metric::from_label(labels.collect());
    match (sample.value, kind) {
        (SampleValue::Histogram(snapshot), _) => metric.set_histogram(histogram(&snapshot)),
        (SampleValue::Number(value), FamilyKind::Counter) => {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        (SampleValue::Number(value), _) => {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
    }
    metric
}

fn histogram(snapshot: &HistogramSnapshot) -> proto::Histogram {
    let buckets = snapshot.cumulative.iter().map(|(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*count);
        bucket
    });
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(snapshot.count);
    histogram.set_sample_sum(snapshot.sum);
    histogram
}
