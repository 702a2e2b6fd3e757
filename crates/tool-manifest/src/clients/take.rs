use std::collections::BTreeSet;

use tool_settings::NodeId;

use crate::{
    Diagnostic, ServerSpec, ServerTransport, Severity,
    clients::{
        server::{ClientServer, Remark},
        translate::Translation,
    },
    diagnostics::report::Report,
    dialects::file,
    document::{node::Kind, place::Cx},
    loading::draft::{Draft, ServerDraft},
    servers::server::{self, ServerBody},
};

/// Takes the servers of a client's file. One that cannot be used is refused alone, and every problem is a warning.
pub(crate) fn take(cx: Cx<'_>, translation: Translation, draft: &mut Draft) {
    for remark in &translation.remarks {
        report(cx, remark);
    }
    let (mut names, mut has_sandbox) = (BTreeSet::new(), false);
    for client_server in translation.servers {
        let name = name(cx, &client_server, &mut names);
        let spec = one(cx, &name, &client_server);
        let asks = cx.document.get(client_server.settings, "sandboxEnabled");
        has_sandbox |= asks.is_some_and(|at| matches!(cx.document.kind(at), Kind::Bool(true)));
        draft.put_server(
            cx.report,
            ServerDraft {
                spec,
                place: cx.place(client_server.settings),
                settings: Some(client_server.settings),
                inline: false,
                is_of_client: true,
            },
        );
    }
    if let Some(at) = translation.sandbox.filter(|_| !has_sandbox) {
        file::warn_of_idle_sandbox(cx, at);
    }
}

/// Reads a server, or refuses it with the reason.
fn one(cx: Cx<'_>, name: &str, client_server: &ClientServer) -> ServerSpec {
    let own = Report::default();
    let server_cx = Cx {
        report: &own,
        lenient: client_server.is_lenient,
        ..cx
    };
    for remark in &client_server.remarks {
        report(server_cx, remark);
    }
    let at = client_server.settings;
    let mut refusal = client_server.refusal.as_ref().map(|refusal| {
        report(
            server_cx,
            &Remark::new(
                refusal.at,
                cannot_be_used(name, &refusal.message),
                refusal.hint.clone(),
            ),
        );
        refusal.message.clone()
    });
    let mut spec = None;
    if refusal.is_none() {
        let body = server_cx.read::<ServerBody>(at);
        if let Some(body) = &body {
            file::asks_for_sandbox(server_cx, body);
        }
        spec = body.and_then(|body| server::server(server_cx, name, at, body));
    }
    for mut problem in own.into_problems() {
        if problem.severity == Severity::Error {
            refusal.get_or_insert_with(|| reason_of(&problem));
            problem.severity = Severity::Warning;
            problem.message = cannot_be_used(name, &problem.message);
        }
        cx.report.push(problem);
    }
    let usable = match (&refusal, spec) {
        (None, spec) => spec,
        (Some(_), _) => None,
    };
    let reason = || refusal.unwrap_or_else(|| "its settings cannot be used".to_owned());
    usable.unwrap_or_else(|| refused(cx, name, at, reason()))
}

/// Returns an error with the field that it is about.
fn reason_of(problem: &Diagnostic) -> String {
    let field = problem.location.as_ref().map(|place| place.field.as_str());
    match field.filter(|field| !field.is_empty()) {
        Some(field) => format!("`{field}`: {}", problem.message),
        None => problem.message.clone(),
    }
}

/// Returns a server that is never started.
fn refused(cx: Cx<'_>, name: &str, at: NodeId, reason: String) -> ServerSpec {
    let mut spec = ServerSpec::new(name, ServerTransport::Refused { reason });
    spec.origin = cx.place(at).origin();
    let disabled = cx.document.get(at, "disabled");
    spec.disabled = disabled.is_some_and(|at| matches!(cx.document.kind(at), Kind::Bool(true)));
    spec
}

fn cannot_be_used(name: &str, reason: &str) -> String {
    format!("the server `{name}` cannot be used: {reason}")
}

/// Returns the name of a server, without characters that names of servers cannot have.
fn name(cx: Cx<'_>, client_server: &ClientServer, names: &mut BTreeSet<String>) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-. ".contains(c);
    let written = &client_server.name;
    let kept: String = written
        .chars()
        .map(|c| if is_kept(c) { c } else { '_' })
        .take(60)
        .collect();
    let kept = if written.is_empty() {
        "server".to_owned()
    } else {
        kept
    };
    let mut name = if written.len() <= 64 && written.chars().all(is_kept) && !written.is_empty() {
        written.clone()
    } else {
        kept.clone()
    };
    let mut number = 1;
    while !names.insert(name.clone()) {
        number += 1;
        name = format!("{kept}_{number}");
    }
    if name != *written {
        let shown = tool_settings::suggest::shown(written);
        let message = format!("the server `{shown}` is called `{name}` here");
        report(cx, &Remark::new(client_server.settings, message, ""));
    }
    name
}

fn report(cx: Cx<'_>, remark: &Remark) {
    if cx.report.is_full() {
        return;
    }
    let location = cx.document.key_location(remark.at);
    let problem = Diagnostic::warning(remark.message.clone()).with_location(Some(location));
    cx.report.push(if remark.hint.is_empty() {
        problem
    } else {
        problem.with_hint(remark.hint.clone())
    });
}
