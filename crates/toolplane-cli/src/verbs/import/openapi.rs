use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_openapi::{ImportOptions, ImportedApi, OpenApiError, OperationFilter, import};
use toolplane::{
    Toolplane,
    manifest::{LoadOptions, Syntax, load},
    registry::PublishOptions,
};

use super::report::Report;
use crate::{
    command::{Format, ImportOpenapi, Options},
    error::CliError,
    exit::Exit,
    output::{Console, yaml::yaml},
    process::runtime::block_on,
    verbs::registry::{author, checking_publisher, publish_tools, published_line, published_value},
};

/// Maximum size of the file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// Number of tools that are checked at a time.
const TOOLS_AT_A_TIME: usize = 100;

pub(super) fn run(options: &Options, arguments: &ImportOpenapi, console: Console) -> Result<Exit, CliError> {
    block_on(import_tools(options, arguments, console))
}

async fn import_tools(
    command_line: &Options,
    arguments: &ImportOpenapi,
    console: Console,
) -> Result<Exit, CliError> {
    let name = arguments.file.display().to_string();
    let bytes = read(&arguments.file)
        .map_err(|error| CliError::failed(format!("cannot read `{name}`")).with_source(&error))?;
    let mut api = import(&bytes, &options(arguments)).map_err(|error| unusable(&name, &error))?;
    check(&mut api).await?;
    let report = Report::new(&api, &name);
    report.tell(console);
    if api.tools.is_empty() {
        let failure = CliError::failed(format!("no operation of `{name}` can be imported"));
        return Err(failure.with_hint(if api.skipped.is_empty() {
            "the selection matches none: leave out `--tag`, `--path`, `--method` or `--operation`"
        } else {
            "the reasons are above"
        }));
    }
    let configuration = api.configuration();
    if arguments.publish {
        return publish(command_line, arguments, &configuration, console).await;
    }
    let Some(out) = &arguments.out else {
        match console.format {
            Format::Json => console.value(&configuration, String::new)?,
            _ => console.data(&document(&api, &configuration))?,
        }
        return Ok(Exit::Done);
    };
    let text = document(&api, &configuration);
    check_size(&text)?;
    write(out, arguments.force, &text)?;
    console.value(&report.with_file(out.display().to_string()), || {
        report.summary(out)
    })?;
    Ok(Exit::Done)
}

/// Publishes the imported tools. Their secrets stay in the configuration: the store keeps references.
async fn publish(
    command_line: &Options,
    arguments: &ImportOpenapi,
    configuration: &Value,
    console: Console,
) -> Result<Exit, CliError> {
    let publisher = checking_publisher(command_line, &[], console).await?;
    let text = configuration.to_string();
    let loaded = load(&LoadOptions::new().text("imported", Syntax::Json, text))?;
    let (version, by) = (arguments.version.as_deref(), author(None));
    let published = publish_tools(&publisher, &loaded, version, &by, PublishOptions::default()).await?;
    let values: Vec<Value> = published.iter().map(published_value).collect();
    console.value(&values, || {
        let lines = published.iter().map(|one| published_line(one, false));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    if configuration.get("secrets").is_some() {
        console.say("the tools refer to secrets by name: define them under `secrets` of the configuration");
    }
    Ok(Exit::Done)
}

fn options(arguments: &ImportOpenapi) -> ImportOptions {
    let mut filter = OperationFilter::new();
    filter.tags.clone_from(&arguments.tags);
    filter.paths.clone_from(&arguments.paths);
    filter.methods.clone_from(&arguments.methods);
    filter.operations.clone_from(&arguments.operations);
    let mut options = ImportOptions::new()
        .with_filter(filter)
        .with_prefix(arguments.prefix.as_str())
        .with_allow_private(arguments.allow_private);
    options.server.clone_from(&arguments.server);
    options.security.clone_from(&arguments.security);
    options
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(bytes)
}

fn unusable(name: &str, error: &OpenApiError) -> CliError {
    let failure = CliError::configuration(format!("`{name}` cannot be imported")).with_source(error);
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// Skips the tools that the executor would refuse. Secrets count as present.
async fn check(api: &mut ImportedApi) -> Result<(), CliError> {
    let mut part = api.clone();
    let mut refused = Vec::new();
    // In parts, since a configuration has a maximum size.
    for tools in api.tools.chunks(TOOLS_AT_A_TIME) {
        part.tools = tools.to_vec();
        let mut configuration = part.configuration();
        if let Some(Value::Object(secrets)) = configuration.get_mut("secrets") {
            for value in secrets.values_mut() {
                *value = json!("present");
            }
        }
        let text = configuration.to_string();
        let loaded = load(&LoadOptions::new().text("imported", Syntax::Json, text))?;
        let plane = Toolplane::builder().loaded(&loaded).build()?;
        refused.extend(plane.refused());
        plane.shutdown().await;
    }
    for refused in refused {
        api.skip_tool(&refused.name, refused.reason);
    }
    Ok(())
}

/// Checks that a text can be loaded as a configuration.
fn check_size(text: &str) -> Result<(), CliError> {
    match load(&LoadOptions::new().text("the imported tools", Syntax::Yaml, text)) {
        Ok(_) => Ok(()),
        Err(problems) => {
            let failure = CliError::from(problems);
            Err(failure
                .with_hint("import fewer operations into one file, by `--tag`, `--path` or `--method`"))
        }
    }
}

/// Returns the text of the file: the tools with a comment on their origin.
fn document(api: &ImportedApi, configuration: &Value) -> String {
    let line = |text: &str| -> String {
        let shown: String = text
            .chars()
            .filter(|c| !c.is_control() && !tool_scan::is_hidden(*c))
            .collect();
        shown.chars().take(100).collect()
    };
    let mut text = format!(
        "# Tools of `{}` {}, imported from a document of {}.\n\
         # `read_only` and `idempotent` follow from the methods (RFC 9110, section 9.2): check that the API keeps to them.\n",
        line(&api.title),
        line(&api.version),
        line(&api.format),
    );
    for secret in &api.secrets {
        text.push_str(&format!(
            "# The secret `{}` is {}.\n",
            secret.name, secret.description
        ));
    }
    text.push_str(&yaml(&RawJson::from(configuration)));
    text
}

/// Writes the file. Overwrites an existing one only with `force`.
fn write(file: &Path, force: bool, text: &str) -> Result<(), CliError> {
    let name = file.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CliError::failed(format!("`{name}` exists already"))
            .with_hint("name another file, or replace it with `--force`"),
        _ => CliError::failed(format!("cannot write `{name}`")).with_source(&error),
    })
}
