use std::sync::Arc;

use crate::{
    Diagnostic, Syntax,
    draft::Draft,
    file::{self, OWN_KEYS},
    json,
    node::{Document, Kind, NodeId},
    place::Cx,
    report::Report,
    source::SourceFile,
    yaml,
};

/// Reads a file's documents, each in the spelling it is in.
pub(crate) fn read(source: SourceFile, report: &Report) -> Draft {
    let source = Arc::new(source);
    let n_earlier = report.n_problems();
    let mut draft = Draft::default();
    let documents = match source.syntax {
        Syntax::Yaml => yaml::read(&source, report),
        Syntax::Json => json::read(&source, report),
    };
    let mut is_empty = !report.has_errors();
    for document in documents {
        let document = Arc::new(document);
        let root = document.root();
        if matches!(document.kind(root), Kind::Null) {
            continue;
        }
        is_empty = false;
        let cx = Cx {
            document: &document,
            report,
            lenient: false,
        };
        take_all(cx, root, &mut draft);
    }
    if is_empty {
        report.push(Diagnostic::warning("there is nothing in this file").at(&source, 0..0, String::new()));
    }
    report.sort_from(n_earlier);
    draft
}

/// A document holds one thing, or a list of them.
fn take_all(cx: Cx<'_>, root: NodeId, draft: &mut Draft) {
    match cx.document.kind(root) {
        Kind::List(items) => {
            for item in items {
                take(cx, *item, draft);
            }
        }
        _ => take(cx, root, draft),
    }
}

fn take(cx: Cx<'_>, at: NodeId, draft: &mut Draft) {
    let document = cx.document;
    if !matches!(document.kind(at), Kind::Map(_)) {
        let found = document.describe(at);
        cx.error(
            at,
            format!("expected a map, found {found}"),
            "begin with `tools:` or `servers:`",
        );
        return;
    }
    let lenient = is_of_client(document, at);
    file::take(Cx { lenient, ..cx }, at, draft);
}

/// Whether a document is a file of an MCP client, with keys of its own: `mcpServers`, or VS Code's `servers`.
fn is_of_client(document: &Document, at: NodeId) -> bool {
    let has = |key: &str| document.get(at, key).is_some();
    document.source.syntax == Syntax::Json
        && !OWN_KEYS.iter().any(|key| has(key))
        && (has("mcpServers") || has("servers") && has("inputs"))
}
