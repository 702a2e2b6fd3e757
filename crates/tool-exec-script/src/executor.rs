use std::{fmt, sync::Arc};

use raw_json::RawJson;
use serde_json::Value;
use tool_core::{
    Descriptor, DynBackend, Executor, NoSecrets, PrepareError, Reach, SecretUse, Secrets, TaskSupport,
};
use tool_sandbox::Sandboxes;

use crate::{
    RequirementsError, ScriptOptions,
    backend::ScriptBackend,
    interpreter::Interpreter,
    plan::{LOCK_FILE, Plan},
    requirements::{Environments, LockedRequirements, resolve},
    run::WarmWorkers,
    settings::schema,
};

/// Language of a tool's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScriptLanguage {
    /// Bash, or another interpreter that reads a script.
    Bash,
    /// Python.
    Python,
}

/// Executor of tools with code in one language: kind `bash` or `python`.
///
/// Each call runs in a sandbox of its own, with an empty working directory, without network and with nothing of the gateway's
/// environment, unless the tool's settings say otherwise. The level of the sandbox is in the `_meta` of the reply: see
/// [`Reply::sandbox_level`](tool_core::Reply::sandbox_level).
///
/// # When a call counts as sent
/// A call is [`Sent`](tool_core::DispatchState::Sent) right before its process starts, and
/// [`Answered`](tool_core::DispatchState::Answered) when the process has ended by itself. A process that was stopped at its
/// time limit has not answered.
///
/// # Errors by end
///
/// | end | kind |
/// |---|---|
/// | exit code 64 or 65 (`EX_USAGE`, `EX_DATAERR`) | `invalid_arguments` |
/// | exit code 69 or 75 (`EX_UNAVAILABLE`, `EX_TEMPFAIL`) | `unavailable` |
/// | another exit code, a signal, an exception | `upstream_error` |
/// | more memory than the limit | `upstream_error`, never tried again |
/// | time limit | `timeout` |
/// | more output than the limit | `result_too_large` |
/// | arguments that are no parameters of `run` | `invalid_arguments` |
/// | output that is not what was declared | `protocol` |
/// | no sandbox on this machine | `unavailable`, never tried again |
///
/// # Examples
/// ```
/// use tool_core::{Descriptor, Executor, ExecutorSpec, serde_json::json};
/// use tool_exec_script::{ScriptLanguage, ScriptExecutor};
///
/// let executor = ScriptExecutor::new(ScriptLanguage::Bash, Default::default());
/// let settings = json!({"code": "echo \"Hello, $name\""});
/// let tool = Descriptor::new("greet", ExecutorSpec::new("bash").with_config(settings));
/// assert!(executor.prepare(&tool).is_ok());
/// ```
pub struct ScriptExecutor {
    language: ScriptLanguage,
    runtime: ScriptRuntime,
}

/// Parts that executors of several languages share: options, sandboxes, installed packages. Clones share them.
#[derive(Clone)]
pub struct ScriptRuntime {
    pub(crate) parts: Arc<RuntimeParts>,
}

pub(crate) struct RuntimeParts {
    pub(crate) options: ScriptOptions,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) environments: Arc<Environments>,
}

impl ScriptLanguage {
    /// All languages.
    pub const ALL: &'static [Self] = &[Self::Bash, Self::Python];

    /// Returns the kind of executor that runs it.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Python => "python",
        }
    }

    /// Returns the name of its usual interpreter.
    pub(crate) const fn interpreter(self) -> &'static str {
        self.kind()
    }

    /// Returns the file that is run by default.
    pub(crate) const fn entry_file(self) -> &'static str {
        match self {
            Self::Bash => "main.sh",
            Self::Python => "main.py",
        }
    }
}

impl ScriptRuntime {
    /// Creates a runtime. Nothing is started or looked for before its first use.
    #[must_use]
    pub fn new(options: ScriptOptions, secrets: Arc<dyn Secrets>) -> Self {
        let cache = options.package_cache.clone();
        let environments = Environments::new(cache, options.installer_variables.clone());
        Self {
            parts: Arc::new(RuntimeParts {
                options,
                secrets,
                sandboxes: Sandboxes::default(),
                environments: Arc::new(environments),
            }),
        }
    }

