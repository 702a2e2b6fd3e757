//! A caller's client, as an edge would provide it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tool_core::{Ask, AskError, Asker, BoxFuture, ClientKey, Question};
use tool_exec_mcp::{McpServer, ServerSettings};

use crate::fixture::{Call, Fixture, LIMIT, StoppedClock, program};

/// Answers each question with its own name, one per permit.
pub(crate) struct Client {
    key: ClientKey,
    name: &'static str,
    capabilities: RawJson,
    level: Option<&'static str>,
    permits: Semaphore,
    refusal: Mutex<Option<AskError>>,
    asked: Mutex<Vec<Question>>,
    logs: Mutex<Vec<String>>,
    withdrawn: Mutex<usize>,
}

pub(crate) const EVERYTHING: &str =
    r#"{"elicitation":{"form":{}},"sampling":{ "x":1e2 },"roots":{"listChanged":true}}"#;

impl Client {
    /// A client with a session of this name and these capabilities.
    pub(crate) fn session(name: &'static str, declared: &str) -> Arc<Self> {
        Self::new(name, ClientKey::Session(name.into()), declared, None)
    }

    /// A client of this principal.
    pub(crate) fn of_principal(principal: &'static str, declared: &str) -> Arc<Self> {
        Self::new(principal, ClientKey::Principal(principal.into()), declared, None)
    }

    /// A client without capabilities that wants log messages.
    pub(crate) fn listening(name: &'static str, level: &'static str) -> Arc<Self> {
        Self::new(name, ClientKey::Session(name.into()), "{}", Some(level))
    }

    fn new(name: &'static str, key: ClientKey, declared: &str, level: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self {
            key,
            name,
            capabilities: RawJson::parse(declared.to_owned()).unwrap(),
            level,
            permits: Semaphore::new(0),
            refusal: Mutex::default(),
            asked: Mutex::default(),
            logs: Mutex::default(),
            withdrawn: Mutex::default(),
        })
    }

    /// Adds permits for more answers.
    pub(crate) fn answers(self: Arc<Self>, n: usize) -> Arc<Self> {
        self.permits.add_permits(n);
        self
    }

    /// Answers everything with this error from now on.
    pub(crate) fn refuses(&self, error: AskError) {
        *self.refusal.lock().unwrap() = Some(error);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|question| question.method.clone())
            .collect()
    }

    pub(crate) fn last_params(&self) -> Option<RawJson> {
        self.asked
            .lock()
            .unwrap()
            .last()
            .and_then(|question| question.params.clone())
    }

    pub(crate) fn logs(&self) -> Vec<String> {
        self.logs.lock().unwrap().clone()
    }

    /// Number of questions that were withdrawn.
    pub(crate) fn withdrawn(&self) -> usize {
        *self.withdrawn.lock().unwrap()
    }

    /// Waits until it has received this number of questions.
    pub(crate) async fn was_asked(&self, n: usize) {
        until(|| self.asked().len() >= n).await;
    }

    /// Returns a call of a tool for this client.
    pub(crate) fn call(self: &Arc<Self>, server: &Arc<McpServer>, tool: &str, arguments: Value) -> Call {
        let mut call = Call::new(server, tool, arguments);
        call.cx.origin.ask = Some(Asker::new(self.clone(), Arc::new(StoppedClock)));
        call
    }

    /// Returns the outcome of a call in which the server makes this request.
    pub(crate) async fn asks(self: &Arc<Self>, server: &Arc<McpServer>, method: &str) -> Value {
        let mut call = self.call(server, "ask", json!({"method": method, "params": {"a": 1}}));
        let reply = call.make().await.unwrap();
        serde_json::from_str::<Value>(reply.raw().as_str()).unwrap()["answer"].clone()
    }
}

impl Ask for Client {
    fn client(&self) -> ClientKey {
        self.key.clone()
    }

    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async move {
            let mut open = Open(self, true);
            self.permits.acquire().await.unwrap().forget();
            open.1 = false;
            match self.refusal.lock().unwrap().clone() {
                Some(error) => Err(error),
                None => Ok(RawJson::parse(format!(r#"{{"by":"{}","n":1e2}}"#, self.name)).unwrap()),
            }
        })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        self.level.map(Into::into)
    }

    fn log(&self, message: &RawJson) {
        self.logs.lock().unwrap().push(message.to_string());
    }
}

/// Question that was not answered yet.
struct Open<'a>(&'a Client, bool);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        *self.0.withdrawn.lock().unwrap() += usize::from(self.1);
    }
}

/// Waits until the condition holds.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting)
        .await
        .expect("it never was so");
}

/// Returns the server that asks its client.
pub(crate) fn asker(fixture: &Fixture, mode: &str) -> ServerSettings {
    let mut settings = fixture.settings(mode);
    if let tool_exec_mcp::ServerTarget::Stdio(target) = &mut settings.target {
        target.command = program("tool-exec-mcp-asker");
    }
    settings
}
