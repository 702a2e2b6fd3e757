use std::{borrow::Cow, net::SocketAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use tool_settings::parsed;

/// An address to listen on: `127.0.0.1:7080`, `[::1]:7080`, `localhost:7080`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listen(pub(crate) SocketAddr);

fn listen(text: &str) -> Option<SocketAddr> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => Cow::from(format!("127.0.0.1:{port}")),
        None => Cow::from(text),
    };
    numeric.parse().ok()
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let example = "`127.0.0.1:7080` or `[::1]:7080`";
        parsed(deserializer, listen, "address with a port", example).map(Self)
    }
}

impl JsonSchema for Listen {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}
