//! `embedded_gateway` with rmcp and axum.

mod tools;

use std::error::Error;

use axum::{
    Router,
    extract::Request,
    http::StatusCode,
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::never::NeverSessionManager,
};
use tokio::net::TcpListener;
use toolplane_peers::visitor;

use crate::tools::Tools;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(["tools.example.com"])
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let stop = config.cancellation_token.clone();
    let mcp = StreamableHttpService::new(|| Ok(Tools), NeverSessionManager::default().into(), config);
    let router = Router::new()
        .nest_service("/mcp", mcp)
        .layer(middleware::from_fn(login))
        .route("/", get(async || "this program also serves other things\n"));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let visited = visitor::make_calls(listener.local_addr()?);
    let stopped = async move {
        visited.await;
        stop.cancel();
    };
    axum::serve(listener, router)
        .with_graceful_shutdown(stopped)
        .await?;
    Ok(())
}

/// Refuses requests of unknown users.
async fn login(request: Request, next: Next) -> Result<Response, StatusCode> {
    let token = request.headers().get("authorization");
    if token.is_none_or(|token| token != "Bearer of-ada") {
        return Err(StatusCode::UNAUTHORIZED);
    }
    Ok(next.run(request).await)
}
