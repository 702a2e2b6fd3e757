//! Meta-tools by which agents make tools: tools of their own that pass the whole stack.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use raw_json::RawJson;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tool_core::{
    ApprovalSubject, Backend, CallContext, Descriptor, DynBackend, ErrorKind, Executor, ExecutorSpec, Invoke,
    Outcome, PrepareError, RateLimitSettings, Reach, Reply, SecretUse, ToolError,
};
use tool_manifest::AuthoringSpec;
use tool_policy::ApprovalRule;
use tool_registry::semver::Version;

use super::{Authoring, AuthoringError, DraftMode, DraftReport, DraftRequest};
use crate::calls::reentry::LateToolplane;

/// Name of the source of the meta-tools. No server has it: names of servers have no space.
pub(crate) const SOURCE: &str = "tool authoring";
/// Kind of their executor.
const KIND: &str = AuthoringSpec::KIND;
/// Factor by which all principals together may test more often than one.
const ALL_PRINCIPALS: u32 = 1000;

const CREATE: &str = "Stores a draft of a new tool. You alone can see it; test it by `tool_test` and publish it by `tool_publish`. Every problem is reported at once, with what to write instead.";
const UPDATE: &str = "Stores a draft of another version of a tool that you made, or replaces your draft. A change that breaks callers needs the next major version.";
const TEST: &str =
    "Calls a draft or version of a tool that you made: all of its examples, or once with these arguments.";
const PUBLISH: &str = "Publishes your draft, after its examples have succeeded. Other agents can then find and call the tool. A person may have to approve it: call again once that is done.";
const ROLLBACK: &str = "Makes a former version of a tool that you made the latest one again.";
const DELETE: &str = "Deletes a draft of yours. Published versions stay.";

const DRAFT_SCHEMA: &str = r#"{"type":"object","properties":{"manifest":{"type":"object","description":"The tool, in one of two forms. `{\"tool_id\", \"tool_type\": \"python\"|\"bash\"|\"api\"|\"docker\"|\"mcp\", \"version\", \"description\", \"executor_config\": {..}, \"parameters\": [{\"name\", \"type\", \"required\", \"description\"}], \"examples\": [..]}`, or `{\"apiVersion\": \"toolplane.dev/v1\", \"kind\": \"Tool\", \"metadata\": {\"name\"}, \"spec\": {\"description\", \"input_schema\", \"executor\": {\"kind\", ..}, \"examples\": [..]}}`. An example is a sentence for which the tool is the answer, or a call `{\"arguments\": {..}, \"result\": ..}` (or `shape`, a JSON Schema, or `error`, a kind) that tests it"},"files":{"type":"object","additionalProperties":{"type":"string"},"description":"Texts of files by their relative paths, such as `{\"main.py\": \"..\"}`: the code of a `python` or `bash` tool"},"version":{"type":"string","description":"Semantic version, if the manifest has none; 1.0.0 for a new tool"}},"required":["manifest"],"additionalProperties":false}"#;
const TEST_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name of the tool"},"version":{"type":"string","description":"Its version; your newest draft by default"},"arguments":{"type":"object","description":"Arguments of one call, instead of the examples"}},"required":["name"],"additionalProperties":false}"#;
const VERSION_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name of the tool"},"version":{"type":"string","description":"Version of the draft; your newest one by default"}},"required":["name"],"additionalProperties":false}"#;
const ROLLBACK_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name of the tool"},"to":{"type":"string","description":"Former version; the one before the latest by default"}},"required":["name"],"additionalProperties":false}"#;

/// Operation of a meta-tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Update,
    Test,
    Publish,
    Rollback,
    Delete,
}

impl Operation {
    const ALL: [Self; 6] = [
        Self::Create,
        Self::Delete,
        Self::Publish,
        Self::Rollback,
        Self::Test,
        Self::Update,
    ];

    /// Returns name, description and schema of the meta-tool.
    const fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Create => ("tool_create", CREATE, DRAFT_SCHEMA),
            Self::Update => ("tool_update", UPDATE, DRAFT_SCHEMA),
            Self::Test => ("tool_test", TEST, TEST_SCHEMA),
            Self::Publish => ("tool_publish", PUBLISH, VERSION_SCHEMA),
            Self::Rollback => ("tool_rollback", ROLLBACK, ROLLBACK_SCHEMA),
            Self::Delete => ("tool_delete", DELETE, VERSION_SCHEMA),
        }
    }

    /// Returns `true` if everyone sees the change, so that it needs a permission or an approval.
    const fn is_public(self) -> bool {
        matches!(self, Self::Publish | Self::Rollback)
    }
}

