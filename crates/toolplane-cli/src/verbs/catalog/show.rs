//! `toolplane catalog show`.

use serde_json::{Value, json};
use toolplane::catalog::{BundleContent, CatalogKey, CatalogNeeds, SignatureCheck};

use super::{
    find::{find, to_json},
    needs,
};
use crate::{
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

pub(super) async fn run(entry: &str, console: Console) -> Result<Exit, CliError> {
    let (catalog, entry) = find(entry, console).await?;
    let checked = catalog.bundle(&entry).await?;
    let mut value = to_json(&catalog.name, &entry);
    value["signature"] = signature_json(&checked.signature, catalog.key.as_ref());
    let mut lines = vec![
        format!("{}@{} ({})", entry.name, entry.version, entry.kind.as_str()),
        format!("  catalog     {}", catalog.name),
        format!("  description {}", text::line(&entry.description)),
        format!("  digest      sha256:{}", raw_json::hex(&entry.digest)),
        format!(
            "  signature   {}",
            signature_line(&checked.signature, catalog.key.as_ref())
        ),
    ];
    let needs = match &checked.bundle.content {
        BundleContent::Tool(version) => {
            let files: Vec<&String> = version.files.keys().collect();
            value["manifest"] = version.manifest.to().unwrap_or_default();
            value["files"] = json!(files);
            for file in files {
                lines.push(format!("  file        {}", text::line(file)));
            }
            lines.push(text::lines(&version.manifest.indented()).into_owned());
            needs::needs_of_tool(version)?
        }
        BundleContent::Server(settings) => {
            value["settings"] = settings.to().unwrap_or_default();
            lines.push(text::lines(&settings.indented()).into_owned());
            needs::needs_of_server(settings)?
        }
        BundleContent::McpServer(server) => {
            let choices = server.choices();
            let rows = choices.iter().map(|choice| {
                json!({"number": choice.number, "type": choice.kind, "name": choice.label, "problem": choice.problem})
            });
            value["packages"] = rows.collect::<Vec<Value>>().into();
            for choice in &choices {
                let problem = choice
                    .problem
                    .as_ref()
                    .map(|problem| format!(": cannot be used: {problem}"));
                let problem = problem.unwrap_or_default();
                let line = format!(
                    "  package {}   {} {}{problem}",
                    choice.number, choice.kind, choice.label
                );
                lines.push(text::line(&line).into_owned());
            }
            match server.plan(None, &Default::default()) {
                Ok(plan) => {
                    value["settings"] = plan.settings.to().unwrap_or_default();
                    value["asked"] = super::install::inputs_json(&plan.asked);
                    value["optional"] = super::install::inputs_json(&plan.optional);
                    lines.push(text::lines(&plan.settings.indented()).into_owned());
                    lines.extend(super::install::input_lines(&plan));
                    needs::needs_of_server(&plan.settings)?
                }
                Err(_) => CatalogNeeds::default(),
            }
        }
        _ => CatalogNeeds::default(),
    };
    value["needs"] = needs.to_json().to().unwrap_or_default();
    lines.extend(needs::lines(&needs));
    console.value(&value, || lines.join("\n"))?;
    Ok(Exit::Done)
}

/// Returns the result of the check of a signature, for people.
pub(super) fn signature_line(signature: &SignatureCheck, key: Option<&CatalogKey>) -> String {
    match (signature, key) {
        (SignatureCheck::Valid { comment }, Some(key)) => {
            let comment = comment
                .as_ref()
                .map(|comment| format!(": {}", text::line(comment)));
            format!(
                "valid, by the {} key of the catalog{}",
                key.kind(),
                comment.unwrap_or_default()
            )
        }
        _ => "not checked: the catalog has no key".to_owned(),
    }
}

/// Returns the result of the check of a signature, as data.
pub(super) fn signature_json(signature: &SignatureCheck, key: Option<&CatalogKey>) -> Value {
    match signature {
        SignatureCheck::Valid { comment } => json!({
            "checked": true,
            "kind": key.map(CatalogKey::kind),
            "comment": comment,
        }),
        _ => json!({"checked": false}),
    }
}
