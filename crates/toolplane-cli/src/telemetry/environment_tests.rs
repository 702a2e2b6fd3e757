use std::time::Duration;

use super::*;

/// Reads these variables.
fn read(variables: &[(&str, &str)]) -> ExportSettings {
    ExportSettings::read(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn signals(asked: &ExportSettings) -> Vec<Signal> {
    asked.exports.iter().map(|export| export.signal).collect()
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");

#[test]
fn nothing_is_exported_unless_an_endpoint_is_set_and_nothing_turns_it_off() {
    let off = [
        vec![],
        vec![("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_SAMPLER", "always_on")],
        vec![ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
        vec![
            ENDPOINT,
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_LOGS_EXPORTER", "none"),
        ],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
    ];
    for variables in off {
        assert_eq!(read(&variables), ExportSettings::default(), "{variables:?}");
    }
    let asked = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2@host")]);
    assert!(asked.exports.is_empty());
    assert!(asked.problems.len() == 1 && !asked.problems[0].contains("hunter2"));
}

#[test]
fn signals_are_exported_each_for_itself() {
    assert_eq!(signals(&read(&[ENDPOINT])), Signal::ALL);
    for (name, signal) in [
        ("TRACES", Signal::Traces),
        ("METRICS", Signal::Metrics),
        ("LOGS", Signal::Logs),
    ] {
        let own = format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT");
        let asked = read(&[(&own, "https://me:hunter2@t.example.com/x?key=hunter2")]);
        assert_eq!(signals(&asked), [signal]);
        assert_eq!(asked.exports[0].collector, "https://t.example.com");
        assert!(asked.exports[0].has_tls);
        let off = format!("OTEL_{name}_EXPORTER");
        let asked = read(&[ENDPOINT, (&off, "none")]);
        let others: Vec<_> = Signal::ALL.into_iter().filter(|known| *known != signal).collect();
        assert_eq!(signals(&asked), others);
        let asked = read(&[ENDPOINT, (&off, "console")]);
        assert_eq!((signals(&asked), asked.problems.len()), (others, 1));
        assert_eq!(signals(&read(&[ENDPOINT, (&off, "console, otlp")])), Signal::ALL);
    }
}

#[test]
fn the_variable_of_a_signal_wins_over_that_of_all() {
    let asked = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "GRPC"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "1000"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "3000"),
    ]);
    assert_eq!(asked.problems, [""; 0]);
    let found = asked
        .exports
        .iter()
        .map(|export| (export.transport, export.timeout));
    let seconds = Duration::from_secs;
    let expected = [
        (Transport::Grpc, seconds(3)),
        (Transport::Grpc, seconds(2)),
        (Transport::Http, seconds(2)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn grpc_names_collectors_without_a_scheme() {
    let asked = |more: &[(&str, &str)]| {
        let mut variables = vec![
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        variables.extend(more);
        read(&variables)
    };
    assert!(asked(&[]).exports[0].has_tls);
    assert!(!asked(&[("OTEL_EXPORTER_OTLP_INSECURE", "true")]).exports[0].has_tls);
    let http = read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317")]);
    assert_eq!((http.exports.len(), http.problems.len()), (0, 1));
}

#[test]
fn variables_that_are_not_supported_are_named_where_something_is_exported() {
    let unsupported = [
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/key.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/client.pem"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ("OTEL_PROPAGATORS", "none"),
    ];
    for variable in unsupported {
        assert_eq!(read(&[variable]).problems, [""; 0]);
        let asked = read(&[ENDPOINT, variable]);
        assert_eq!(signals(&asked), Signal::ALL);
        let [problem] = &asked.problems[..] else {
            panic!("{variable:?}: {:?}", asked.problems)
        };
        assert!(problem.contains(variable.0), "{problem}");
    }
    for names in ["tracecontext", "tracecontext, baggage"] {
        let asked = read(&[ENDPOINT, ("OTEL_PROPAGATORS", names)]);
        assert_eq!(asked.problems, [""; 0], "{names}");
    }
}

#[test]
fn samplers_have_the_names_of_the_specification() {
    for name in ["always_on", "always_off", "traceidratio"] {
        for name in [name.to_owned(), format!("parentbased_{name}")] {
            let asked = read(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", &name)]);
            assert_eq!(asked.problems, [""; 0], "{name}");
        }
    }
    for (name, follows) in [("parentbased_traceidratio", true), ("traceidratio", false)] {
        for (argument, is_ratio) in [
            ("0", true),
            ("1", true),
            ("0.01", true),
            ("-1", false),
            ("2", false),
            ("nan", false),
        ] {
            let variables = [
                ENDPOINT,
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", argument),
            ];
            let asked = read(&variables);
            let expected = (!is_ratio).then_some(FollowsCallers(follows));
            assert_eq!(asked.corrections.sample_all, expected, "{name} {argument}");
            assert_eq!(asked.problems.is_empty(), is_ratio, "{argument}");
        }
    }
}

#[test]
fn values_that_are_not_understood_are_named_and_the_defaults_hold() {
    let asked = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2,a=b"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "-1"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
    ]);
    assert_eq!(asked.problems.len(), 8, "{:?}", asked.problems);
    assert!(!asked.problems.concat().contains("hunter2"));
    for export in &asked.exports {
        assert_eq!(
            (export.transport, export.timeout),
            (Transport::Http, Duration::from_secs(10))
        );
    }
    let corrections = asked.corrections;
    assert_eq!(corrections.span_queue, Some(2048));
    assert_eq!(corrections.log_delay, Some(Duration::from_secs(1)));
    assert_eq!(corrections.metric_interval, Some(Duration::from_secs(60)));
    // Values that the SDK handles well are left to it.
    assert_eq!((corrections.log_queue, corrections.span_delay), (None, None));
    // The SDK allocates the whole queue at the start.
    let huge = read(&[ENDPOINT, ("OTEL_BSP_MAX_QUEUE_SIZE", "18446744073709551615")]);
    assert_eq!(huge.corrections.span_queue, Some(1 << 20));
}
