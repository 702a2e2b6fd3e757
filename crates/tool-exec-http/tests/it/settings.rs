use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::Executor;

use crate::support::{Values, descriptor, executor, prepare, prepare_by, problems};

#[expect(clippy::needless_pass_by_value, reason = "a table reads better without `&`")]
fn check(config: Value, expected: &[&str]) {
    let found = problems(config.clone());
    for expected in expected {
        assert!(
            found.iter().any(|problem| problem.contains(expected)),
            "{config}: {expected} not in {found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{config}: {found:#?}");
}

#[test]
fn every_problem_is_told_with_its_place() {
    check(
        json!([]),
        &[
            "the settings of an `http` tool must be an object",
            ": `url` is missing",
        ],
    );
    check(json!({}), &[": `url` is missing"]);
    check(
        json!({"ulr": "https://a.example", "metod": "GET", "zzzzzzzzz": 1}),
        &[
            "/ulr: unknown setting `ulr` [did you mean `url`?]",
            "/metod: unknown setting `metod` [did you mean `method`?]",
            "/zzzzzzzzz: unknown setting `zzzzzzzzz` [there are ",
            ": `url` is missing",
        ],
    );
    check(
        json!({"url": "https://a.example", "timeout_ms": "5s", "redact": [1], "request": {"qery_params": [], "exclude": 1}, "response": {"x": 1}}),
        &[
            "/timeout_ms: invalid type",
            "/redact: invalid type",
            "/request/qery_params: unknown setting `qery_params` [did you mean `query_params`?]",
            "/request/exclude: invalid type",
            "/response/x: unknown setting `x`",
        ],
    );
    let with_key = |key| json!({"url": "https://a.example", "headers": {"X-Key": "1"}, "idempotency": key});
    check(with_key(json!({})), &["/idempotency: `header` is missing"]);
    check(
        with_key(json!({"heder": "X-Id"})),
        &[
            "/idempotency/heder: unknown setting `heder` [did you mean `header`?]",
            "`header` is missing",
        ],
    );
    check(
        with_key(json!({"header": "x-key"})),
        &["/idempotency/header: the header `x-key` is given in `headers` as well"],
    );
    check(
        with_key(json!({"header": "Host"})),
        &["/idempotency/header: `host` is set by the client"],
    );
    check(
        json!({"url": "https://a.example", "multimodal": {"enabled": true}}),
        &["/multimodal: unknown setting `multimodal`"],
    );
    check(
        json!({"url": "https://a.example", "url_template": "https://b.example", "body": 1, "body_template": 2}),
        &[
            "/url_template: is another name of `url`",
            "/body_template: is another name of `body`",
        ],
    );
}

#[test]
fn what_runs_an_http_tool_speaks_http() {
    let tool = prepare(json!({"url": "https://{host}.example/"}));
    assert_eq!(tool.invoke().dyn_protocol(), Some("http"));
}

#[test]
fn addresses() {
    for (url, expected) in [
        ("a.example/x", "/url: must begin with `http://` or `https://`"),
        ("ftp://a.example", "/url: must begin with `http://` or `https://`"),
        (
            "file:///etc/passwd",
            "/url: must begin with `http://` or `https://`",
        ),
        (
            "unix:///run/docker.sock",
            "/url: must begin with `http://` or `https://`",
        ),
        (
            "https://user:pass@a.example",
            "/url: must not contain a user or password",
        ),
        (
            "https://user@a.example",
            "/url: must not contain a user or password",
        ),
        ("https://a.example/#x", "/url: must not have a fragment"),
        ("https:///x", "/url: "),
        (
            "https://a.example/a\r\nb",
            "/url: must not contain control characters",
        ),
        (
            "https://a.example/../x",
            "/url: must not have `.` or `..` segments",
        ),
        ("https://a.example:{port}/", "/url: `{port}` is not allowed here"),
        ("https://x:{p}@a.example/", "/url: `{p}` is not allowed here"),
        ("{base}/x", "/url: `{base}` is not allowed here"),
        ("{scheme}://a.example/x", "/url: `{scheme}` is not allowed here"),
        ("${SET}{host}/x", "/url: `{host}` is not allowed here"),
        (
            "https://a.example/?{name}=1",
            "/url: a query parameter's name must be plain text",
        ),
        ("https://a.example/${open", "/url: `${` without a closing `}`"),
        ("https://a.example/${UNSET}", "/url: `${UNSET}` is not set"),
        (
            "https://{host}.example/?k=${SET}",
            "/url: `{host}` must not choose the host, since a `${…}` value is sent to it",
        ),
        ("http://10.0.0.1/", "/url: leads to an address that is not public"),
        (
            "http://[fd00::1]:8080/",
            "/url: leads to an address that is not public",
        ),
    ] {
        check(json!({"url": url}), &[expected]);
    }
    check(
        json!({"url_template": "ftp://a.example"}),
        &["/url_template: must begin with"],
    );
    check(json!({"url": "http://10.0.0.1/", "allow_private": true}), &[]);
    check(
        json!({"url": "http://169.254.169.254/", "allow_private": true}),
        &["/url: leads to an address that is not public"],
    );
}

#[test]
fn a_host_from_an_argument_takes_no_secret_of_any_kind() {
    for more in [
        json!({"headers": {"a": "${SET}"}}),
        json!({"headers_from_env": ["SET"]}),
        json!({"query": {"a": "${SET}"}}),
        json!({"body": {"a": "${SET}"}}),
        json!({"request": {"static_headers": {"a": "${SET}"}}}),
    ] {
        let mut config = more;
        config["url"] = json!("https://{host}.example/");
        check(config, &["/url: `{host}` must not choose the host"]);
    }
    check(
        json!({"url": "https://{host}.example/", "headers": {"a": "b"}}),
        &[],
    );
}

#[test]
fn headers() {
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "Proxy-Authorization",
        "TE",
        "Upgrade",
        "Accept-Encoding",
        "Expect",
    ] {
        let place = format!("/headers/{name}: `{}` is set by the client", name.to_lowercase());
        check(
            json!({"url": "https://a.example", "headers": {name: "x"}}),
            &[&place],
        );
    }
    for (config, expected) in [
        (
            json!({"headers": {"a b": "x"}}),
            "/headers/a b: invalid header name `a b`",
        ),
        (
            json!({"headers": {"a/b~": "x"}}),
            "/headers/a~1b~0: invalid header name `a/b~`",
        ),
        (
            json!({"headers": {"a\r\nb": "x"}}),
            "invalid header name `a\\r\\nb`",
        ),
        (
            json!({"headers": {"a": "x\r\ny"}}),
            "/headers/a: contains characters that are not allowed in a header",
        ),
        (json!({"headers": {"a": "${"}}), "/headers/a: `${` without"),
        (
            json!({"headers_from_env": ["X-A=1B"]}),
            "/headers_from_env/0: invalid name of an environment variable: `1B`",
        ),
        (
            json!({"headers_from_env": ["SET", "Host=SET"]}),
            "/headers_from_env/1: `host` is set by the client",
        ),
        (
            json!({"headers_from_env": ["X=UNSET"]}),
            "/headers_from_env/0: `${UNSET}` is not set",
        ),
        (
            json!({"request": {"header_params": {"host": "{a}"}}}),
            "/request/header_params/host: `host` is set",
        ),
        (
            json!({"request": {"static_headers": {"host": "a"}}}),
            "/request/static_headers/host: `host` is set",
        ),
    ] {
        let mut config = config;
        config["url"] = json!("https://a.example");
        check(config, &[expected]);
    }
}

