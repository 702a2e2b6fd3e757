use std::{
    collections::HashMap,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use raw_json::hex;
use tool_core::{CallContext, Invoke, Layer, NamedLayer, Outcome, Target, Tool, ToolError, rfc3339};

use super::files::{CALLS, RecordedCall, RecordingError, TOOLS, without_secrets, write};

/// Records calls of tools into files: arguments, results, times and errors, without secrets.
///
/// Each call is one file with a number, written when the call ends, and each tool one file with its definition. Calls that wait are
/// recorded when they are made again and end. Calls that others lead to, as steps of workflows, candidates of routes and fallbacks, are
/// part of those and have no file.
///
/// # Order
/// Inside of admission and validation, outside of whatever answers, repeats or delays calls: `Place::Call` of a toolplane.
#[derive(Clone)]
pub struct RecordLayer(Arc<Recorder>);

struct Recorder {
    folder: PathBuf,
    n_calls: AtomicU32,
    /// Digest of the recorded definition of each tool.
    defined: Mutex<HashMap<Arc<str>, [u8; 32]>>,
}

/// Service of [`RecordLayer`].
#[derive(Debug, Clone)]
pub struct Record<S> {
    layer: RecordLayer,
    inner: S,
}

impl RecordLayer {
    /// Begins a recording in a directory, which is made.
    ///
    /// # Errors
    /// If there is a recording already, or the directory cannot be written.
    pub fn begin(folder: &Path) -> Result<Self, RecordingError> {
        for name in [TOOLS, CALLS] {
            let inner = folder.join(name);
            if fs::read_dir(&inner).is_ok_and(|mut entries| entries.next().is_some()) {
                let problem = "there is a recording already; remove it, or name another directory";
                return Err(RecordingError::new(folder, problem));
            }
            fs::create_dir_all(&inner).map_err(|error| RecordingError::io(&inner, &error))?;
        }
        Ok(Self(Arc::new(Recorder {
            folder: folder.to_owned(),
            n_calls: AtomicU32::new(0),
            defined: Mutex::default(),
        })))
    }
}

impl Recorder {
    /// Writes the definition of a tool, unless it was written.
    fn define(&self, tool: &Tool) -> Result<(), RecordingError> {
        let digest = *tool.digest();
        let is_new = match self.defined.lock() {
            Ok(mut defined) => defined.insert(tool.name().clone(), digest) != Some(digest),
            Err(_) => true,
        };
        if !is_new {
            return Ok(());
        }
        let folder = self.folder.join(TOOLS);
        let path = folder.join(format!("{}.json", tool.name()));
        // A definition that changes meanwhile has a file of its own.
        let path = match path.exists() {
            true => folder.join(format!("{}.{}.json", tool.name(), &hex(&digest)[..8])),
            false => path,
        };
        write(&path, &(tool.definition().indented() + "\n"))
    }

    fn record(
        &self,
        cx: &CallContext,
        number: u32,
        at: &str,
        start: tool_core::Instant,
        call: &RecordedCall,
    ) -> Result<(), RecordingError> {
        self.define(cx.tool())?;
        let name = format!("{number:06}-{}.json", cx.tool().name());
        let took = cx.clock.now().since(start);
        let content = call.to_text(&cx.origin.caller.principal, at, took);
        write(&self.folder.join(CALLS).join(name), &content)
    }
}

impl NamedLayer for RecordLayer {
    const NAME: &'static str = "record";
}

impl<S> Layer<S> for RecordLayer {
    type Invoke = Record<S>;

    fn layer(self, inner: S) -> Record<S> {
        Record { layer: self, inner }
    }
}

impl<S: Invoke> Invoke for Record<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let is_inner = cx.called_from.is_some() || cx.fallback_of.is_some();
        if is_inner || cx.is_dry_run() || !matches!(cx.target, Target::Tool(_)) {
            return self.inner.invoke(cx).await;
        }
        let recorder = &self.layer.0;
        let number = recorder.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (at, start) = (rfc3339(cx.clock.wall()), cx.clock.now());
        let result = self.inner.invoke(cx).await;
        let ended = match &result {
            Ok(Outcome::Reply(reply)) => Ok(reply.clone()),
            Err(error) => Err(error.clone()),
            Ok(_) => return result,
        };
        let hidden = cx.tool().settings().redacted_fields().to_vec();
        let call = RecordedCall {
            tool: cx.tool().name().to_string(),
            definition: hex(cx.tool().digest()),
            arguments: without_secrets(cx, &hidden),
            hidden,
            result: ended,
        };
        if let Err(error) = recorder.record(cx, number, &at, start, &call) {
            tracing::warn!(%error, "a call is not recorded");
        }
        result
    }
}

impl fmt::Debug for RecordLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordLayer")
            .field("folder", &self.0.folder)
            .finish_non_exhaustive()
    }
}
