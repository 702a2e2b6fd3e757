//! `mcp_server` with rmcp: `mcp_server` on stdio, `mcp_server 127.0.0.1:0` on HTTP.

use std::{env, error::Error};

use axum::Router;
use rmcp::{
    Peer, RoleServer, ServiceExt,
    handler::server::wrapper::Parameters,
    model::{ProgressNotificationParam, RequestMetaObject},
    schemars::{self, JsonSchema},
    serde::Deserialize,
    tool, tool_router,
    transport::{StreamableHttpService, stdio, streamable_http_server::session::local::LocalSessionManager},
};
use tokio::net::TcpListener;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u32,
}

struct Desk;

#[tool_router(server_handler)]
impl Desk {
    #[tool(description = "Adds two numbers.")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Counts, step by step.")]
    async fn count(
        &self,
        Parameters(Count { to }): Parameters<Count>,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
    ) -> String {
        if let Some(token) = meta.get_progress_token() {
            for step in 1..=to {
                let progress = ProgressNotificationParam::new(token.clone(), step.into());
                let _ = client.notify_progress(progress.with_total(to.into())).await;
            }
        }
        format!("counted to {to}")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(address) = env::args().nth(1) else {
        Desk.serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let sessions = LocalSessionManager::default().into();
    let service = StreamableHttpService::new(|| Ok(Desk), sessions, Default::default());
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
