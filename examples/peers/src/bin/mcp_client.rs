//! `mcp_client` with rmcp: `mcp_client SERVER`.

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
    let command = Command::new(env::args().nth(1).ok_or("usage: mcp_client SERVER")?);
    let client = Desk.serve(TokioChildProcess::new(command)?).await?;
    for tool in client.list_all_tools().await? {
        println!("{}", tool.name);
    }
    let flight = object!({"flight": "DY 620"});
    let request = CallToolRequestParams::new("book").with_arguments(flight);
    let result = client.call_tool(request).await?;
    let texts = result.content.iter().filter_map(|block| block.as_text());
    println!("{}", texts.map(|block| &*block.text).collect::<String>());
    client.cancel().await?;
    Ok(())
}
