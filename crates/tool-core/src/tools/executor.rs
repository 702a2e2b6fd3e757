use std::sync::Arc;

use raw_json::RawJson;

use crate::{Descriptor, DynBackend, Settings};

/// A primitive that runs tools: it turns a descriptor's settings into something that can be called.
pub trait Executor: Send + Sync {
    /// What descriptors name it by, such as `http`.
    fn kind(&self) -> &str;

    /// Makes a tool ready to be called. It reads and checks the settings, and does no I/O: connections and
    /// processes start with the first call.
    ///
    /// # Errors
    /// When the settings are not usable; every problem that was found, each with its place.
    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>>;

    /// What runs the tool that other tools depend on as well: a server's name, or scheme and host of an API. Limits and
    /// breakers of an upstream hold for all of its tools.
    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let _ = descriptor;
        None
    }

    /// Where the tool comes from, as far as its descriptor does not say: nothing for one whose descriptor says all of it.
    fn provenance(&self, descriptor: &Descriptor) -> Provenance {
        let _ = descriptor;
        Provenance::default()
    }

    /// Whether the tool's settings say how the idempotency key of a call is passed on to what runs it, and the operator
    /// wrote them: only then may a call that may have run be made again under its key.
    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let _ = descriptor;
        false
    }

    /// Whether it bounds the size of results itself while it reads them. Otherwise a result is measured when it is there: see
    /// [`Settings::max_result_bytes`].
    fn bounds_results(&self) -> bool {
        false
    }

    /// What of a tool's executor settings never has an effect beside the settings that hold for all kinds of tools: each with
    /// its place and what to change. It does not keep the tool from being used.
    fn warnings(&self, descriptor: &Descriptor, settings: &Settings) -> Vec<PrepareError> {
        let _ = (descriptor, settings);
        Vec::new()
    }

    /// The JSON Schema of its settings, for editors and the reference.
    fn config_schema(&self) -> RawJson;
}

/// What an [`Executor`] knows of where a tool comes from, and the tool's descriptor does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Other names of the same tool: the one that it would have if nobody had renamed it, and the one under which its server's
    /// list shows it. Policy rules that speak of one of them speak of the tool.
    pub names: Vec<Arc<str>>,
    /// A SHA-256 of where it runs as the operator wrote it, such as a server's URL: what was approved there was not approved
    /// elsewhere. References to secrets are part of it, their values are not.
    pub place: Option<[u8; 32]>,
}

/// A problem in an executor's settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PrepareError {
    /// Where in the settings, as a JSON Pointer (RFC 6901) from their root: a loader knows line and column.
    pub pointer: String,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl PrepareError {
    /// A problem at a place in the settings.
    #[must_use]
    pub fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    /// The same problem with what to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
