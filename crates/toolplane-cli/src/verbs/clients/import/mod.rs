//! `toolplane import mcp-json`: servers of the files of clients, in our own form.

mod collect;
mod merge;
mod report;

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use toolplane::raw_json::RawJson;

use self::{collect::ReadFile, report::Report};
use crate::{
    command::{Format, ImportClients, Options},
    error::CliError,
    exit::Exit,
    output::{Console, text, yaml::yaml},
    verbs::{clients::masked, configuration::servers},
};

pub(crate) fn run(options: &Options, import: &ImportClients, console: Console) -> Result<Exit, CliError> {
    let files = collect::files(import)?;
    let read: Vec<ReadFile> = files.into_iter().map(collect::read).collect();
    let target = match import.write {
        true => Some(servers::Target::find(options)?),
        false => import.out.clone().map(servers::Target::new),
    };
    let known = match &target {
        Some(target) if import.write => target.servers()?,
        _ => Map::new(),
    };
    let merged = merge::merge(&read, &known);
    let mut report = Report::new(&read, &merged);
    report.warn(console);
    let taken: Vec<(String, Value)> = merged.iter().filter_map(merge::Merged::taken).collect();
    if import.dry_run {
        let shown = taken
            .iter()
            .map(|(name, settings)| (name.clone(), masked::settings(settings)));
        let document = json!({"servers": shown.collect::<Map<_, _>>()});
        match console.format {
            Format::Json => console.value(&document, String::new)?,
            _ => console.data(&yaml(&RawJson::from(document)))?,
        }
        return Ok(exit(&report));
    }
    if let Some(target) = &target
        && !taken.is_empty()
    {
        match import.write {
            true => target.add(&taken)?,
            false => target.create(&taken)?,
        }
    }
    let written: Option<PathBuf> = target.filter(|_| !taken.is_empty()).map(|target| target.path);
    report.print(written.as_deref(), console)?;
    match &written {
        Some(file) => {
            let count = text::count(taken.len(), "server");
            console.say(&format!(
                "wrote {count} to `{0}`; check them: toolplane -c {0} check",
                file.display()
            ));
        }
        None if taken.is_empty() => console.say("nothing to import"),
        None => console.say(
            "nothing was written: `--write` adds the servers to the configuration, `--out FILE` makes a file",
        ),
    }
    Ok(exit(&report))
}

/// Returns the exit code: a named file that cannot be read is a failure.
fn exit(report: &Report) -> Exit {
    match report.has_failed() {
        true => Exit::Failed,
        false => Exit::Done,
    }
}
