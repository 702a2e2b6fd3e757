use std::{collections::BTreeMap, path::Path};

use tool_core::Template;
use tool_settings::{Entries, Field, NodeId, Text};

use crate::{
    HttpTransportSpec, ServerTransport,
    document::{lists::items, place::Cx, suggest},
    servers::environment,
};

/// The keys that describe a transport.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) command: Field<String>,
    pub(crate) args: Field<Vec<Field<Text>>>,
    pub(crate) env: Field<Entries<Text>>,
    pub(crate) inherit_env: Field<Vec<Field<String>>>,
    pub(crate) cwd: Field<String>,
    pub(crate) env_file: Field<String>,
    pub(crate) url: Field<String>,
    pub(crate) headers: Field<Entries<Text>>,
    pub(crate) kind: Field<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Means {
    Process,
    Http(HttpTransportSpec),
}

pub(crate) fn transport(cx: Cx<'_>, at: NodeId, written: Written) -> Option<ServerTransport> {
    let stated = stated_means(cx, &written.kind).ok()?;
    if written.command.is_wrong() || written.url.is_wrong() {
        return None;
    }
    let known = match (written.command.given(), written.url.given()) {
        (Some(_), Some(url)) => {
            cx.key_error(
                url,
                "a server has either a `command` or a `url`, not both",
                "remove one of them",
            );
            return None;
        }
        (Some(_), None) => Means::Process,
        (None, Some(_)) => Means::Http(HttpTransportSpec::Either),
        (None, None) => {
            cx.key_error(
                at,
                "the server has neither a `command` to start nor a `url` to ask",
                "add `command: ..` or `url: ..`",
            );
            return None;
        }
    };
    let stated = stated.unwrap_or(known);
    if matches!(stated, Means::Process) != matches!(known, Means::Process) {
        let place = written.kind.place().unwrap_or(at);
        let (given, word) = match known {
            Means::Process => ("`command`", "stdio"),
            Means::Http(_) => ("`url`", "http"),
        };
        cx.error(
            place,
            format!("the server has a {given}, which this does not go with"),
            format!("write `{word}`, or remove the line"),
        );
        return None;
    }
    match stated {
        Means::Process => process(cx, written),
        Means::Http(transport) => http(cx, written, transport),
    }
}

/// Something was wrong, and was reported.
struct Reported;

/// Returns the meaning of `type:`, if it is given.
fn stated_means(cx: Cx<'_>, kind: &Field<String>) -> Result<Option<Means>, Reported> {
    let (Some(at), Some(text)) = (kind.given(), kind.as_ref()) else {
        return if kind.is_wrong() { Err(Reported) } else { Ok(None) };
    };
    let (message, hint) = match text.as_str() {
        "stdio" | "local" => return Ok(Some(Means::Process)),
        "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "streamableHTTP" | "remote" => {
            return Ok(Some(Means::Http(HttpTransportSpec::Streamable)));
        }
        "sse" => return Ok(Some(Means::Http(HttpTransportSpec::Sse))),
        "websocket" | "webSocket" | "WebSocket" | "ws" | "wss" => {
            return Ok(Some(Means::Http(HttpTransportSpec::WebSocket)));
        }
        other => (
            format!("unknown transport `{}`", suggest::shown(other)),
            suggest::value(other, &["stdio", "http", "sse", "websocket"]),
        ),
    };
    cx.error(at, message, hint);
    Err(Reported)
}

/// Reads the keys of a process.
pub(crate) fn process(cx: Cx<'_>, written: Written) -> Option<ServerTransport> {
    if let Some(headers) = written.headers.given() {
        cx.key_error(
            headers,
            "`headers` belong to a server with a `url`",
            "use `env`, or remove them",
        );
    }
    for field in [&written.command, &written.cwd, &written.env_file] {
        if let (Some(at), Some(text)) = (field.place(), field.as_ref()) {
            environment::no_nul(cx, at, text);
        }
    }
    let command_at = written.command.given();
    let command = template(cx, written.command);
    if let (Some(at), Some(command)) = (command_at, &command) {
        environment::warn_of_visible(cx, at, command, "a command");
    }
    environment::check(cx, &written.env);
    let inherit_env = environment::inherited(cx, written.inherit_env);
    let args: Vec<Option<Template>> = items(written.args)
        .map(|arg| {
            let at = arg.given();
            if let (Some(at), Some(Text(text))) = (at, arg.as_ref()) {
                environment::no_nul(cx, at, text);
            }
            let template = template(cx, arg.map(|Text(text)| text))?;
            if let Some(at) = at {
                environment::warn_of_visible(cx, at, &template, "an argument");
            }
            Some(template)
        })
        .collect();
    let env = templates(cx, written.env);
    let cwd = path(cx, written.cwd).ok();
    let env_file = path(cx, written.env_file).ok();
    Some(ServerTransport::Stdio {
        command: command?,
        args: args.into_iter().collect::<Option<_>>()?,
        env: env?,
        inherit_env,
        cwd: cwd?,
        env_file: env_file?,
    })
}

