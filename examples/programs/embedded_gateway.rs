//! The gateway inside a program with other routes: `/mcp` is a route of an axum router, behind the program's own login.
//!
//! The program ends when a client has made its calls over loopback; another one has `ctrl_c()` in that place. Run it with
//! `cargo run -p toolplane-examples --example embedded-gateway`.

use axum::{Router, extract::Request, middleware::map_request, routing::get, serve};
use toolplane_examples::visitor;
use toolplane_gateway::{Gateway, HttpServerOptions, Principal, toolplane::Toolplane};

// ANCHOR: main
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plane = Toolplane::from_yaml(include_str!("../data/greeting.yaml"))?;
    let options = HttpServerOptions::default().allow_host("tools.example.com");
    let mcp = Gateway::from(plane).embed(options.require_principal());
    let router = Router::new()
        .route("/", get(async || "this program also serves other things\n"))
        .route_service("/mcp", mcp.service())
        .layer(map_request(login));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let stop = mcp.stop_on(visitor::make_calls(listener.local_addr()?));
    serve(listener, router).with_graceful_shutdown(stop).await?;
    mcp.shutdown().await;
    Ok(())
}
// ANCHOR_END: main

// ANCHOR: login
/// Finds out who sent a request. One without a principal goes on to the other routes; `/mcp` refuses it.
async fn login(mut request: Request) -> Request {
    let token = request.headers().get("authorization");
    if token.is_some_and(|token| token == "Bearer of-ada") {
        request.extensions_mut().insert(Principal::new("ada"));
    }
    request
}
// ANCHOR_END: login
