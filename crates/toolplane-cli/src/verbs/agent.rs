//! `toolplane agent run`: a model uses the tools of a configuration.

use std::{fs, io, path::Path};

use serde::Serialize;
use toolplane::{
    Builder, HttpModel, HttpModelSettings, RawJson, Toolplane,
    agent::{
        AgentEnd, AgentError, AgentLimits, AgentWatch, CallOutput, ContentPart, Conversation,
        DefinitionOptions, Model, ModelCall, ProviderFormat, ScriptedModel, StopReason, WaitingCall,
    },
    core::Secret,
    manifest::Loaded,
};

use super::{on_opened_plane, recording::Recorder, tools::definitions::format_of};
use crate::{
    command::{Format, Options, RunAgent},
    config,
    error::CliError,
    exit::Exit,
    lock,
    output::{Console, file::replace, text},
    store::OpenStore,
    telemetry::Telemetry,
};

/// Maximum number of characters of a result that is shown.
const MAX_SHOWN: usize = 200;

pub(crate) fn run(options: &Options, agent: &RunAgent, console: Console) -> Result<Exit, CliError> {
    let format = format_of(agent.provider);
    let model = model(agent, format)?;
    let mut conversation = conversation(agent, format)?;
    let recorder = Recorder::open(&agent.recording, console)?;
    let complete = async |builder: Builder, loaded: &Loaded, store: Option<&OpenStore>| {
        recorder.add_to(lock::with_pins(builder, loaded, store, console).await?)
    };
    let open = async |telemetry: &Telemetry| config::open_with(options, telemetry, console, complete).await;
    on_opened_plane(console, open, async |_, plane| {
        let end = converse(plane, agent, &*model, &mut conversation, console).await;
        // Also after a failure, so that nothing that was said is lost.
        if let Some(file) = &agent.state {
            replace(file, conversation.to_json().as_str())?;
        }
        recorder.report_unused();
        show(agent, end, console)
    })
}

/// Returns the model, or the one that follows the script.
fn model(agent: &RunAgent, format: ProviderFormat) -> Result<Box<dyn Model>, CliError> {
    if let Some(file) = &agent.script {
        let script = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        let script = serde_json::from_str(&script)
            .map_err(|error| CliError::usage(format!("`{}` is no JSON: {error}", file.display())))?;
        let model = ScriptedModel::from_json(format, &script);
        return Ok(Box::new(model.map_err(|error| CliError::usage(error.message))?));
    }
    let mut settings = HttpModelSettings::new(format, agent.model.as_deref().unwrap_or_default());
    if let Some(url) = &agent.base_url {
        settings = settings.with_base_url(url);
    }
    let usual = match format {
        ProviderFormat::Anthropic => Some("ANTHROPIC_API_KEY"),
        ProviderFormat::Gemini => Some("GEMINI_API_KEY"),
        ProviderFormat::Ollama => None,
        _ => Some("OPENAI_API_KEY"),
    };
    if let Some(name) = agent.key_env.as_deref().or(usual) {
        match config::variable(name) {
            Some(key) => settings = settings.with_api_key(Secret::new(key)),
            // A service on this machine may need none.
            None if agent.key_env.is_none() && agent.base_url.is_some() => {}
            None => {
                let failure = CliError::usage(format!("the environment variable `{name}` is not set"));
                return Err(
                    failure.with_hint("it has the key of the provider; `--key-env` names another one")
                );
            }
        }
    }
    Ok(Box::new(HttpModel::new(settings)))
}

