//! rmcp, the official SDK.

use std::env;

use anyhow::{Context as _, Result, ensure};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _, RoleClient,
    model::{CallToolRequestParams, ClientConfig, JsonObject, ProtocolVersion},
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::process::Command;

use crate::client::{Client, Way};

pub struct Rmcp(RunningService<RoleClient, ClientConfig>);

impl Rmcp {
    pub async fn open(way: Way, server: &str, pooled: bool) -> Result<Self> {
        let mut config = ClientConfig::default();
        // Its own default offers a revision in `initialize` that has no `initialize`.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let lifecycle = match way {
            Way::HttpJson => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::LATEST],
            },
            _ => ClientLifecycleMode::Initialize,
        };
        if way == Way::Stdio {
            let mut command = Command::new(env::current_exe()?);
            command.arg("serve-stdio");
            let transport = TokioChildProcess::new(command)?;
            return Ok(Self(config.serve_with_lifecycle(transport, lifecycle).await?));
        }
        let mut http = StreamableHttpClientTransportConfig::with_uri(server);
        // What rmcp makes by itself, without the proxies of the environment.
        let mut client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        if pooled {
            http = http.max_concurrent_requests(64);
            client = client.tcp_nodelay(true);
        } else {
            client = client.pool_max_idle_per_host(0);
        }
        let transport = StreamableHttpClientTransport::with_client(client.build()?, http);
        Ok(Self(config.serve_with_lifecycle(transport, lifecycle).await?))
    }
}

impl Client for Rmcp {
    async fn call(&self, payload: String) -> Result<()> {
        let arguments = JsonObject::from_iter([("payload".to_owned(), payload.clone().into())]);
        let call = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = self.0.call_tool(call).await?;
        let text = result.content.first().and_then(|content| content.as_text());
        ensure!(
            text.context("the answer has no text")?.text == payload,
            "the answer is about another call"
        );
        Ok(())
    }
}
