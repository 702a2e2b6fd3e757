use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};
use tool_settings::{
    NetworkHosts, SandboxChoice,
    program::{LimitSettings, OutputFormat},
};

/// Settings of a `bash` tool: a script of Bash, or of another interpreter.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "BashTool")]
pub(crate) struct BashBody {
    /// The script. Arguments are in its environment and, as a JSON object, on its standard input; they are never part of its
    /// text.
    code: Option<String>,
    /// Another name for `code`.
    script: Option<String>,
    /// A file with the script, below the directory of this file.
    file: Option<String>,
    /// The file of `files` that is run; `main.sh` by default.
    entrypoint: Option<String>,
    /// Further files: a list of paths below the directory of this file, or a map from paths to texts. They are in the working
    /// directory of the script.
    files: Option<Files>,
    /// Name of the interpreter: `bash` by default, `sh`, or one of `interpreters` in `defaults`.
    interpreter: Option<String>,
    /// Form of the result: `text` by default, which is standard output without line breaks at its end; `json`; or `process`, an
    /// object with standard output as `stdout` and the exit code as `exit_code`, which then is no failure.
    output: Option<ScriptOutput>,
    /// Form in which lines of standard output are reported as progress while the script runs: `text` for plain lines, or
    /// `ndjson` for lines of JSON, whose list is then the result.
    stream: Option<ScriptStream>,
    /// Names of the variables of arguments, by parameter, such as `{query: TOOL_QUERY}`. Without an entry, a variable has the
    /// name of its parameter.
    variables: BTreeMap<String, String>,
    /// Error kinds by exit code, such as `{3: not_found}`. Without an entry, 64 and 65 are `invalid_arguments`, 69 and 75
    /// `unavailable`, and other codes than 0 `upstream_error`.
    exit_codes: BTreeMap<String, String>,
    /// Limits of each run.
    limits: LimitSettings,
    /// Network access: `off` by default, or a list of hosts such as `api.example.com` and `*.example.com:8443`.
    network: NetworkHosts,
    /// Absolute paths of this machine that the code may read, under the same paths. Only for a file of the operator.
    reads: Vec<PathBuf>,
    /// Absolute paths of this machine that the code may read and write. Their size is not limited. Only for a file of the
    /// operator.
    writes: Vec<PathBuf>,
    /// Environment variables of the script. Values may refer to secrets by `${…}`.
    env: BTreeMap<String, String>,
    /// Level of the sandbox: the strongest that works here by default; `bwrap` or `landlock` for exactly that one. `none` runs
    /// the code without a sandbox, and is only accepted in a file of the operator.
    sandbox: SandboxChoice,
}

/// Settings of a `python` tool: a function `run`, which gets the arguments by their names and returns the result, or a
/// program that reads the arguments as JSON from its standard input and writes its result to standard output.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PythonTool")]
pub(crate) struct PythonBody {
    /// The code.
    code: Option<String>,
    /// Another name for `code`.
    script: Option<String>,
    /// A file with the code, below the directory of this file.
    file: Option<String>,
    /// The file of `files` that has the function; `main.py` by default.
    entrypoint: Option<String>,
    /// Further files, which the code can import: a list of paths below the directory of this file, or a map from paths to
    /// texts.
    files: Option<Files>,
    /// Packages that the code imports, such as `httpx` or `httpx>=0.28`. `toolplane lock` and `toolplane tools publish`
    /// resolve them once; exactly the locked files are installed, and only wheels.
    requires: Vec<String>,
    /// Name of the interpreter: `python` by default, or one of `interpreters` in `defaults`.
    interpreter: Option<String>,
    /// Form of what a program without a function `run` writes: `text` by default, or `json`.
    output: Option<OutputFormat>,
    /// Form in which lines of standard output are reported as progress while the code runs: `text` for plain lines, or
    /// `ndjson` for lines of JSON, whose list is then the result. The result of a function
    /// `run` is what it returns, and the lines are those that it prints.
    stream: Option<ScriptStream>,
    /// Declares that loading the code has no effect, so that an interpreter can load it before a call comes. Each
    /// interpreter answers one call.
    stateless: bool,
    /// Limits of each run.
    limits: LimitSettings,
    /// Network access: `off` by default, or a list of hosts such as `api.example.com` and `*.example.com:8443`.
    network: NetworkHosts,
    /// Absolute paths of this machine that the code may read, under the same paths. Only for a file of the operator.
    reads: Vec<PathBuf>,
    /// Absolute paths of this machine that the code may read and write. Their size is not limited. Only for a file of the
    /// operator.
    writes: Vec<PathBuf>,
    /// Environment variables of the code. Values may refer to secrets by `${…}`.
    env: BTreeMap<String, String>,
    /// Level of the sandbox: the strongest that works here by default; `bwrap` or `landlock` for exactly that one. `none` runs
    /// the code without a sandbox, and is only accepted in a file of the operator.
    sandbox: SandboxChoice,
}

