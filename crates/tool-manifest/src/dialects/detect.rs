use std::sync::Arc;

use tool_settings::{NodeId, Sections};

use crate::{
    Diagnostic, Syntax,
    clients::{self, Surroundings},
    diagnostics::report::Report,
    dialects::{file, kiwi, manifest, okso},
    document::{
        json,
        node::{Document, Kind},
        place::Cx,
        source::SourceFile,
        suggest, toml, yaml,
    },
    loading::draft::Draft,
};

/// Reads a file's documents, each in its own dialect.
pub(crate) fn read(
    source: SourceFile,
    report: &Report,
    sections: &Sections,
    surroundings: &Surroundings,
) -> Draft {
    let source = Arc::new(source);
    let n_earlier = report.n_problems();
    let mut draft = Draft::default();
    let documents = match source.syntax {
        Syntax::Yaml => yaml::read(&source, report),
        Syntax::Json => json::read(&source, report),
        Syntax::Toml => toml::read(&source, report),
    };
    let mut is_empty = !report.has_errors();
    for mut document in documents {
        let root = document.root();
        if matches!(document.kind(root), Kind::Null) {
            continue;
        }
        is_empty = false;
        let of_client = clients::translate(&mut document, surroundings);
        let document = Arc::new(document);
        let cx = Cx {
            document: &document,
            report,
            sections,
            lenient: false,
        };
        match of_client {
            Some(translation) => clients::take(cx, translation, &mut draft),
            None => take_all(cx, root, &mut draft),
        }
    }
    if is_empty {
        report.push(Diagnostic::warning("there is nothing in this file").at(&source, 0..0, String::new()));
    }
    report.sort_from(n_earlier);
    draft
}

/// Takes a document, which holds one thing or a list of them.
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
    if !cx.expect_map(at, "begin with `tools:` or `servers:`") {
        return;
    }
    let foreign = Cx { lenient: true, ..cx };
    match Form::detect(document, at) {
        Form::Manifest { api_version } => manifest::take(cx, at, api_version, draft),
        Form::Kiwi => kiwi::take(foreign, at, draft),
        Form::Okso => okso::take(foreign, at, draft),
        Form::OksoReply { tools } => take_all(cx, tools, draft),
        Form::NamelessTool { key } => {
            let name = document.get(at, "name").and_then(|name| document.text(name));
            let name = name.map_or_else(|| "NAME".into(), suggest::shown);
            cx.key_error(
                key,
                "this describes a tool, and no configuration",
                format!(
                    "write the tool below its name: `tools: {{{name}: {{description: .., executor: ..}}}}`"
                ),
            );
        }
        Form::Short => file::take(cx, at, draft),
    }
}

/// Dialect of a document, recognized by its keys.
enum Form {
    Manifest {
        api_version: NodeId,
    },
    Kiwi,
    Okso,
    /// The reply of an okso endpoint to a request for its tools.
    OksoReply {
        tools: NodeId,
    },
    /// A tool in the short form that is not below `tools:`, and one of its keys.
    NamelessTool {
        key: NodeId,
    },
    Short,
}

impl Form {
    fn detect(document: &Document, at: NodeId) -> Self {
        let has = |key: &str| document.get(at, key).is_some();
        if let Some(api_version) = document.get(at, "apiVersion") {
            return Self::Manifest { api_version };
        }
        if has("tool_id") || has("tool_type") {
            return Self::Kiwi;
        }
        if has("name") && (has("command") || has("result_schema")) && !has("servers") && !has("tools") {
            return Self::Okso;
        }
        if document.get(at, "type").and_then(|word| document.text(word)) == Some("result")
            && let Some(tools) = document.get(at, "tools").or_else(|| document.get(at, "tool"))
        {
            return Self::OksoReply { tools };
        }
        match document
            .get(at, "executor")
            .filter(|_| !has("tools") && !has("servers"))
        {
            Some(key) => Self::NamelessTool { key },
            None => Self::Short,
        }
    }
}
