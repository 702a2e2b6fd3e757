//! Tools that are disabled in running gateways, by operators or because their credentials were refused.

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolplane::core::Tool;
use toolplane_gateway::OperatorClient;

use crate::{
    error::CliError,
    exit::Exit,
    gateways::{self, RunningGateway},
    output::{Console, text},
};

/// Record of a tool that a gateway has disabled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DisabledTool {
    /// Process id of the gateway.
    #[serde(default)]
    pub(super) gateway: String,
    #[serde(skip_serializing)]
    tool: String,
    /// SHA-256 of its definition in the gateway.
    #[serde(default, skip_serializing)]
    digest: Option<String>,
    pub(super) reason: String,
    pub(super) since: String,
    /// `operator` or `credentials`.
    #[serde(default)]
    by: String,
    /// Time until a probe call is let through; `None` if an operator disabled the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
}

/// Returns all disabled tools of running gateways. Empty if no gateway was reached, because a list of tools is useful
/// without them.
pub(super) async fn all(console: Console) -> Vec<DisabledTool> {
    let answers = gateways::ask(console, OperatorClient::disabled).await;
    let answers = answers.unwrap_or_default().into_iter();
    let all = answers.flat_map(|(gateway, records)| {
        records.into_iter().filter_map(move |record| {
            let disabled: DisabledTool = record.to().ok()?;
            let gateway = gateway.process();
            Some(DisabledTool { gateway, ..disabled })
        })
    });
    all.collect()
}

/// Selects the records of this tool. The digest is compared too: a tool of another configuration may have the same
/// name.
pub(super) fn for_tool(all: &[DisabledTool], tool: &Tool) -> Vec<DisabledTool> {
    let digest = raw_json::hex(tool.digest());
    let is_it = |one: &&DisabledTool| {
        *one.tool == **tool.name() && one.digest.as_ref().is_none_or(|one| *one == digest)
    };
    all.iter().filter(is_it).cloned().collect()
}

/// Warns that a tool is disabled, with the reason and how to enable it.
pub(super) fn warn(name: &str, disabled: &[DisabledTool], console: Console) {
    for one in disabled {
        let (reason, gateway) = (text::line(&one.reason), &one.gateway);
        console.warn(&format!(
            "`{name}` is disabled in the gateway {gateway} since {}: {reason}; `toolplane tools enable {name}` \
             enables it again",
            one.since
        ));
    }
}

/// Disables a tool in each gateway that has it.
pub(super) async fn disable(name: &str, reason: Option<&str>, console: Console) -> Result<Exit, CliError> {
    let answers = gateways::ask(console, async |client: OperatorClient| {
        client.disable(name, reason).await
    });
    if report("disabled", name, &answers.await?, console)? {
        return Ok(Exit::Done);
    }
    let message = format!("no gateway of this user that runs here has a tool `{name}`");
    let failure = CliError::new(Exit::NotFound, "not_found", message);
    Err(failure.with_hint("`toolplane tools ls` lists the names"))
}

/// Enables a tool in each gateway that has disabled it.
pub(super) async fn enable(name: &str, console: Console) -> Result<Exit, CliError> {
    let answers = gateways::ask(console, async |client: OperatorClient| client.enable(name).await);
    if report("enabled", name, &answers.await?, console)? {
        return Ok(Exit::Done);
    }
    let message = format!("no gateway of this user that runs here has disabled `{name}`");
    let failure = CliError::new(Exit::NotFound, "not_found", message);
    Err(failure.with_hint("`toolplane tools ls` shows disabled tools"))
}

/// Prints the gateways that changed the tool. Returns `false` if there are none.
fn report(
    verb: &str,
    name: &str,
    answers: &[(RunningGateway, ())],
    console: Console,
) -> Result<bool, CliError> {
    if answers.is_empty() {
        return Ok(false);
    }
    let gateways: Vec<_> = answers.iter().map(|(gateway, ())| gateway.process()).collect();
    let switched = json!({"tool": name, "gateways": gateways});
    console.value(&switched, || {
        format!("{verb} {name} in the gateway {}", gateways.join(", "))
    })?;
    Ok(true)
}