/// Settings of either kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) code: Option<String>,
    pub(crate) script: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) entrypoint: Option<String>,
    pub(crate) files: Option<Files>,
    pub(crate) requires: Vec<String>,
    pub(crate) interpreter: Option<String>,
    pub(crate) output: Option<ScriptOutput>,
    pub(crate) stream: Option<ScriptStream>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) exit_codes: BTreeMap<String, String>,
    pub(crate) stateless: bool,
    pub(crate) limits: LimitSettings,
    pub(crate) network: NetworkHosts,
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) sandbox: SandboxChoice,
}

/// Files beside the code: read from the directory of the manifest, or written in it.
#[derive(Debug, Clone)]
pub(crate) enum Files {
    /// Paths of files that the loader reads.
    Listed,
    /// Texts by path.
    Written(BTreeMap<String, String>),
}

/// Form of the result of a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptOutput {
    /// Text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Standard output and exit code.
    Process,
}

/// Form of lines that are reported while code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptStream {
    /// Plain lines.
    Text,
    /// Lines of JSON.
    Ndjson,
}

impl ScriptOutput {
    /// Returns the form of standard output alone.
    pub(crate) fn format(self) -> OutputFormat {
        match self {
            Self::Json => OutputFormat::Json,
            Self::Text | Self::Process => OutputFormat::Text,
        }
    }
}

impl From<OutputFormat> for ScriptOutput {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Json => Self::Json,
            _ => Self::Text,
        }
    }
}

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Listed(#[expect(dead_code, reason = "the loader reads them")] Vec<String>),
            Written(BTreeMap<String, String>),
        }
        match Form::deserialize(deserializer) {
            Ok(Form::Listed(_)) => Ok(Self::Listed),
            Ok(Form::Written(texts)) => Ok(Self::Written(texts)),
            Err(_) => Err(D::Error::custom(
                "expected a list of paths, or a map from paths to texts",
            )),
        }
    }
}

impl JsonSchema for Files {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Files".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["array", "object"],
            "items": {"type": "string"},
            "additionalProperties": {"type": "string"},
        })
    }
}

impl From<BashBody> for Body {
    fn from(body: BashBody) -> Self {
        Self {
            code: body.code,
            script: body.script,
            file: body.file,
            entrypoint: body.entrypoint,
            files: body.files,
            interpreter: body.interpreter,
            output: body.output,
            stream: body.stream,
            variables: body.variables,
            exit_codes: body.exit_codes,
            limits: body.limits,
            network: body.network,
            reads: body.reads,
            writes: body.writes,
            env: body.env,
            sandbox: body.sandbox,
            ..Self::default()
        }
    }
}

impl From<PythonBody> for Body {
    fn from(body: PythonBody) -> Self {
        Self {
            code: body.code,
            script: body.script,
            file: body.file,
            entrypoint: body.entrypoint,
            files: body.files,
            requires: body.requires,
            interpreter: body.interpreter,
            output: body.output.map(ScriptOutput::from),
            stream: body.stream,
            stateless: body.stateless,
            limits: body.limits,
            network: body.network,
            reads: body.reads,
            writes: body.writes,
            env: body.env,
            sandbox: body.sandbox,
            ..Self::default()
        }
    }
}
