use serde_json::{Value, json};
use tool_core::ErrorKind;

use crate::{prepare, render};

#[tokio::test]
async fn placeholders_are_filled_in() {
    let weather =
        json!({"city": "Oslo", "n": 3, "deep": {"a": {"b": [1, {"c": "x"}]}}, "flag": true, "none": null});
    let cases = [
        // Outside a string, a placeholder is a value.
        (r#"{"city": {{ city }}}"#, r#"{"city": "Oslo"}"#),
        (r#"{"deep": {{ deep.a }}}"#, r#"{"deep": {"b":[1,{"c":"x"}]}}"#),
        ("{{ n }}", "3"),
        ("{{ none }}", "null"),
        // Inside a string, it is a part of the string.
        (
            r#"{"text": "Weather for {{ city }}: {{ n }}, {{ deep.a.b }}"}"#,
            r#"{"text": "Weather for Oslo: 3, [1,{\"c\":\"x\"}]"}"#,
        ),
        (r#""\"{{ city }}\"""#, r#""\"Oslo\"""#),
        // Go's syntax.
        (
            r#"{"city": "{{.city}}", "n": {{.n}}}"#,
            r#"{"city": "Oslo", "n": 3}"#,
        ),
        (
            r#"{"c": {{ .deep.a.b }}, "all": {{ len . }}}"#,
            r#"{"c": [1,{"c":"x"}], "all": 5}"#,
        ),
        (r#"{{ index .deep "a" "b" 1 "c" }}"#, r#""x""#),
        (r#""{{ $.city }}""#, r#""Oslo""#),
        ("[{{- .n -}}]", "[3]"),
        ("{{/* a remark */}}1", "1"),
        // Expressions.
        ("{{ n + 1 }}", "4"),
        ("{{ n|times(2) }}", "6"),
        ("{{ n|times(1.5) }}", "4.5"),
        ("{{ city|upper }}", r#""OSLO""#),
        (r#"{{ missing|default("none") }}"#, r#""none""#),
        (r#"{{ ["a", "b"]|join("-") }}"#, r#""a-b""#),
        (r#"{{ city if flag else "?" }}"#, r#""Oslo""#),
        ("{{ city|tojson }}", r#""Oslo""#),
        ("{{ not flag }}", "false"),
        ("{# a remark with \" in it #}1", "1"),
        (
            "[{% for i in range(3) %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}]",
            "[0,1,2]",
        ),
    ];
    for (template, expected) in cases {
        assert_eq!(
            render(template, weather.clone()).await.unwrap(),
            expected,
            "{template}"
        );
    }
}

#[tokio::test]
async fn branches_are_chosen() {
    let go = r#"{"status": "{{ if eq .order "A1" }}shipped{{ else if eq .order "B2" "C3" }}lost{{ else }}unknown{{ end }}"}"#;
    let jinja = r#"{"status": "{% if order == "A1" %}shipped{% elif order in ["B2", "C3"] %}lost{% else %}unknown{% endif %}"}"#;
    for (order, status) in [
        ("A1", "shipped"),
        ("B2", "lost"),
        ("C3", "lost"),
        ("X", "unknown"),
    ] {
        for template in [go, jinja] {
            let text = render(template, json!({"order": order})).await.unwrap();
            assert_eq!(text, format!(r#"{{"status": "{status}"}}"#), "{template}");
        }
    }
}

#[tokio::test]
async fn whole_values_may_stand_in_branches() {
    let template = r#"{{ if and (gt .n 1) (not .off) }}{"a": "x"}{{ else }}"none of {{ .n }}"{{ end }}"#;
    assert_eq!(
        render(template, json!({"n": 2, "off": false})).await.unwrap(),
        r#"{"a": "x"}"#
    );
    assert_eq!(render(template, json!({"n": 1})).await.unwrap(), r#""none of 1""#);
}

#[tokio::test]
async fn ranges_are_walked() {
    let template = r#"[0{{ range .items }},{"id": "{{ .id }}", "of": {{ $.name }}}{{ end }}]"#;
    let arguments = json!({"name": "n", "items": [{"id": 1}, {"id": "b"}]});
    assert_eq!(
        render(template, arguments).await.unwrap(),
        r#"[0,{"id": "1", "of": "n"},{"id": "b", "of": "n"}]"#
    );
}

#[tokio::test]
async fn a_condition_on_a_missing_argument_is_false() {
    let template = r#"{{ if .verbose }}1{{ else if eq .mode.kind "x" }}2{{ else }}3{{ end }}"#;
    assert_eq!(render(template, json!({})).await.unwrap(), "3");
}

#[tokio::test]
async fn whatever_an_argument_holds_stays_inside() {
    let hostile = [
        r#"", "admin": true, "x": ""#,
        "line\nbreak\ttab\u{0}",
        "{{ 7 + 7 }}",
        "{% for i in range(9) %}x{% endfor %}",
        "\\",
        "\\\"",
        "\u{2028}é🦀",
        "<script>",
        "_arguments",
    ];
    for text in hostile {
        let template =
            r#"{"value": {{ text }}, "inside": "a {{ text }} b", "go": "{{.text}}", "key {{ text }}": 1}"#;
        let rendered = render(template, json!({"text": text})).await.unwrap();
        let value: Value = serde_json::from_str(&rendered).unwrap();
        assert_eq!(
            value,
            json!({"value": text, "inside": format!("a {text} b"), "go": text, (format!("key {text}")): 1})
        );
    }
}

#[tokio::test]
async fn an_argument_cannot_pass_for_the_templates_own_names() {
    let arguments = json!({"_arguments": {"x": "forged"}, "x": "real", "_text": "forged", "loop": 1});
    assert_eq!(
        render(r#"["{{.x}}", "{{ x }}"]"#, arguments).await.unwrap(),
        r#"["real", "real"]"#
    );
}

#[tokio::test]
async fn a_missing_argument_is_named() {
    let cases = [
        ("{{ city }}", "`city`"),
        (r#""{{ city }}""#, "`city`"),
        ("{{ .city }}", "`city`"),
        (r#""{{ .place.city }}""#, "`place.city`"),
        ("{{ city.name }}", "`city`"),
        ("{{ city|upper }}", "`city`"),
        ("{% if city %}1{% endif %}", "`city`"),
    ];
    for (template, name) in cases {
        let error = render(template, json!({"place": {}})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{template}: {error}");
        assert!(error.message().contains(name), "{template}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_an_error() {
    for template in [
        "{{ city }} {{ city }}",
        "plain",
        r#"{"a": }"#,
        "",
        r#"{"a": "{{ city }}"#,
    ] {
        let error = render(template, json!({"city": "Oslo"})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{template}");
    }
}

#[tokio::test]
async fn a_template_cannot_run_long_or_grow_large() {
    let cases = [
        (
            "[{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}1,{% endfor %}{% endfor %}{% endfor %}1]",
            ErrorKind::Protocol,
        ),
        (
            r#"[{% for a in range(1000) %}"{{ text }}",{% endfor %}1]"#,
            ErrorKind::ResultTooLarge,
        ),
        (r#"{{ many|join(text) }}"#, ErrorKind::Protocol),
        ("{{ range(1000000000) }}", ErrorKind::Protocol),
    ];
    let arguments = json!({"text": "x".repeat(10_000), "many": vec![1; 10_000]});
    for (template, kind) in cases {
        let error = render(template, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{template}: {error}");
    }
}

#[test]
fn what_a_template_may_not_do_is_refused_when_it_is_loaded() {
    let cases = [
        (
            "{% include \"/etc/passwd\" %}",
            "the tag `include` is not available",
        ),
        ("{% import \"x\" as y %}", "the tag `import` is not available"),
        ("{% set x = 1 %}", "the tag `set` is not available"),
        (
            "{% macro f() %}{% endmacro %}",
            "the tag `macro` is not available",
        ),
        ("{% raw %}{{ x }}{% endraw %}", "the tag `raw` is not available"),
        ("{{ \"x\" * 99 }}", "`*` is not available"),
        ("{{ template \"x\" . }}", "Go's `template` is not available"),
        ("{{ printf \"%s\" .x }}", "Go's `printf` is not available"),
        ("{{ .x | upper }}", "`|` is not available in Go's spelling"),
        ("{{ .x.y-z }}", "is not a field"),
        ("{{ $v }}", "variables are not available"),
        ("{{ if .x }}1", "`if` is never closed"),
        ("{{ end }}", "`end` without `if` or `range`"),
        ("{% if x %}1{{ end }}", "`end` without `if` or `range`"),
        ("{{ if .x }}1{% endif %}", "`endif` closes no open block"),
        ("{{ else }}", "`else` without `if`"),
        ("{{ eq .x }}", "wrong number of operands"),
        ("{{ x", "`{{` without `}}`"),
        ("{{ x + }}", "unexpected"),
        ("{{ x|nope }}", ""),
    ];
    for (template, part) in cases {
        match prepare(json!({"template": template})) {
            Err(problems) => {
                assert_eq!(problems[0].pointer, "/template", "{template}");
                assert!(
                    problems[0].message.contains(part),
                    "{template}: {}",
                    problems[0].message
                );
            }
            // The engine looks up filters at run time.
            Ok(_) => assert!(part.is_empty(), "{template} is not refused"),
        }
    }
}

#[tokio::test]
async fn the_environment_is_out_of_reach() {
    for template in [
        "{{ env }}",
        "{{ environ(\"HOME\") }}",
        "{{ self }}",
        "{{ x|nope }}",
        "{{ debug() }}",
    ] {
        assert!(render(template, json!({"x": 1})).await.is_err(), "{template}");
    }
}
