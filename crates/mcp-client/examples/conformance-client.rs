//! Client under test of the official conformance suite, which starts it once per scenario.
//!
//! ```text
//! cargo build -p mcp-client --example conformance-client
//! conformance client --command target/debug/examples/conformance-client --requirements 2026-07-28
//! ```
//!
//! The last argument is the server's URL. `MCP_CONFORMANCE_SCENARIO` names the scenario,
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision to speak, `MCP_CONFORMANCE_CONTEXT` contains data of the scenario.

use std::{env, error::Error};

use mcp_client::{Connection, ConnectionOptions, EraChoice, Handlers, HttpEndpoint, RequestOptions};
use mcp_wire::{Era, Revision};
use raw_json::RawJson;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let url = env::args().next_back().filter(|url| url.starts_with("http"));
    let url = url.ok_or("give the URL of the server as the last argument")?;
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let options = ConnectionOptions::default()
        .client("conformance-client", "1.0.0")
        .era(era()?)
        .handlers(handlers(&scenario));
    let connection = Connection::http(&HttpEndpoint::new(&url)?, options).await?;
    match scenario.as_str() {
        "http-standard-headers" => everything(&connection).await?,
        "http-custom-headers" => calls_of_the_context(&connection).await?,
        "json-schema-2020-12-preservation" => echo_a_schema(&connection).await?,
        "sep-2322-client-request-state" => all_at_once(&connection).await?,
        _ => call_all_tools(&connection).await?,
    }
    connection.shutdown().await;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite speaks to its clients by variables"
)]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Era of the requested revision.
fn era() -> Result<EraChoice> {
    let Some(revision) = variable("MCP_CONFORMANCE_PROTOCOL_VERSION") else {
        return Ok(EraChoice::Auto);
    };
    Ok(match revision.parse::<Revision>()?.era() {
        Era::Legacy => EraChoice::Legacy,
        Era::Modern => EraChoice::Modern,
    })
}

/// Accepts the defaults of elicitations, has no roots, and no model.
fn handlers(scenario: &str) -> Handlers {
    if matches!(scenario, "initialize" | "sse-retry" | "tools_call") {
        return Handlers::new();
    }
    Handlers::new()
        .elicitation(RawJson::object(), |request| async move {
            let members = [
                ("action", RawJson::from("accept")),
                ("content", request.defaults()),
            ];
            Ok(RawJson::from_members(&members))
        })
        .roots(RawJson::object(), |_| async {
            let none = RawJson::from_serialize(&[0; 0]).expect("an empty list is JSON");
            Ok(RawJson::from_members(&[("roots", none)]))
        })
}

async fn call_all_tools(connection: &Connection) -> Result<()> {
    for tool in connection.list_tools().await? {
        let name = text(&tool, "name");
        let arguments = match name.as_str() {
            "add_numbers" => r#"{"a":5,"b":3}"#,
            "valid_tool" => r#"{"region":"us-east1"}"#,
            "lookup_user" => continue,
            _ => "{}",
        };
        call(connection, &name, RawJson::parse(arguments)?).await?;
    }
    Ok(())
}

/// Lists everything and gets every listed item.
async fn everything(connection: &Connection) -> Result<()> {
    call_all_tools(connection).await?;
    for resource in connection.list_resources().await? {
        let params = RawJson::from_members(&[("uri", RawJson::from(text(&resource, "uri").as_str()))]);
        let options = RequestOptions::default();
        connection
            .request("resources/read", Some(params), options)
            .await?;
    }
    for prompt in connection.list_prompts().await? {
        let params = RawJson::from_members(&[("name", RawJson::from(text(&prompt, "name").as_str()))]);
        let options = RequestOptions::default();
        connection.request("prompts/get", Some(params), options).await?;
    }
    Ok(())
}

async fn calls_of_the_context(connection: &Connection) -> Result<()> {
    connection.list_tools().await?;
    let context = variable("MCP_CONFORMANCE_CONTEXT").ok_or("the scenario has no context")?;
    let context = RawJson::parse(context)?;
    let calls = context.get("toolCalls").ok_or("the context has no `toolCalls`")?;
    for one in calls.items() {
        let arguments = one.get("arguments").unwrap_or(RawJson::object());
        call(connection, &text(&one, "name"), arguments).await?;
    }
    Ok(())
}

/// Sends the schema of a tool back unchanged.
async fn echo_a_schema(connection: &Connection) -> Result<()> {
    let tools = connection.list_tools().await?;
    let schema = tools.first().and_then(|tool| tool.get("inputSchema"));
    let arguments = RawJson::from_members(&[("schema", schema.ok_or("the first tool has no schema")?)]);
    call(connection, "json_schema_echo", arguments).await
}

/// Calls the tools concurrently: a request in one call must not reach another.
async fn all_at_once(connection: &Connection) -> Result<()> {
    let mut calls = Vec::new();
    for tool in connection.list_tools().await? {
        let (connection, name) = (connection.clone(), text(&tool, "name"));
        calls.push(tokio::spawn(async move {
            call(&connection, &name, RawJson::object())
                .await
                .map_err(|error| error.to_string())
        }));
    }
    for call in calls {
        call.await??;
    }
    Ok(())
}

async fn call(connection: &Connection, name: &str, arguments: RawJson) -> Result<()> {
    let params = RawJson::from_members(&[("name", RawJson::from(name)), ("arguments", arguments)]);
    let options = RequestOptions::default();
    connection
        .request_with_input("tools/call", Some(params), options)
        .await?;
    Ok(())
}

fn text(value: &RawJson, key: &str) -> String {
    value.get(key).and_then(|text| text.string()).unwrap_or_default()
}