/// Returns the conversation of the state file, or a new one, with the message.
fn conversation(agent: &RunAgent, format: ProviderFormat) -> Result<Conversation, CliError> {
    let stored = match &agent.state {
        None => None,
        Some(file) => match fs::read_to_string(file) {
            Ok(text) => Some((file, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(file, &error)),
        },
    };
    let mut conversation = match stored {
        None => Conversation::new(format),
        Some((file, text)) => {
            let wrong = |problem: String| CliError::usage(format!("`{}`: {problem}", file.display()));
            let stored = RawJson::parse(text).map_err(|error| wrong(error.to_string()))?;
            Conversation::from_json(&stored).map_err(|error| wrong(error.to_string()))?
        }
    };
    if let Some(system) = &agent.system {
        conversation = conversation.with_system(system);
    }
    match (&agent.message, conversation.is_waiting()) {
        (Some(_), true) => {
            let failure =
                CliError::usage("the conversation waits, and takes no message until it has gone on");
            Err(failure.with_hint("run it without a message first"))
        }
        (Some(message), false) => {
            conversation.user(message);
            Ok(conversation)
        }
        (None, true) => Ok(conversation),
        (None, false) => Err(CliError::usage("there is no message to the model")),
    }
}

async fn converse(
    plane: &Toolplane,
    agent: &RunAgent,
    model: &dyn Model,
    conversation: &mut Conversation,
    console: Console,
) -> Result<AgentEnd, AgentError> {
    let caller = plane.local_caller();
    let options = DefinitionOptions::default().with_strict(agent.strict);
    let definitions = plane.tool_definitions(model.format(), &caller, options).await;
    for note in definitions.notes() {
        console.warn(&text::line(&note.to_string()));
    }
    let mut limits = AgentLimits::default();
    limits.max_rounds = agent.max_rounds;
    limits.max_result_tokens = agent.max_result_tokens;
    let tools = plane.conversation_tools("agent", &caller);
    toolplane::agent::Agent::new(model, &tools, &definitions)
        .with_limits(limits)
        .with_choice(plane.model_tool_choice())
        .run(conversation, &Shown(console))
        .await
}

/// Shows calls on stderr as they happen.
struct Shown(Console);

impl AgentWatch for Shown {
    fn calls(&self, call: &ModelCall) {
        let arguments = shortened(call.arguments.as_str());
        self.0
            .stderr(&format!("-> {} {arguments}", text::line(&call.name)));
    }

    fn ends(&self, call: &ModelCall, output: &CallOutput) {
        let texts = output.content.iter().map(|part| match part {
            ContentPart::Text(words) => words.clone(),
            ContentPart::Image { mime, .. } | ContentPart::Audio { mime, .. } => format!("[{mime}]"),
            ContentPart::File { uri, .. } => format!("[{uri}]"),
            _ => "[..]".to_owned(),
        });
        let texts = texts.collect::<Vec<_>>().join(" ");
        let end = if output.is_error { "failed: " } else { "" };
        self.0.stderr(&format!(
            "<- {} {end}{}",
            text::line(&call.name),
            shortened(&texts)
        ));
    }
}

/// Returns the beginning of a text, in one line.
fn shortened(words: &str) -> String {
    let line = text::line(words);
    let mut short: String = line.chars().take(MAX_SHOWN).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// End of a run, for programs.
#[derive(Serialize)]
struct AgentReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    stop: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingReport<'a>>,
}

#[derive(Serialize)]
struct WaitingReport<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<&'a str>,
    reason: &'a str,
}

fn show(agent: &RunAgent, end: Result<AgentEnd, AgentError>, console: Console) -> Result<Exit, CliError> {
    match end {
        Ok(AgentEnd::Answered { text: said, stop }) => {
            let stop = match &stop {
                StopReason::End | StopReason::ToolCalls => "end",
                StopReason::MaxTokens => "max_tokens",
                StopReason::Refusal => "refusal",
                StopReason::Other(other) => other,
                _ => "other",
            };
            let report = AgentReport {
                text: Some(&said),
                stop,
                waiting: Vec::new(),
            };
            console.value(&report, || said.trim_end().to_owned())?;
            if stop != "end" {
                console.warn(&format!("the answer ended early: `{}`", text::line(stop)));
            }
            Ok(Exit::Done)
        }
        Ok(AgentEnd::Waiting(waiting)) => {
            let reports = waiting.iter().map(WaitingReport::new).collect();
            let report = AgentReport {
                text: None,
                stop: "waiting",
                waiting: reports,
            };
            if console.format != Format::Table {
                console.value(&report, String::new)?;
            }
            Err(pending(agent, &waiting))
        }
        Ok(_) => Err(CliError::new(
            Exit::Failed,
            "failed",
            "the conversation ended in an unknown way",
        )),
        Err(error @ AgentError::Model(_)) => {
            Err(CliError::new(Exit::Unavailable, "unavailable", error.to_string()))
        }
        Err(error) => Err(CliError::new(Exit::Failed, "failed", error.to_string())),
    }
}

impl<'a> WaitingReport<'a> {
    fn new(waiting: &'a WaitingCall) -> Self {
        Self {
            tool: &waiting.tool,
            handle: waiting.handle.as_deref(),
            reason: &waiting.reason,
        }
    }
}

fn pending(agent: &RunAgent, waiting: &[WaitingCall]) -> CliError {
    let each = waiting.iter().map(|call| {
        let handle = call.handle.as_deref().map(|handle| format!(", as `{handle}`"));
        format!(
            "`{}`{}: {}",
            call.tool,
            handle.unwrap_or_default(),
            text::line(&call.reason)
        )
    });
    let each = each.collect::<Vec<_>>().join("; ");
    let error = CliError::new(
        Exit::Pending,
        "pending",
        format!("the conversation waits: {each}"),
    );
    error.with_hint(match &agent.state {
        Some(file) => format!(
            "once that is decided, go on with `toolplane agent run --state {}`",
            file.display()
        ),
        None => "nothing keeps it; `--state FILE` does".to_owned(),
    })
}

fn unreadable(file: &Path, error: &io::Error) -> CliError {
    CliError::usage(format!("`{}` cannot be read: {error}", file.display()))
}
