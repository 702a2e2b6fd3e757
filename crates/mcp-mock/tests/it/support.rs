//! Clients of the mock.

use std::{future::Future, time::Duration};

use mcp_client::{ClientError, Connection, ConnectionOptions, EraChoice, HttpEndpoint, RequestOptions};
use mcp_mock::{MockHttp, MockServer};
use raw_json::RawJson;
use serde_json::Value;
use tokio::time::timeout;

/// Time limit of a test, to detect a hang.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(LIMIT, future).await.expect("it takes too long")
}

/// A connection, and the server behind it if it listens.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    _http: Option<MockHttp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

/// All transports and eras.
pub(crate) const WAYS: [(Transport, EraChoice); 5] = [
    (Transport::Stdio, EraChoice::Legacy),
    (Transport::Stdio, EraChoice::Modern),
    (Transport::Http, EraChoice::Legacy),
    (Transport::Http, EraChoice::Modern),
    (Transport::Sse, EraChoice::Legacy),
];

pub(crate) fn speaking(era: EraChoice) -> ConnectionOptions {
    ConnectionOptions::default().era(era)
}

impl Client {
    pub(crate) async fn open(
        server: &MockServer,
        transport: Transport,
        options: ConnectionOptions,
    ) -> Result<Self, ClientError> {
        match transport {
            Transport::Stdio => {
                let (reader, writer) = tokio::io::split(server.connect());
                Ok(Self {
                    connection: soon(Connection::from_streams(reader, writer, options)).await?,
                    _http: None,
                })
            }
            Transport::Http => {
                let http = server.http().await.unwrap();
                let endpoint = HttpEndpoint::new(&http.url()).unwrap();
                Ok(Self {
                    connection: soon(Connection::http(&endpoint, options)).await?,
                    _http: Some(http),
                })
            }
            Transport::Sse => {
                let http = server.http().await.unwrap();
                let endpoint = HttpEndpoint::new(&http.sse_url()).unwrap();
                Ok(Self {
                    connection: soon(Connection::sse(&endpoint, options)).await?,
                    _http: Some(http),
                })
            }
        }
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let options = RequestOptions::with_timeout(LIMIT);
        let asked = self
            .connection
            .request_with_input(method, Some(params.into()), options);
        soon(asked)
            .await
            .map(|result| result.to::<Value>().expect("a result is JSON"))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ClientError> {
        self.request(
            "tools/call",
            serde_json::json!({"name": tool, "arguments": arguments}),
        )
        .await
    }

    /// Returns the text of a call's result.
    pub(crate) async fn says(&self, tool: &str, arguments: Value) -> String {
        text(&self.call(tool, arguments).await.unwrap())
    }
}

pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}