/// Returns the meta-tools, if the configuration offers them.
pub(crate) fn descriptors(spec: &AuthoringSpec) -> Vec<Arc<Descriptor>> {
    if !spec.enabled {
        return Vec::new();
    }
    Operation::ALL
        .into_iter()
        .map(|operation| Arc::new(descriptor(operation, spec)))
        .collect()
}

fn descriptor(operation: Operation, spec: &AuthoringSpec) -> Descriptor {
    let (name, description, schema) = operation.texts();
    let mut descriptor = Descriptor::new(name, ExecutorSpec::new(KIND));
    description.clone_into(&mut descriptor.description);
    descriptor.input_schema = RawJson::parse(schema.to_owned()).expect("the text is JSON");
    descriptor.metadata.required_permissions = vec![AuthoringSpec::CREATE.to_owned()];
    if operation == Operation::Test {
        let n_tests = spec.quotas.tests_per_hour;
        let mut limit =
            RateLimitSettings::new(n_tests.saturating_mul(ALL_PRINCIPALS), Duration::from_secs(3600));
        limit.per_principal = Some(n_tests);
        descriptor.metadata.rate_limit = Some(limit);
    }
    if operation.is_public() {
        let rule = ApprovalRule::UnlessPermitted(AuthoringSpec::PUBLISH);
        descriptor.overrides = std::mem::take(&mut descriptor.overrides).with(rule);
    }
    descriptor
}

/// Executor of the meta-tools.
pub(crate) struct AuthoringExecutor(pub(crate) Arc<LateToolplane>);

impl Executor for AuthoringExecutor {
    fn kind(&self) -> &str {
        KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let mut operations = Operation::ALL.into_iter();
        let operation = operations.find(|operation| operation.texts().0 == &*descriptor.name);
        let Some(operation) = operation else {
            return Err(vec![PrepareError::at(
                "/kind",
                "this kind is for the meta-tools of toolplane",
            )]);
        };
        Ok(Arc::new(AuthoringBackend {
            operation,
            plane: self.0.clone(),
        }))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from(json!({"type": "object", "additionalProperties": false}))
    }
}

struct AuthoringBackend {
    operation: Operation,
    plane: Arc<LateToolplane>,
}

#[derive(Deserialize)]
struct DraftArguments {
    manifest: RawJson,
    #[serde(default)]
    files: BTreeMap<String, String>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct TargetArguments {
    name: String,
    version: Option<String>,
    to: Option<String>,
    arguments: Option<RawJson>,
}

impl TargetArguments {
    fn version(&self) -> Result<Option<Version>, ToolError> {
        let written = self.version.as_deref().or(self.to.as_deref());
        let version = written.map(Version::parse).transpose();
        version.map_err(|_| {
            let message = "this is no semantic version; write three numbers, such as `1.0.0`";
            ToolError::new(ErrorKind::InvalidArguments, message)
        })
    }
}

impl AuthoringBackend {
    fn authoring(&self) -> Result<Authoring, ToolError> {
        let authoring = self.plane.plane()?.authoring();
        authoring.ok_or_else(|| {
            let message =
                "agents cannot make tools here: there is no store, or `authoring.enabled` is not set";
            ToolError::new(ErrorKind::Unavailable, message).with_no_retry()
        })
    }

