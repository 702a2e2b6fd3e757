use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use raw_json::{RawJson, hex};
use tool_core::{
    CallContext, Descriptor, DynBackend, ErrorKind, Executor, ExecutorSpec, InProcess, Invoke, Layer,
    NamedLayer, Origin, Outcome, PrepareError, Target, ToolError,
};

use super::files::{CALLS, RecordedCall, RecordingError, TOOLS, read_all, without_secrets};

/// Way in which calls are matched with recorded ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ReplayMode {
    /// By tool and arguments: the first such call that was not used.
    #[default]
    Strict,
    /// By tool and order: the next call of the tool that was not used, whatever its arguments.
    ByPosition,
}

/// A recording that answers calls. Each recorded call answers once.
pub struct Replay {
    mode: ReplayMode,
    /// Calls that were not used, by their tool, each with the name of its file.
    calls: Mutex<HashMap<String, VecDeque<(String, RecordedCall)>>>,
    /// Definitions, by the name of the tool.
    definitions: HashMap<String, RawJson>,
}

/// Maximum length of arguments in a message, in characters.
const MAX_SHOWN: usize = 200;

impl Replay {
    /// Key in `_meta` of a reply that was recorded: the name of its file.
    pub const META_KEY: &'static str = "dev.toolplane/replay";

    /// Opens a recording.
    ///
    /// # Errors
    /// If it is none, or a file of it cannot be read.
    pub fn open(folder: &Path, mode: ReplayMode) -> Result<Self, RecordingError> {
        let mut definitions = HashMap::new();
        for (path, definition) in read_all(&folder.join(TOOLS))? {
            let name = definition.get("name").and_then(|name| name.string());
            let name = name.ok_or_else(|| RecordingError::new(&path, "the definition has no `name`"))?;
            definitions.entry(name).or_insert(definition);
        }
        let mut calls = HashMap::<_, VecDeque<_>>::new();
        for (path, call) in read_all(&folder.join(CALLS))? {
            let call =
                RecordedCall::from_json(&call).map_err(|problem| RecordingError::new(&path, problem))?;
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            calls
                .entry(call.tool.clone())
                .or_default()
                .push_back((file, call));
        }
        Ok(Self {
            mode,
            calls: Mutex::new(calls),
            definitions,
        })
    }

    /// Returns the recorded tools, as they are offered where a configuration does not have them: those of servers, which are not
    /// started.
    #[must_use]
    pub fn tools(&self) -> Vec<Descriptor> {
        let mut names: Vec<_> = self.definitions.keys().collect();
        names.sort();
        let tools = names.into_iter().map(|name| {
            let definition = &self.definitions[name];
            let text = |key: &str| definition.get(key).and_then(|text| text.string());
            let mut tool = Descriptor::new(name.as_str(), ExecutorSpec::new(ReplayExecutor::KIND));
            tool.title = text("title");
            tool.description = text("description").unwrap_or_default();
            if let Some(schema) = definition.get("inputSchema") {
                tool.input_schema = schema;
            }
            tool.output_schema = definition.get("outputSchema");
            tool.definition = Some(definition.clone());
            tool.origin = Origin::operator("recording");
            tool
        });
        tools.collect()
    }

    /// Returns the files of the calls that were not used.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let calls = self.calls.lock();
        let mut files: Vec<String> = calls
            .iter()
            .flat_map(|calls| calls.values().flatten())
            .map(|(file, _)| file.clone())
            .collect();
        files.sort();
        files
    }

    /// Takes the recorded call for a call.
    fn take(&self, cx: &CallContext) -> Result<(String, RecordedCall), ToolError> {
        let name = &**cx.tool().name();
        let missing = |why: String| {
            let message = format!("the recording has no {why}");
            ToolError::new(ErrorKind::Unavailable, message).with_no_retry()
        };
        let mut calls = self
            .calls
            .lock()
            .map_err(|_| missing("readable calls".to_owned()))?;
        let known = calls.get_mut(name).filter(|known| !known.is_empty());
        let known = known.ok_or_else(|| missing(format!("further call of `{name}`")))?;
        let place = match self.mode {
            ReplayMode::ByPosition => Some(0),
            ReplayMode::Strict => {
                let arguments = |hidden: &[String]| raw_json::digest(&without_secrets(cx, hidden));
                let mut hidden = &*known[0].1.hidden;
                let mut wanted = arguments(hidden);
                known.iter().position(|(_, call)| {
                    // They differ after a change of the tool's settings alone.
                    if *call.hidden != *hidden {
                        hidden = &call.hidden;
                        wanted = arguments(hidden);
                    }
                    raw_json::digest(&call.arguments) == wanted
                })
            }
        };
        let Some(place) = place else {
            let next = known.front().map(|(file, call)| {
                let arguments: String = call.arguments.as_str().chars().take(MAX_SHOWN).collect();
                format!("; the next one is `{file}` with {arguments}")
            });
            let why = format!(
                "further call of `{name}` with these arguments{}",
                next.unwrap_or_default()
            );
            return Err(missing(why));
        };
        let is_same = known
            .get(place)
            .is_some_and(|(_, call)| call.definition == hex(cx.tool().digest()));
        if !is_same {
            let message = format!("the definition of `{name}` is not the one of the recording; record again");
            return Err(ToolError::new(ErrorKind::ToolChanged, message));
        }
        known
            .remove(place)
            .ok_or_else(|| missing(format!("further call of `{name}`")))
    }
}

/// Answers calls of tools from a recording. Nothing is sent, and no call passes that was not recorded.
#[derive(Debug, Clone)]
pub struct ReplayLayer(Arc<Replay>);

/// Service of [`ReplayLayer`].
#[derive(Debug, Clone)]
pub struct Replayed<S> {
    layer: ReplayLayer,
    inner: S,
}

impl ReplayLayer {
    /// Creates a layer.
    ///
    /// # Order
    /// Where the [`RecordLayer`](super::RecordLayer) was.
    #[must_use]
    pub fn new(replay: Arc<Replay>) -> Self {
        Self(replay)
    }
}

impl NamedLayer for ReplayLayer {
    const NAME: &'static str = "replay";
}

impl<S> Layer<S> for ReplayLayer {
    type Invoke = Replayed<S>;

    fn layer(self, inner: S) -> Replayed<S> {
        Replayed { layer: self, inner }
    }
}

impl<S: Invoke> Invoke for Replayed<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if !matches!(cx.target, Target::Tool(_)) || cx.is_dry_run() {
            return self.inner.invoke(cx).await;
        }
        let taken = self.layer.0.take(cx);
        cx.explain(ReplayLayer::NAME, || match &taken {
            Ok((file, _)) => format!("answered by `{file}`"),
            Err(error) => error.message().to_owned(),
        });
        let (file, call) = taken?;
        let mut reply = call.result?;
        reply.add_meta(Replay::META_KEY, RawJson::from(file.as_str()));
        Ok(reply.into())
    }
}

/// Executor of kind `replay`: tools that a recording has and nothing else. A [`ReplayLayer`] answers their calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayExecutor;

impl ReplayExecutor {
    /// Kind that descriptors name.
    pub const KIND: &'static str = "replay";
}

impl Executor for ReplayExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        Ok(Arc::new(InProcess(NotReplayed)))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

/// Backend of a tool that is not there.
struct NotReplayed;

impl Invoke for NotReplayed {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        let message = "the tool is only in the recording";
        Err(ToolError::new(ErrorKind::Unavailable, message).with_no_retry())
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
