//! Echo server without a transport: one message in, at most one out, both eras.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Era of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}}"#;
const TOOLS: &str = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"payload":{"type":"string"}}}}]}"#;

/// Response of a server to a message, or `None` for a notification.
pub fn answer(message: &[u8], era: Era) -> Option<String> {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else {
        return Some(failure("null", -32700));
    };
    let id = message.id?.get();
    Some(match (message.method.as_deref()?, era) {
        ("tools/call", _) => match message.params.and_then(|params| params.arguments) {
            Some(arguments) => echo(id, arguments.payload.get()),
            None => failure(id, -32602),
        },
        ("tools/list", _) => success(id, TOOLS),
        ("initialize", Era::Legacy) => success(id, INITIALIZED),
        ("server/discover", Era::Modern) => success(id, DISCOVERED),
        ("ping", _) => success(id, "{}"),
        _ => failure(id, -32601),
    })
}

/// Response with this id that contains this text, which is JSON already.
fn echo(id: &str, text: &str) -> String {
    let parts = [
        r#"{"jsonrpc":"2.0","id":"#,
        id,
        r#","result":{"resultType":"complete","content":[{"type":"text","text":"#,
        text,
        r#"}],"isError":false}}"#,
    ];
    parts.concat()
}

fn success(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn failure(id: &str, code: i32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"not here"}}}}"#)
}