#[test]
fn the_rest() {
    for (config, expected) in [
        (
            json!({"method": "PSOT"}),
            "/method: unknown method `PSOT` [did you mean `POST`?]",
        ),
        (json!({"method": "CONNECT"}), "/method: unknown method `CONNECT`"),
        (json!({"method": "TRACE"}), "/method: unknown method `TRACE`"),
        (
            json!({"method": "GET", "body": {}}),
            "/method: a `GET` request has no body",
        ),
        (
            json!({"method": "GET", "request": {"body_mapping": "a"}}),
            "/request: a `GET` request has no body to map",
        ),
        (
            json!({"body": {}, "request": {"static_body": {"a": 1}}}),
            "/request: a body is already set",
        ),
        (
            json!({"body": {"a": {"b": "${x y}"}}}),
            "/body/a/b: `x y` is no usable name",
        ),
        (json!({"body": "{\"n\": {n}}"}), "/body: is not JSON: "),
        (
            json!({"query": {"a": {"b": 1}}}),
            "/query/a: must have an `argument` and a `join`, such as `{argument: ids, join: \",\"}`",
        ),
        (
            json!({"query": {"a": {"argument": "x y", "join": ","}}}),
            "/query/a: `x y` is no name of an argument",
        ),
        (
            json!({"query": {"a": {"argument": "x", "join": ";"}}}),
            "/query/a: `join` must be a comma, a space, a tab or `|`",
        ),
        (json!({"query": {"a": [null]}}), "/query/a: must be a text"),
        (
            json!({"response_path": "a.b"}),
            "/response_path: is not a JSONPath: ",
        ),
        (
            json!({"response_path": "$..*..*"}),
            "/response_path: must not have more than 1 `..`",
        ),
        (
            json!({"response": {"body_mapping": "a["}}),
            "/response/body_mapping: is not a valid JMESPath expression: ",
        ),
        (
            json!({"method": "POST", "request": {"body_mapping": "a..b"}}),
            "/request/body_mapping: is not a valid JMESPath expression: ",
        ),
        (
            json!({"response_path": "$.a", "response": {"body_mapping": "a"}}),
            "/response_path: cannot be given together",
        ),
        (
            json!({"expected_status": [200, "6xx"]}),
            "/expected_status/1: must be a status such as 200",
        ),
        (json!({"redirects": "all"}), "/redirects: unknown variant `all`"),
        (
            json!({"max_response_bytes": -1}),
            "/max_response_bytes: invalid value",
        ),
        (json!({"allow_private": "no"}), "/allow_private: invalid type"),
    ] {
        let mut config = config;
        config["url"] = json!("https://a.example");
        check(config, &[expected]);
    }
}

