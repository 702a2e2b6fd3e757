//! `mcp_client` with rmcp: `mcp_client SERVER [ARGUMENTS]`.

use std::{env, error::Error};

use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, Implementation, ProgressNotificationParam,
    },
    object,
    service::{NotificationContext, RequestContext},
    transport::TokioChildProcess,
};
use serde_json::json;
use tokio::process::Command;

struct Desk;

impl ClientHandler for Desk {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("desk", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"seat": "window"})))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        println!("progress {}", progress.progress);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let mut command = Command::new(words.next().ok_or("usage: mcp_client SERVER [ARGUMENTS]")?);
    command.args(words);
    let client = Desk.serve(TokioChildProcess::new(command)?).await?;
    for tool in client.list_all_tools().await? {
        println!("{}", tool.name);
    }
    for (name, arguments) in [
        ("add", object!({"a": 2, "b": 40})),
        ("count", object!({"to": 3})),
        ("book", object!({"flight": "DY 620"})),
    ] {
        let request = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = client.call_tool(request).await?;
        let text = result.content.iter().filter_map(|block| block.as_text());
        println!("{name}: {}", text.map(|block| &*block.text).collect::<String>());
    }
    client.cancel().await?;
    Ok(())
}