    async fn run(&self, cx: &CallContext) -> Result<Reply, RunError> {
        let authoring = self.authoring()?;
        let caller = cx.origin.caller.clone();
        let value = match self.operation {
            Operation::Create | Operation::Update => {
                let arguments: DraftArguments = arguments(cx)?;
                let mut request = DraftRequest::new(arguments.manifest);
                for (path, content) in arguments.files {
                    request = request.file(path, content);
                }
                if let Some(version) = arguments.version {
                    request = request.version(version);
                }
                let mode = match self.operation {
                    Operation::Create => DraftMode::Create,
                    _ => DraftMode::Update,
                };
                draft_value(&authoring.create(&caller, request, mode).await?)
            }
            Operation::Test => {
                let target: TargetArguments = arguments(cx)?;
                let version = target.version()?;
                let report = authoring
                    .test(&caller, &target.name, version.as_ref(), target.arguments)
                    .await?;
                return Ok(match report.is_passed() {
                    true => Reply::value(report.to_json()),
                    false => failed(report.to_json()),
                });
            }
            Operation::Publish => {
                let target: TargetArguments = arguments(cx)?;
                let version = target.version()?;
                let approved = cx.extras.approved_subject;
                let published = authoring
                    .publish_approved(&caller, &target.name, version.as_ref(), approved)
                    .await?;
                json!({
                    "tool": &*published.tool,
                    "version": published.version.to_string(),
                    "state": published.state.as_str(),
                    "latest": published.latest.map(|latest| latest.to_string()),
                    "digest": raw_json::hex(&published.digest),
                    "change": published.change.phrase(),
                })
            }
            Operation::Rollback => {
                let target: TargetArguments = arguments(cx)?;
                let to = target.version()?;
                let latest = authoring
                    .roll_back_approved(&caller, &target.name, to.as_ref())
                    .await?;
                json!({"tool": target.name, "latest": latest.to_string()})
            }
            Operation::Delete => {
                let target: TargetArguments = arguments(cx)?;
                let version = target.version()?;
                let deleted = authoring.delete(&caller, &target.name, version.as_ref()).await?;
                json!({"tool": target.name, "deleted": deleted.to_string()})
            }
        };
        Ok(Reply::from(value))
    }
}

/// Error of an operation.
enum RunError {
    Authoring(AuthoringError),
    Call(ToolError),
}

impl From<AuthoringError> for RunError {
    fn from(error: AuthoringError) -> Self {
        Self::Authoring(error)
    }
}

impl From<ToolError> for RunError {
    fn from(error: ToolError) -> Self {
        Self::Call(error)
    }
}

/// Returns the reply of a tool that failed.
fn failed(report: RawJson) -> Reply {
    let mut reply = Reply::value(report);
    reply.is_error = true;
    reply
}

impl Invoke for AuthoringBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let dispatch = cx.dispatch().clone();
        dispatch.sent();
        let result = self.run(cx).await;
        dispatch.answered();
        match result {
            Ok(reply) => Ok(Outcome::Reply(reply)),
            Err(RunError::Call(error)) => Err(error),
            Err(RunError::Authoring(error)) => match error.report() {
                Some(report) => Ok(Outcome::Reply(failed(report))),
                None => Err(error.into()),
            },
        }
    }
}

impl Backend for AuthoringBackend {
    async fn approval_subject(&self, cx: &CallContext) -> Result<Option<ApprovalSubject>, ToolError> {
        if self.operation != Operation::Publish {
            return Ok(None);
        }
        let target: TargetArguments = arguments(cx)?;
        let version = target.version()?;
        let authoring = self.authoring()?;
        let caller = &cx.origin.caller;
        Ok(Some(
            authoring.subject(caller, &target.name, version.as_ref()).await?,
        ))
    }
}

fn arguments<T: DeserializeOwned>(cx: &CallContext) -> Result<T, ToolError> {
    let arguments = cx.arguments.raw().to();
    arguments.map_err(|error| ToolError::new(ErrorKind::InvalidArguments, error.to_string()))
}

/// Returns a stored draft as an agent reads it.
pub(crate) fn draft_value(draft: &DraftReport) -> Value {
    let uses = |uses: &[SecretUse]| -> Vec<Value> {
        uses.iter()
            .map(|needed| json!({"secret": needed.secret, "field": needed.field, "destination": needed.destination}))
            .collect()
    };
    let hosts = |reach: &Reach| reach.hosts.iter().cloned().collect::<Vec<_>>();
    let next = match (&draft.proposed_server, draft.ungranted.is_empty()) {
        (Some(server), _) => format!(
            "an operator must approve the server `{server}` by `toolplane servers approve {server}`; then test it by `tool_test`"
        ),
        (None, false) => format!(
            "an operator must grant the secrets by `toolplane secrets grant {}@{} --all`; then test it by `tool_test`",
            draft.tool, draft.version
        ),
        (None, true) => "test it by `tool_test`, then publish it by `tool_publish`".to_owned(),
    };
    json!({
        "tool": &*draft.tool,
        "version": draft.version.to_string(),
        "state": "draft",
        "new": draft.is_new,
        "digest": raw_json::hex(&draft.digest),
        "hosts": draft.reach.as_ref().map(hosts),
        "ungranted_secrets": uses(&draft.ungranted),
        "proposed_server": draft.proposed_server,
        "warnings": draft.warnings,
        "next": next,
    })
}
