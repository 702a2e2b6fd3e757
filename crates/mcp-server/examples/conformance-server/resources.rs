//! Resources of the scenarios.

use mcp_server::{Answer, RequestContext};
use mcp_wire::{Era, RpcError, code};
use serde_json::{Value, json};

use crate::content::{self, IMAGE, invalid};

pub(crate) fn list() -> Value {
    let resource = |uri: &str, name: &str, media_type: &str| json!({"uri": uri, "name": name, "description": "A resource for tests.", "mimeType": media_type});
    json!({"resources": [
        resource("test://static-binary", "static-binary", "image/png"),
        resource("test://static-text", "static-text", "text/plain"),
        resource("test://watched-resource", "watched-resource", "text/plain"),
    ]})
}

pub(crate) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by its id.",
        "mimeType": "application/json",
    }]})
}

pub(crate) fn read(cx: &RequestContext) -> Result<Answer, RpcError> {
    let uri = cx.uri();
    let uri = uri.ok_or_else(|| invalid("`uri` must be a string"))?;
    let contents = match &*uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": IMAGE}),
        "test://watched-resource" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This resource may change."})
        }
        other => {
            let id = other
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| unknown(&uri, cx))?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    };
    Ok(content::cacheable(json!({ "contents": [contents] })))
}

fn unknown(uri: &str, cx: &RequestContext) -> RpcError {
    let code = match cx.era() {
        Era::Modern => code::INVALID_PARAMS,
        Era::Legacy => code::RESOURCE_NOT_FOUND,
    };
    RpcError::new(code, "there is no such resource").with_data(json!({ "uri": uri }).into())
}
