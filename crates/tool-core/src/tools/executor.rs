use std::sync::Arc;

use raw_json::RawJson;

use crate::{Descriptor, DynBackend, Reach, SecretUse, Settings, StaticDefault, TaskSupport};

/// Executor of tools of one kind: prepares a backend from a descriptor's settings.
pub trait Executor: Send + Sync {
    /// Returns the kind that descriptors name, such as `http`.
    fn kind(&self) -> &str;

    /// Prepares the backend of a tool: reads and checks the settings, without I/O. Connections and processes start
    /// with the first call.
    ///
    /// # Errors
    /// If the settings are not usable: every problem that was found, each with its place.
    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>>;

    /// Returns the upstream that the tool shares with others: the name of a server, or scheme and host of an API.
    /// Limits and breakers of an upstream apply to all of its tools.
    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let _ = descriptor;
        None
    }

    /// Returns facts about the tool's origin that its descriptor does not contain.
    fn provenance(&self, descriptor: &Descriptor) -> Provenance {
        let _ = descriptor;
        Provenance::default()
    }

    /// Returns `true` if the tool's settings tell how the backend receives the idempotency key of a call, and the
    /// operator wrote them. Only then may a call with a key and an unknown outcome be repeated.
    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let _ = descriptor;
        false
    }

    /// Returns the way in which a call of the tool becomes a [`Task`](crate::Task). Its definition says that it may, unless it
    /// comes from a server, which says it itself.
    fn task_support(&self, descriptor: &Descriptor) -> TaskSupport {
        let _ = descriptor;
        TaskSupport::None
    }

    /// Returns the reach of the tool as its settings tell it. By default, every text of the settings may refer to secrets, which
    /// go to the [upstream](Self::upstream) or to this executor. A tool that an agent made is only prepared if each of its secrets
    /// is granted.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let upstream = self.upstream(descriptor);
        let destination = upstream.as_deref().unwrap_or_else(|| self.kind());
        Reach::new(SecretUse::find(&descriptor.executor.config, "", destination))
    }

    /// Returns `true` if the executor limits the size of results while it reads them. Otherwise the size is checked
    /// afterwards: see [`Settings::max_result_bytes`].
    fn bounds_results(&self) -> bool {
        false
    }

    /// Returns `true` if the tool calls other tools, so that no time limit of one attempt fits: an attempt then ends with its call,
    /// unless the tool has a `timeout_ms` of its own. Retries by default are those of the tools that it calls, not its own.
    fn calls_tools(&self) -> bool {
        false
    }

    /// Returns executor settings that have no effect in combination with the common settings of the tool, each with
    /// its place and a hint. They do not prevent the use of the tool.
    fn warnings(&self, descriptor: &Descriptor, settings: &Settings) -> Vec<PrepareError> {
        let _ = (descriptor, settings);
        Vec::new()
    }

    /// Returns the JSON Schema of the settings, for editors and the reference.
    fn config_schema(&self) -> RawJson;
}

/// Facts about the origin of a tool that its descriptor does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// Other names of the same tool: its name before it was renamed, and its name in its server's list. Policy rules
    /// for any of them apply to the tool.
    pub names: Vec<Arc<str>>,
    /// SHA-256 of the place where the tool runs, as the operator wrote it, such as a server's URL. An approval for
    /// one place does not apply to another. References to secrets are part of it, their values are not.
    pub place: Option<[u8; 32]>,
}

impl StaticDefault for Provenance {
    fn static_default() -> &'static Self {
        static DEFAULT: Provenance = Provenance {
            names: Vec::new(),
            place: None,
        };
        &DEFAULT
    }
}

/// Problem in an executor's settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct PrepareError {
    /// JSON Pointer (RFC 6901) from the root of the settings. A loader adds line and column.
    pub pointer: String,
    /// Problem: a lower-case fragment.
    pub message: String,
    /// Hint: what to change.
    pub hint: Option<String>,
}

impl PrepareError {
    /// Creates a problem at a place in the settings.
    #[must_use]
    pub fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
