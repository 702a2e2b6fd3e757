//! Other spellings of keys: those of other programs' files, and those of other places of our own.

use tool_settings::{Sections, suggest::normal};

/// Meaning of an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Another name of this key, whose value has the same form.
    Key(&'static str),
    /// A key that is written in another way, which the text explains.
    Advice(&'static str),
}

use Spelling::{Advice, Key};

/// A key that identifies the map, and the other spellings of the map's keys, as [`normal`] makes them.
type Table = (&'static str, &'static [(&'static [&'static str], Spelling)]);

const FILE: Table = (
    "servers",
    &[
        (
            &[
                "mcp",
                "mcpserver",
                "contextservers",
                "extensions",
                "server",
                "upstreams",
            ],
            Key("servers"),
        ),
        (&["tool", "functions"], Key("tools")),
        (&["policies", "permissions", "governance"], Key("policy")),
        (&["includes", "imports", "files"], Key("include")),
        (&["default", "settings"], Key("defaults")),
        (&["secret", "credentials"], Key("secrets")),
        (
            &["listen", "host", "port", "allowedorigins", "instructions"],
            Advice("it belongs to `gateway`"),
        ),
        (
            &["blocklist", "approval", "requiredpermissions"],
            Advice("it belongs to `policy`"),
        ),
        (
            &["retry", "breaker", "cache", "calltimeout", "attempttimeout"],
            Advice("it belongs to `defaults`"),
        ),
        (
            &["inputs"],
            Advice("nobody is asked for values: write `${NAME}` or `${secret:NAME}` where they are used"),
        ),
    ],
);

const SERVER: Table = (
    "command",
    &[
        (&["cmd", "program", "executable"], Key("command")),
        (&["argv", "cmdargs"], Key("args")),
        (&["environment", "envs", "envvars"], Key("env")),
        (
            &["workingdirectory", "workingdir", "workdir", "directory"],
            Key("cwd"),
        ),
        (&["uri", "endpoint", "baseurl", "address"], Key("url")),
        (&["httpheaders", "requestheaders"], Key("headers")),
        (&["transporttype", "protocol"], Key("type")),
        (
            &["tools", "enabledtools", "allowedtools", "toolsallow"],
            Key("include"),
        ),
        (&["excludedtools", "blockedtools", "toolsdeny"], Key("exclude")),
        (
            &["enabled", "isactive", "active"],
            Advice("write `disabled: true` or `disabled: false`"),
        ),
        (
            &["tooltimeoutsec", "requesttimeout", "readtimeout"],
            Advice("write `timeout_ms`, in milliseconds"),
        ),
        (
            &[
                "startuptimeoutsec",
                "startuptimeoutms",
                "inittimeout",
                "initializationtimeout",
            ],
            Advice("write `start_timeout_ms`, in milliseconds"),
        ),
        (
            &["envfile"],
            Advice("write the variables in `env`, such as `env: {NAME: \"${NAME}\"}`"),
        ),
        (
            &[
                "requestinit",
                "auth",
                "oauth",
                "bearertoken",
                "bearertokenenvvar",
                "apikey",
            ],
            Advice("write `headers: {Authorization: \"Bearer ${NAME}\"}`"),
        ),
        (
            &["alwaysallow", "autoapprove", "autoapproved", "trust"],
            Advice("who may call what is decided by `policy`"),
        ),
        (&["name"], Advice("the entry's key is its name")),
    ],
);

const TOOL: Table = (
    "executor",
    &[
        (
            &["mockresult", "result", "mock", "response"],
            Advice("write `executor: {kind: mock, result: ..}`"),
        ),
        (
            &["mocktemplate", "template"],
            Advice("write `executor: {kind: mock, template: ..}`"),
        ),
        (
            &["mockparts"],
            Advice(
                "`mock_parts` is read in manifests of PromptKit; write `executor: {kind: mock, result: ..}`",
            ),
        ),
        (
            &[
                "url",
                "uri",
                "endpoint",
                "http",
                "httpconfig",
                "method",
                "headers",
                "request",
                "query",
            ],
            Advice("write `executor: {kind: http, url: .., method: ..}`"),
        ),
        (
            &["mode", "kind", "type", "handler"],
            Advice("write `executor: {kind: mock, ..}` or `executor: {kind: http, ..}`"),
        ),
        (
            &["command", "args", "exec", "server", "mcp"],
            Advice("programs that offer tools are `servers`"),
        ),
        (&["schema", "argsschema", "inputs"], Key("input_schema")),
        (&["resultschema", "outputs", "returns"], Key("output_schema")),
        (&["desc", "summary"], Key("description")),
        (&["label", "displayname"], Key("title")),
        (
            &["timeoutseconds", "timeoutsec"],
            Advice("write `timeout_ms`, in milliseconds"),
        ),
        (&["permissions", "scopes"], Key("required_permissions")),
        (&["readonlyhint"], Key("read_only")),
        (&["idempotenthint"], Key("idempotent")),
        (
            &["annotations"],
            Advice("write `read_only: true` or `idempotent: true`: clients see them as annotations"),
        ),
        (&["cost"], Key("cost_per_call")),
        (&["name"], Advice("the entry's key is its name")),
    ],
);

/// Finds the meaning of an unknown key in a map with these keys.
pub(crate) fn find(sections: &Sections, written: &str, known: &[&str]) -> Option<Spelling> {
    let plain = normal(written);
    let of_section = || {
        let is_tool = known.contains(&TOOL.0);
        sections.suggested(&plain).filter(|_| is_tool).map(Key)
    };
    let spelling = [FILE, SERVER, TOOL]
        .into_iter()
        .filter(|(mark, _)| known.contains(mark))
        .flat_map(|(_, table)| table)
        .find(|(names, _)| names.contains(&plain.as_str()))
        .map(|(_, spelling)| *spelling)
        .or_else(of_section)?;
    match spelling {
        Key(key) if !known.contains(&key) => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_written_as_keys_are_compared() {
        for (_, table) in [FILE, SERVER, TOOL] {
            let names: Vec<&str> = table
                .iter()
                .flat_map(|(names, _)| names.iter().copied())
                .collect();
            for (index, name) in names.iter().enumerate() {
                assert_eq!(normal(name), *name);
                assert!(!names[..index].contains(name), "`{name}` is there twice");
            }
        }
    }

    #[test]
    fn spellings_of_all_cases_are_found() {
        let none = Sections::default();
        let known = ["description", "executor", "input_schema", "required_permissions"];
        for written in ["mock_result", "mockResult", "mock-result", "MockResult"] {
            assert!(
                matches!(find(&none, written, &known), Some(Advice(text)) if text.contains("result: .."))
            );
        }
        assert_eq!(find(&none, "argsSchema", &known), Some(Key("input_schema")));
        assert_eq!(
            find(&none, "cost", &known),
            None,
            "`cost_per_call` is not known there"
        );
        assert_eq!(find(&none, "mock_result", &["command"]), None);
    }
}