#[test]
fn arguments_must_be_declared() {
    for (schema, url, expected) in [
        (
            json!({"properties": {"city": {}}}),
            "https://a.example/{ctiy}",
            Some("did you mean `{city}`?"),
        ),
        (
            json!({"properties": {"city": {}}}),
            "https://a.example/{zzzzz}",
            Some("for plain braces write `{{zzzzz}}`"),
        ),
        (
            json!({"properties": {"city": {}}}),
            "https://a.example/{city}",
            None,
        ),
        (
            json!({"properties": {"city": {}}, "additionalProperties": true}),
            "https://a.example/{x}",
            None,
        ),
        (
            json!({"properties": {}, "allOf": []}),
            "https://a.example/{x}",
            None,
        ),
        (json!({"type": "object"}), "https://a.example/{x}", None),
    ] {
        let mut described = descriptor(json!({"url": url}));
        described.input_schema = RawJson::from(&schema);
        let hint = prepare_by(&executor(Values::new(&[])), described)
            .err()
            .map(|problems| problems[0].hint.clone().unwrap());
        assert_eq!(hint.as_deref(), expected, "{schema} {url}");
    }
}

#[test]
fn the_schema_names_every_setting() {
    let schema: Value = executor(Values::new(&[])).config_schema().to().unwrap();
    let properties = schema["properties"].as_object().unwrap();
    for name in [
        "method",
        "url",
        "url_template",
        "query",
        "headers",
        "headers_from_env",
        "body",
        "body_template",
        "request",
        "response",
        "response_path",
        "expected_status",
        "redact",
        "timeout_ms",
        "connect_timeout_ms",
        "read_timeout_ms",
        "max_response_bytes",
        "max_request_bytes",
        "allow_private",
        "redirects",
    ] {
        assert!(properties[name]["description"].is_string(), "{name}");
    }
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(executor(Values::new(&[])).kind(), "http");
}
