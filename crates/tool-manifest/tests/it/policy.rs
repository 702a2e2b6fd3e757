use std::time::Duration;

use tool_core::{DefinitionPolicy, ListLimits, Pattern, PinMode};
use tool_policy::ApprovalRule;
use toolplane::manifest::{
    AuthenticationSpec, Configuration, LoadOptions, PrincipalSpec, Syntax, ToolChoiceSpec, load,
    may_need_approval,
};

fn configuration(texts: &[&str]) -> Configuration {
    let options = texts
        .iter()
        .enumerate()
        .fold(LoadOptions::new(), |options, (n, text)| {
            options.text(format!("{n}.yaml"), Syntax::Yaml, *text)
        });
    load(&options)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
        .configuration
}

fn problem(text: &str) -> String {
    match load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)) {
        Ok(loaded) => panic!("usable: {:?}", loaded.configuration),
        Err(problems) => problems.render(false),
    }
}

#[test]
fn what_needs_approval_is_said_by_default_for_servers_for_tools_and_in_the_policy() {
    let loaded = configuration(&["
defaults: {approval: required}
servers:
  files: {command: files, approval: never}
tools:
  pay: {description: Pays, approval: required, executor: {kind: mock, result: 1}}
  look: {description: Looks, executor: {kind: mock, result: 1}}
policy:
  approval: {required: [pay*], separate_approver: true, expires_after: 5m}
"]);
    assert!(may_need_approval(&loaded));
    assert_eq!(
        loaded.defaults.overrides.get::<ApprovalRule>().copied(),
        Some(ApprovalRule::Required)
    );
    assert_eq!(
        loaded.servers[0].overrides.get::<ApprovalRule>().copied(),
        Some(ApprovalRule::Never)
    );
    let tools: Vec<_> = loaded
        .tools
        .iter()
        .map(|tool| tool.overrides.get::<ApprovalRule>().copied())
        .collect();
    assert_eq!(tools, [Some(ApprovalRule::Required), None]);
    let approval = &loaded.policy.approval;
    assert_eq!(approval.required, [Pattern::new("pay*")]);
    assert_eq!(
        (approval.separate_approver, approval.expires_after),
        (true, Some(Duration::from_secs(300)))
    );
    assert!(!may_need_approval(&configuration(&[
        "servers: {files: {command: files, approval: never}}"
    ])));
}

#[test]
fn turns_and_conversations_have_limits() {
    let loaded = configuration(&["
policy:
  tool_choice: required
  limits: {calls_per_turn: 10, calls_per_conversation: 100, identical_calls: 3, cost_per_turn: 0.5, cost_per_conversation: 2}
"]);
    let limits = loaded.policy.limits;
    assert_eq!(loaded.policy.tool_choice, ToolChoiceSpec::Required);
    assert_eq!(
        (
            limits.calls_per_turn,
            limits.calls_per_conversation,
            limits.identical_calls
        ),
        (Some(10), Some(100), Some(3))
    );
    assert_eq!(
        (limits.cost_per_turn, limits.cost_per_conversation),
        (Some(0.5), Some(2.0))
    );
}

#[test]
fn of_what_several_files_say_the_strictest_counts() {
    let policies = [
        "policy: {tool_choice: required, limits: {calls_per_turn: 10, cost_per_turn: 3}, approval: {required: [a], expires_after: 5m}}",
        "apiVersion: toolplane.dev/v1\nkind: Policy\nmetadata: {name: strict}\nspec: {tool_choice: none, limits: {calls_per_turn: 20, cost_per_turn: 2}, approval: {required: [b], separate_approver: true, expires_after: 9m}}",
        "policy: {limits: {identical_calls: 2}}",
    ];
    let [one, two, three] = policies;
    for order in [[one, two, three], [three, two, one], [two, one, three]] {
        let policy = configuration(&order).policy;
        assert_eq!(policy.tool_choice, ToolChoiceSpec::None);
        let limits = policy.limits;
        assert_eq!(
            (
                limits.calls_per_turn,
                limits.cost_per_turn,
                limits.identical_calls
            ),
            (Some(10), Some(2.0), Some(2))
        );
        assert_eq!(policy.approval.required.len(), 2);
        assert!(policy.approval.separate_approver);
        assert_eq!(policy.approval.expires_after, Some(Duration::from_secs(300)));
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, line, expected) in [
        ("policy:\n  tool_choice: sometimes", 2, "sometimes"),
        (
            "policy:\n  limits: {calls_per_turn: 0}",
            2,
            "no call could ever be made",
        ),
        ("policy:\n  limits: {cost_per_turn: -1}", 2, "no amount of money"),
        ("policy:\n  limits: {calls: 1}", 2, "unknown"),
        (
            "policy:\n  approval: {expires_after: 0s}",
            2,
            "nobody could decide in no time",
        ),
        (
            "policy:\n  approval: {separate_aprover: true}",
            2,
            "did you mean `separate_approver`?",
        ),
        ("defaults:\n  approval: always", 2, "always"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{problem}");
        assert!(problem.contains(&format!("toolplane.yaml:{line}")), "{problem}");
    }
}

#[test]
fn definitions_are_judged_by_server_and_by_policy() {
    let loaded = configuration(&[
        "
policy: {definitions: clean}
servers: {a: {command: a}, b: {command: b, definitions: withhold}}
",
        "policy: {definitions: pass}",
    ]);
    assert_eq!(
        loaded.policy.definitions,
        DefinitionPolicy::Clean,
        "the strictest of all files"
    );
    let of_servers: Vec<_> = loaded.servers.iter().map(|server| server.definitions).collect();
    assert_eq!(of_servers, [None, Some(DefinitionPolicy::Withhold)]);
    assert_eq!(configuration(&["{}"]).policy.definitions, DefinitionPolicy::Pass);
    assert!(problem("policy: {definitions: hide}").contains("withhold"));
}

#[test]
fn pins_are_set_by_server_and_by_policy() {
    let loaded = configuration(&[
        "
policy: {pin: off}
servers: {a: {command: a}, b: {command: b, pin: locked}}
",
        "policy: {pin: first_use}",
    ]);
    assert_eq!(
        loaded.policy.pin,
        Some(PinMode::FirstUse),
        "the strictest of all files"
    );
    let of_servers: Vec<_> = loaded.servers.iter().map(|server| server.pin).collect();
    assert_eq!(of_servers, [None, Some(PinMode::Locked)]);
    assert_eq!(
        configuration(&["policy: {pin: off}"]).policy.pin,
        Some(PinMode::Off)
    );
    assert_eq!(configuration(&["{}"]).policy.pin, None);
    assert!(problem("policy: {pin: lock}").contains("locked"));
}

#[test]
fn lists_have_limits() {
    let loaded = configuration(&["
defaults: {list_limits: {tools: 10, bytes: 1MiB}}
servers: {a: {command: a, list_limits: {tools: 20, definition_bytes: 4KiB}}}
"]);
    let defaults = {
        let mut new = ListLimits::default();
        new.tools = 10;
        new.bytes = 1 << 20;
        new
    };
    assert_eq!(loaded.defaults.list_limits, defaults);
    let of_server = {
        let mut new = defaults;
        new.tools = 20;
        new.definition_bytes = 4096;
        new
    };
    assert_eq!(loaded.servers[0].list_limits.or(defaults), of_server);
    assert!(problem("defaults: {list_limits: {tools: 0}}").contains("at least 1"));
}

#[test]
fn roles_and_principals_are_read_from_all_files() {
    let loaded = configuration(&[
        "
gateway: {auth: tokens}
policy:
  roles: {writer: [files.write, files.read], none: []}
  principals: {ada: {tenant: acme, roles: [writer, reader], permissions: [mail]}}
",
        "
apiVersion: toolplane.dev/v1
kind: Policy
metadata: {name: more}
spec:
  roles: {reader: [files.read]}
  principals: {bob: {}, carl: null}
",
    ]);
    assert_eq!(loaded.gateway.auth, AuthenticationSpec::Tokens);
    let policy = &loaded.policy;
    assert_eq!(policy.roles["writer"], ["files.write", "files.read"]);
    assert_eq!(policy.roles["reader"], ["files.read"]);
    assert!(policy.roles["none"].is_empty());
    let ada = &policy.principals["ada"];
    assert_eq!(ada.tenant.as_deref(), Some("acme"));
    assert_eq!(
        (&ada.roles[..], &ada.permissions[..]),
        (
            &["writer".to_owned(), "reader".to_owned()][..],
            &["mail".to_owned()][..]
        )
    );
    for name in ["bob", "carl"] {
        assert_eq!(policy.principals[name], PrincipalSpec::default());
    }
    assert_eq!(
        configuration(&["gateway: {auth: none}"]).gateway.auth,
        AuthenticationSpec::None
    );
    assert_eq!(
        configuration(&["gateway: {}"]).gateway.auth,
        AuthenticationSpec::None
    );
}

#[test]
fn mistakes_in_roles_and_principals_are_errors_with_their_place() {
    for (text, message, hint) in [
        (
            "policy: {roles: {writer: []}, principals: {ada: {roles: [writr]}}}",
            "the role `writr` is not defined",
            "did you mean `writer`?",
        ),
        (
            "policy: {principals: {ada: {roles: [x]}}}",
            "the role `x` is not defined",
            "define it under `policy.roles`",
        ),
        (
            "policy: {principals: {a b: {}}}",
            "the name of the principal `a b` contains white space",
            "",
        ),
        (
            "policy: {roles: {'': []}}",
            "the name of the role `` is empty",
            "",
        ),
        (
            "policy: {principals: {ada: {tenant: ''}}}",
            "the tenant of `ada` is empty",
            "",
        ),
        (
            "policy: {principals: {ada: {tenants: x}}}",
            "unknown key `tenants`",
            "did you mean `tenant`?",
        ),
        ("policy: {principals: {ada: [writer]}}", "toolplane.yaml:1:28", ""),
        ("gateway: {auth: token}", "toolplane.yaml:1:17", "tokens"),
        ("gateway: {auth: true}", "toolplane.yaml:1:17", ""),
    ] {
        let problem = problem(text);
        assert!(
            problem.contains(message) && problem.contains(hint),
            "{text}: {problem}"
        );
        assert!(problem.contains("toolplane.yaml:1:"), "{text}: {problem}");
    }
}

/// Lists of two files are not merged, since a role would silently get more permissions.
#[test]
fn a_role_or_principal_of_two_files_is_an_error() {
    for (one, kind) in [
        ("roles: {x: [a]}", "role"),
        ("principals: {x: {permissions: [a]}}", "principal"),
    ] {
        let text = format!("policy: {{{one}}}");
        let options = LoadOptions::new()
            .text("one.yaml", Syntax::Yaml, text.clone())
            .text("two.yaml", Syntax::Yaml, text);
        let problems = load(&options).expect_err("it is defined twice").render(false);
        assert!(
            problems.contains(&format!("the {kind} `x` is defined twice")),
            "{problems}"
        );
        assert!(
            problems.contains("one.yaml") && problems.contains("two.yaml"),
            "{problems}"
        );
    }
}
