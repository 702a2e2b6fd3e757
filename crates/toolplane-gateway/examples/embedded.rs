//! The gateway inside a web server of your own: `GET /` is yours, `/mcp` is the toolplane's.

use std::error::Error;

use axum::{Router, routing::get};
use tokio::{net::TcpListener, signal::ctrl_c};
use toolplane::Toolplane;
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions};

const TOOLS: &str = "
tools:
  hello:
    description: Greets.
    input_schema: {type: object}
    executor: {kind: mock, result: {text: hello}}
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = Toolplane::from_yaml(TOOLS)?;
    let gateway = Gateway::new(plane.clone(), GatewayOptions::default());
    let options = HttpServerOptions::default();
    let notices = options.notifier.clone();
    let mcp = gateway.http_service(options);
    let router = Router::new()
        .route("/", get(|| async { "This page is mine." }))
        .route_service("/mcp", mcp.clone());
    let listener = TcpListener::bind("127.0.0.1:7080").await?;
    let shutdown = async move {
        let _ = ctrl_c().await;
        mcp.end_streams();
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(shutdown) => served?,
        () = gateway.announce(&notices) => {}
    }
    plane.shutdown().await;
    Ok(())
}
