use std::{fmt, sync::Arc};

use parking_lot::Mutex as SyncMutex;
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, timeout},
};
use tool_core::{Catalogue, Dispatch, Lifecycle, OnUpdate, Secrets, SourceState, Update};

use crate::{
    EndpointSettings,
    failure::AskError,
    listing::{self, DescribedList},
    protocol::{EndpointReply, EndpointRequest},
};

/// A command endpoint: a program that answers one request in each run.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{NoSecrets, Template};
/// use tool_exec_endpoint::{CommandEndpoint, EndpointCommand, EndpointSettings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tool_core::TemplateError> {
/// let list = r#"{"type":"result","tools":[{"name":"hello","description":"Greets.","input_schema":{}}]}"#;
/// let command = EndpointCommand::new(Template::parse("echo")?).args([Template::parse(list)?]);
/// let endpoint = CommandEndpoint::new(EndpointSettings::new("example", command), Arc::new(NoSecrets));
/// let source = endpoint.source();
/// source.load().await;
/// assert_eq!(&*source.snapshot().tools[0].name, "example__hello");
/// # Ok(())
/// # }
/// ```
pub struct CommandEndpoint {
    pub(crate) settings: EndpointSettings,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// Locked while the list is read, so that many callers share one run.
    pub(crate) load: Mutex<LoadState>,
    /// Number of attempts to read the list that have ended.
    pub(crate) n_attempts: watch::Sender<u64>,
    lifecycle: SyncMutex<Lifecycle>,
    listeners: SyncMutex<Vec<OnUpdate>>,
    start: Instant,
}

/// State of reading the list.
#[derive(Debug, Default)]
pub(crate) struct LoadState {
    /// `true` once the list was read.
    pub(crate) is_listed: bool,
    /// Instant before which the list is not read again after a failure.
    pub(crate) retry_at: Option<Instant>,
    pub(crate) n_failures: u32,
    /// `true` once a task reads the list again and again.
    pub(crate) is_followed: bool,
}

impl CommandEndpoint {
    /// Creates an endpoint. Nothing is started before its first use.
    #[must_use]
    pub fn new(settings: EndpointSettings, secrets: Arc<dyn Secrets>) -> Arc<Self> {
        let lifecycle = Lifecycle::new(settings.name.as_str(), tool_core::Instant::default());
        Arc::new(Self {
            settings,
            secrets,
            catalogue: watch::Sender::default(),
            load: Mutex::default(),
            n_attempts: watch::Sender::default(),
            lifecycle: SyncMutex::new(lifecycle),
            listeners: SyncMutex::default(),
            start: Instant::now(),
        })
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &EndpointSettings {
        &self.settings
    }

    /// Runs the program with a request and returns its reply. `dispatch` is marked before the start.
    pub(crate) async fn ask(
        &self,
        request: &EndpointRequest,
        dispatch: Option<&Dispatch>,
    ) -> Result<EndpointReply, AskError> {
        let settings = &self.settings;
        if settings.is_too_deep() {
            return Err(AskError::TooDeep);
        }
        let command = settings.command.resolve(&*self.secrets).await?;
        let command = command.env(EndpointSettings::DEPTH_VARIABLE, (settings.depth + 1).to_string());
        let mut input = request.to_json().as_bytes().to_vec();
        input.push(b'\n');
        if let Some(dispatch) = dispatch {
            dispatch.sent();
        }
        let output = command.run_once(&input, settings.max_reply_bytes).await;
        let output = output.map_err(|error| {
            if let Some(dispatch) = dispatch {
                dispatch.not_taken();
            }
            AskError::Start(error)
        })?;
        if let Some(dispatch) = dispatch {
            dispatch.answered();
        }
        if output.is_truncated {
            return Err(AskError::TooLarge(settings.max_reply_bytes));
        }
        let is_success = output.status.is_some_and(|status| status.success());
        match EndpointReply::parse(request, output.stdout) {
            // A program may report an error by its exit code as well.
            Ok(reply) if is_success || matches!(reply, EndpointReply::Error(_)) => Ok(reply),
            Err(error) if is_success => Err(AskError::Protocol {
                reason: error.to_string(),
                stderr: output.stderr,
            }),
            _ => Err(AskError::Failed {
                status: output.status,
                stderr: output.stderr,
            }),
        }
    }

    /// Reads the list and makes descriptors of its entries.
    async fn list(&self) -> Result<DescribedList, String> {
        let settings = &self.settings;
        let asked = timeout(settings.list_timeout, self.ask(&EndpointRequest::ListTools, None)).await;
        let reason = match asked {
            Ok(Ok(EndpointReply::Tools(tools))) => {
                let tools = tools.into_iter();
                let tools = tools.map(|tool| self.secrets.hide_in_json(&tool).unwrap_or(tool));
                return Ok(listing::describe(settings, tools.collect()));
            }
            Ok(Ok(EndpointReply::Error(failure))) => {
                format!(
                    "it refuses to list its tools: {} (category `{}`)",
                    failure.message, failure.category
                )
            }
            // The reply was read as one to a request for the list.
            Ok(Ok(_)) => "its reply is no list of tools".to_owned(),
            Ok(Err(error)) => error.reason(),
            Err(_) => format!(
                "it did not list its tools within {}",
                tool_core::format_duration(settings.list_timeout)
            ),
        };
        Err(self.secrets.hide_in_text(&reason).into_owned())
    }

    /// Reads the list and replaces the previous one, which stays if that fails. Called by one task at a time.
    pub(crate) async fn refresh(&self) -> Result<(), ()> {
        match self.list().await {
            Ok(list) => {
                let next = listing::replace(&self.catalogue.borrow(), list).map(Arc::new);
                if let Some(next) = next {
                    listing::log_warnings(&self.settings.name, &next);
                    self.catalogue.send_replace(next);
                }
                self.enter(SourceState::Ready);
                Ok(())
            }
            Err(reason) => {
                self.enter(SourceState::Failed(reason));
                Err(())
            }
        }
    }

    /// Enters a state, and tells the listeners of a change. Called by one task at a time.
    pub(crate) fn enter(&self, state: SourceState) {
        let change = self.lifecycle.lock().enter(state, self.now());
        let Some(change) = change else { return };
        let listeners = self.listeners.lock().clone();
        let update = Update::State(change);
        listeners.iter().for_each(|tell| tell(&update));
    }

    /// Returns the status of the source.
    pub(crate) fn status(&self) -> tool_core::SourceStatus {
        self.lifecycle.lock().status(self.now())
    }

    pub(crate) fn add_listener(&self, tell: OnUpdate) {
        self.listeners.lock().push(tell);
    }

    fn now(&self) -> tool_core::Instant {
        tool_core::Instant::since_start(self.start.elapsed())
    }
}

impl fmt::Debug for CommandEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandEndpoint")
            .field("name", &self.settings.name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