    /// Returns `true` if a tool requires no packages, or its file `requirements.lock` is usable and was made for just those.
    #[must_use]
    pub fn is_locked(descriptor: &Descriptor) -> bool {
        let requires = required(descriptor);
        let lock = descriptor.files.get(LOCK_FILE);
        requires.is_empty() || lock.is_some_and(|lock| LockedRequirements::parse(lock, &requires).is_ok())
    }

    /// Resolves the packages that a tool requires to versions and hashes, with uv or pip and the index that they are
    /// configured for. Returns the content of its file `requirements.lock`; `None` if it requires none.
    ///
    /// # Errors
    /// If the interpreter, uv or pip is missing, or a package cannot be resolved to a wheel.
    ///
    /// # Cancellation
    /// Dropping the future ends the installer. Nothing was changed.
    pub async fn lock(&self, descriptor: &Descriptor) -> Result<Option<String>, RequirementsError> {
        let requires = required(descriptor);
        if requires.is_empty() {
            return Ok(None);
        }
        let config = &descriptor.executor.config;
        let name = config.get("interpreter").and_then(|name| name.as_str());
        let name = name.unwrap_or(ScriptLanguage::Python.interpreter());
        let interpreter = Interpreter::named(name, &self.parts.options.interpreters);
        let interpreter = interpreter.map_err(|known| {
            RequirementsError::new(format!(
                "the interpreter `{name}` is not allowed here: there are {known}"
            ))
        })?;
        let python = interpreter.find().map_err(RequirementsError::new)?;
        let variables = &self.parts.options.installer_variables;
        resolve(&requires, &python.path, variables).await.map(Some)
    }
}

/// Returns the packages that a tool requires, as written.
fn required(descriptor: &Descriptor) -> Vec<String> {
    let requires = descriptor.executor.config.get("requires");
    let requires = requires.filter(|_| descriptor.executor.kind == ScriptLanguage::Python.kind());
    let requires = requires
        .and_then(|requires| requires.as_array())
        .into_iter()
        .flatten();
    requires
        .filter_map(|requirement| requirement.as_str().map(str::to_owned))
        .collect()
}

impl Default for ScriptRuntime {
    fn default() -> Self {
        Self::new(ScriptOptions::default(), Arc::new(NoSecrets))
    }
}

impl ScriptExecutor {
    /// Name of the file in which a tool keeps its locked packages: see [`ScriptRuntime::lock`].
    pub const LOCK_FILE: &'static str = LOCK_FILE;

    /// Creates the executor of a language.
    #[must_use]
    pub fn new(language: ScriptLanguage, runtime: ScriptRuntime) -> Self {
        Self { language, runtime }
    }
}

impl Executor for ScriptExecutor {
    fn kind(&self) -> &str {
        self.language.kind()
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let parts = self.runtime.parts.clone();
        let plan = Plan::compile(self.language, descriptor, &parts.options).map_err(|problems| problems.0)?;
        Ok(Arc::new(ScriptBackend {
            plan,
            runtime: parts,
            warm: Arc::new(WarmWorkers::default()),
        }))
    }

    /// Returns `true`: output is limited while it is read.
    fn bounds_results(&self) -> bool {
        true
    }

    /// A call that reports what the code writes may run in the background.
    fn task_support(&self, descriptor: &Descriptor) -> TaskSupport {
        match descriptor.executor.config.get("stream") {
            Some(_) => TaskSupport::Background,
            None => TaskSupport::None,
        }
    }

    /// Returns the secrets of the environment, which go to the code, and the hosts that the code may connect to.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let config = &descriptor.executor.config;
        let hosts: Vec<String> = config["network"].as_array().map_or_else(Vec::new, |hosts| {
            let hosts = hosts.iter().filter_map(Value::as_str);
            hosts.map(str::to_owned).collect()
        });
        let destination = format!("the code of a `{}` tool", self.kind());
        let reach = Reach::new(SecretUse::find(&config["env"], "/env", &destination)).with_hosts(hosts);
        let packages = config["requires"].as_array().into_iter().flatten();
        packages.filter_map(Value::as_str).fold(reach, |reach, package| {
            reach.with_other(format!("the package `{package}`"))
        })
    }

    fn config_schema(&self) -> RawJson {
        schema(self.language)
    }
}

impl fmt::Debug for ScriptExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptExecutor")
            .field("language", &self.language)
            .field("options", &self.runtime.parts.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ScriptRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptRuntime")
            .field("options", &self.parts.options)
            .finish_non_exhaustive()
    }
}
