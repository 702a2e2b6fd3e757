use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{Descriptor, ExecutorSpec, Metadata, Origin};
use tool_scan::scan;
use tool_schema::{SchemaErrorKind, verify};

use crate::{
    ImportOptions, ImportedApi, ImportedTool, OpenApiError, SkippedOperation,
    document::Document,
    operation::{Operation, Requirements, base_url, checked_option, names, operations},
    request::tool_request,
    schema::remove_annotations,
};

/// Maximum length of a description, in characters, above which models may cut it.
const MAX_DESCRIPTION: usize = 1024;

/// Imports the operations of an OpenAPI document, in JSON or YAML, which may be compressed with gzip.
///
/// An operation that cannot be a tool is in [`ImportedApi::skipped`], with the reason. Nothing is fetched.
///
/// # Errors
/// If the document cannot be read, has an unsupported version, or if an option is invalid.
///
/// # Examples
/// ```
/// use tool_openapi::{ImportOptions, OperationFilter, import};
///
/// let document = b"
/// openapi: 3.0.3
/// info: {title: Pets, version: '1'}
/// servers: [{url: 'https://pets.example.com'}]
/// paths:
///   /pets:
///     get: {summary: Lists pets., tags: [pets], responses: {}}
///     post: {summary: Adds a pet., tags: [admin], responses: {}}
/// ";
/// let options = ImportOptions::new().with_filter(OperationFilter::new().with_tag("pets"));
/// let api = import(document, &options)?;
/// assert_eq!(&*api.tools[0].descriptor.name, "get_pets");
/// assert_eq!(api.n_unselected, 1);
/// # Ok::<(), tool_openapi::OpenApiError>(())
/// ```
pub fn import(document: &[u8], options: &ImportOptions) -> Result<ImportedApi, OpenApiError> {
    let document = Document::read(document)?;
    let server = options.server.as_deref().map(checked_option).transpose()?;
    let requirements = Requirements::read(&document, &options.prefix, options.security.as_deref())?;
    let listed = operations(&document);
    let mut api = ImportedApi {
        title: document.info("title"),
        version: document.info("version"),
        format: document.version.to_string(),
        secrets: requirements.secrets(),
        ..ImportedApi::default()
    };
    let names = names(&listed.operations, &options.prefix);
    let named: Vec<(Operation<'_>, String)> = listed
        .operations
        .iter()
        .zip(&names)
        .map(|(operation, name)| (*operation, name.clone().unwrap_or_default()))
        .collect();
    api.warnings = options.filter.idle(&named);
    for (operation, name) in listed.operations.iter().zip(names) {
        let shown = name.as_deref().unwrap_or_default();
        if !options.filter.selects(operation, shown) {
            api.n_unselected += 1;
            continue;
        }
        let context = ToolContext {
            document: &document,
            requirements: &requirements,
            server: server.as_deref(),
            options,
        };
        match name.and_then(|name| context.tool(operation, &name)) {
            Ok(tool) => api.tools.push(tool),
            Err(reason) => api.skipped.push(SkippedOperation {
                operation: operation.described(),
                reason,
            }),
        }
    }
    if options.filter == crate::OperationFilter::new() {
        let unreadable = listed.unreadable.into_iter();
        api.skipped
            .extend(unreadable.map(|(operation, reason)| SkippedOperation { operation, reason }));
    }
    api.retain_used_secrets();
    Ok(api)
}

/// Everything that a tool is made of, besides its operation.
struct ToolContext<'a, 'd> {
    document: &'d Document,
    requirements: &'a Requirements<'d>,
    server: Option<&'a str>,
    options: &'a ImportOptions,
}

impl<'d> ToolContext<'_, 'd> {
    fn tool(&self, operation: &Operation<'d>, name: &str) -> Result<ImportedTool, String> {
        let base = match self.server {
            Some(server) => server.to_owned(),
            None => base_url(self.document, operation)?,
        };
        let mut warnings = Vec::new();
        let credentials = self.requirements.credentials(operation, &mut warnings)?;
        let request = tool_request(self.document, operation, &base, &credentials)?;
        warnings.extend(request.warnings);
        let input_schema = usable(request.input_schema, &mut warnings)?;
        let mut config = request.config;
        if self.options.allow_private {
            config.insert("allow_private".to_owned(), json!(true));
        }
        let executor = ExecutorSpec::new("http").with_config(Value::Object(config));
        let mut descriptor = Descriptor::new(name, executor);
        descriptor.description = description(operation);
        descriptor.input_schema = input_schema;
        descriptor.metadata = metadata(operation).into();
        descriptor.origin = Origin::operator(format!("the operation `{}`", operation.described()));
        warnings.extend(text_warnings(&descriptor));
        Ok(ImportedTool {
            descriptor,
            operation: operation.described(),
            warnings,
        })
    }
}

/// Returns a schema that compiles. One that is too large loses its annotations; a model then chooses by names alone.
fn usable(mut schema: Value, warnings: &mut Vec<String>) -> Result<RawJson, String> {
    let refused = |reason: &str| format!("its input schema: {reason}");
    let raw = RawJson::from(&schema);
    match verify(&raw) {
        Ok(()) => return Ok(raw),
        Err(error) if error.kind() != SchemaErrorKind::TooLarge => return Err(refused(error.reason())),
        Err(_) => {}
    }
    remove_annotations(&mut schema);
    let raw = RawJson::from(&schema);
    verify(&raw).map_err(|error| refused(error.reason()))?;
    warnings.push("the input schema is large: its definitions have lost their descriptions".to_owned());
    Ok(raw)
}

fn description(operation: &Operation<'_>) -> String {
    let (summary, text) = (operation.text("summary"), operation.text("description"));
    let mut description = match (summary, text) {
        (Some(summary), Some(text)) if text.starts_with(summary) => text.to_owned(),
        (Some(summary), Some(text)) => format!("{summary}\n\n{text}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => operation.described().to_string(),
    };
    if operation.value.get("deprecated") == Some(&Value::Bool(true)) {
        description.push_str("\n\nDeprecated.");
    }
    description
}

/// Returns the metadata of an operation. By RFC 9110, section 9.2, `GET`, `HEAD` and `OPTIONS` change nothing, and
/// repetitions of `PUT` and `DELETE` have no further effect.
fn metadata(operation: &Operation<'_>) -> Metadata {
    let mut metadata = Metadata::default();
    metadata.tags = operation.tags().map(str::to_owned).collect();
    match operation.upper_method().as_str() {
        "GET" | "HEAD" | "OPTIONS" => {
            metadata.read_only = Some(true);
            metadata.idempotent = Some(true);
        }
        "PUT" | "DELETE" => metadata.idempotent = Some(true),
        _ => {}
    }
    metadata
}

/// Returns warnings about the texts that models read.
fn text_warnings(descriptor: &Descriptor) -> Vec<String> {
    let mut warnings = Vec::new();
    let length = descriptor.description.chars().count();
    if length > MAX_DESCRIPTION {
        warnings.push(format!(
            "the description has {length} characters; some models take only {MAX_DESCRIPTION}"
        ));
    }
    let text = RawJson::from_members(&[
        ("description", RawJson::from(descriptor.description.as_str())),
        ("inputSchema", descriptor.input_schema.clone()),
    ]);
    warnings.extend(scan(&text).iter().map(ToString::to_string));
    warnings
}