/// Reads a path that begins beside its file.
fn path(cx: Cx<'_>, field: Field<String>) -> Result<Option<Template>, Reported> {
    let Some((at, text)) = field.located() else {
        return Ok(None);
    };
    let path = below(&cx.document.source.directory, &text);
    parse(cx, at, &path).map(Some).ok_or(Reported)
}

fn http(cx: Cx<'_>, written: Written, transport: HttpTransportSpec) -> Option<ServerTransport> {
    for (name, place) in [
        ("args", written.args.given()),
        ("env", written.env.given()),
        ("inherit_env", written.inherit_env.given()),
        ("cwd", written.cwd.given()),
        ("env_file", written.env_file.given()),
    ] {
        if let Some(place) = place {
            let message = format!("`{name}` belongs to a server with a `command`");
            cx.key_error(place, message, "remove it");
        }
    }
    let headers = templates(cx, written.headers);
    let (at, url) = written.url.located()?;
    let url = parse(cx, at, &url)?;
    let start = url.parts().next();
    let mut transport = transport;
    if let Some(Ok(start)) = start {
        let begins = |schemes: [&str; 2]| schemes.iter().any(|scheme| begins_with(start, scheme));
        let (is_http, is_websocket) = (begins(["http://", "https://"]), begins(["ws://", "wss://"]));
        if is_websocket && transport == HttpTransportSpec::Either {
            transport = HttpTransportSpec::WebSocket;
        }
        let (message, hint) = match transport {
            HttpTransportSpec::WebSocket if is_websocket => ("", ""),
            HttpTransportSpec::WebSocket => (
                "the URL of a WebSocket begins with `ws://` or `wss://`",
                "write the whole URL, or another `type`",
            ),
            _ if is_http => ("", ""),
            _ => (
                "a server's URL begins with `http://` or `https://`",
                "write the whole URL",
            ),
        };
        if !message.is_empty() {
            cx.error(at, message, hint);
            return None;
        }
    }
    Some(ServerTransport::Http {
        url,
        headers: headers?,
        transport,
    })
}

/// Returns `true` if a URL has this scheme. Case does not matter.
fn begins_with(url: &str, scheme: &str) -> bool {
    let start = url.as_bytes().get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// Makes a relative path begin in the directory of its file. A path that begins with a reference is left as it is.
pub(crate) fn below(directory: &Path, path: &str) -> String {
    if Path::new(path).is_absolute() || path.starts_with("${") || directory.as_os_str().is_empty() {
        return path.to_owned();
    }
    let directory = directory.to_string_lossy().replace('$', "$$");
    format!("{directory}/{path}")
}

fn template(cx: Cx<'_>, field: Field<String>) -> Option<Template> {
    let (at, text) = field.located()?;
    parse(cx, at, &text)
}

/// Reads `${…}` references.
pub(crate) fn parse(cx: Cx<'_>, at: NodeId, text: &str) -> Option<Template> {
    let problem = match Template::parse(text) {
        Ok(template) => return Some(template),
        Err(problem) => problem,
    };
    let hint = if problem.message.contains("provider `input`") {
        "only files of VS Code have inputs; use `${env:NAME}` or `${secret:NAME}`"
    } else {
        ""
    };
    cx.error(at, problem.to_string(), hint);
    None
}

/// Reads a map of templates. Returns `None` if one of them is wrong.
pub(crate) fn templates(cx: Cx<'_>, field: Field<Entries<Text>>) -> Option<BTreeMap<String, Template>> {
    if field.is_wrong() {
        return None;
    }
    let entries: Vec<Option<(String, Template)>> = field
        .get()
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| {
            if let (true, Some(at)) = (value.is_absent(), value.place()) {
                cx.key_error(
                    at,
                    format!("`{name}` has no value"),
                    "write `\"\"` for an empty one",
                );
            }
            let template = template(cx, value.map(|Text(text)| text))?;
            Some((name, template))
        })
        .collect();
    entries.into_iter().collect()
}
