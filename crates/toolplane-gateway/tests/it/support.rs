use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    sync::watch,
    time::timeout,
};
use tool_testkit::{Script, TestTool};
use toolplane::{
    Toolplane,
    core::{BoxFuture, Catalogue, Feature, Source, SourceState, SourceStatus},
};
use toolplane_gateway::{Gateway, GatewayOptions, StdioOptions};

/// The `_meta` of a request of the modern era.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("a test writes JSON")
}

pub(crate) fn plane(script: &Script, tools: impl IntoIterator<Item = TestTool>) -> Toolplane {
    let mut builder = Toolplane::builder().executor(Arc::new(script.clone()));
    for tool in tools {
        builder = builder.tool(tool.descriptor);
    }
    builder.build().expect("the standard primitives can be set up")
}

/// A client of a gateway over pipes.
pub(crate) struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    pub(crate) fn of(plane: Toolplane) -> Self {
        Self::with(plane, GatewayOptions::default())
    }

    pub(crate) fn with(plane: Toolplane, options: GatewayOptions) -> Self {
        let (ours, theirs) = duplex(1 << 20);
        let (reader, writer) = split(theirs);
        let gateway = Gateway::new(plane, options);
        tokio::spawn(async move {
            let never = std::future::pending();
            gateway
                .serve_stdio(reader, writer, StdioOptions::default(), never)
                .await
        });
        let (output, input) = split(ours);
        Self {
            input,
            output: BufReader::new(output).lines(),
        }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input
            .write_all(line.as_bytes())
            .await
            .expect("the gateway reads");
    }

    pub(crate) async fn receive(&mut self) -> String {
        let line = timeout(Duration::from_secs(120), self.output.next_line()).await;
        line.expect("the gateway answers")
            .expect("the gateway writes")
            .expect("the gateway lives")
    }

    /// The answer to a request with these parameters.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> String {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
        ))
        .await;
        self.receive().await
    }

    /// The result of a request with these parameters, as it was written.
    pub(crate) async fn result(&mut self, method: &str, params: &str) -> String {
        let answer = self.ask(method, params).await;
        let result = raw(&answer).get("result");
        result
            .unwrap_or_else(|| panic!("no result: {answer}"))
            .to_string()
    }

    pub(crate) async fn value(&mut self, method: &str, params: &str) -> Value {
        serde_json::from_str(&self.ask(method, params).await).expect("an answer is JSON")
    }
}

/// A source whose tools a test changes.
pub(crate) struct Changing {
    catalogue: Mutex<Arc<Catalogue>>,
    revision: watch::Sender<u64>,
}

impl Changing {
    pub(crate) fn new(names: &[&str]) -> Arc<Self> {
        let changing = Self {
            catalogue: Mutex::default(),
            revision: watch::Sender::new(0),
        };
        changing.set(names);
        Arc::new(changing)
    }

    pub(crate) fn set(&self, names: &[&str]) {
        let mut catalogue = self.catalogue.lock().expect("no test panics with it");
        *catalogue = Arc::new(Catalogue {
            revision: catalogue.revision + 1,
            tools: names
                .iter()
                .map(|name| Arc::new(TestTool::new(name).descriptor))
                .collect(),
            others: Vec::new(),
            rejected: Vec::new(),
        });
        self.revision.send_replace(catalogue.revision);
    }
}

impl Source for Changing {
    fn name(&self) -> &'static str {
        "changing"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock().expect("no test panics with it"))
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut revision = self.revision.subscribe();
        Box::pin(async move {
            let _ = revision.wait_for(|revision| *revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus {
            state: SourceState::Ready,
            n_tools: self.snapshot().tools.len(),
            detail: None,
            n_restarts: 0,
            start_took: None,
        }
    }
}
