//! An executor whose tools behave as their names say.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolplane::core::{
    AskError, CallContext, ClientKey, Descriptor, DynBackend, ErrorKind, Executor, InProcess, InputRequest,
    Invoke, Outcome, PrepareError, Question, Reply, Target, ToolError,
};

use crate::support::raw;

/// Runs tools by their names. Clones share their records.
#[derive(Debug, Clone, Default)]
pub(crate) struct BehaviorExecutor(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    n_calls: AtomicUsize,
    n_running: AtomicUsize,
    clients: Mutex<Vec<ClientKey>>,
}

impl BehaviorExecutor {
    pub(crate) fn n_calls(&self) -> usize {
        self.0.n_calls.load(Ordering::SeqCst)
    }

    pub(crate) fn n_running(&self) -> usize {
        self.0.n_running.load(Ordering::SeqCst)
    }

    /// Waits until this number of calls runs. Cancelled calls end soon, not at once.
    pub(crate) async fn running(&self, count: usize) {
        let wait = async {
            while self.n_running() != count {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), wait)
            .await
            .expect("it comes to that");
    }

    /// Returns the clients that could be asked, in the order of their calls.
    pub(crate) fn clients(&self) -> Vec<ClientKey> {
        self.0.clients.lock().expect("no test panics with it").clone()
    }
}

struct Running<'a>(&'a Seen);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Invoke for BehaviorExecutor {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.n_calls.fetch_add(1, Ordering::SeqCst);
        self.0.n_running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(&self.0);
        if let Some(ask) = &cx.origin.ask {
            let client = ask.client().client();
            self.0
                .clients
                .lock()
                .expect("no test panics with it")
                .push(client);
        }
        match cx.target.clone() {
            Target::Tool(tool) => tool_of(tool.name(), cx).await,
            target => other_feature(&target, cx),
        }
    }
}

async fn tool_of(name: &str, cx: &CallContext) -> Result<Outcome, ToolError> {
    match name {
        "ask" => Ok(said(&[elicit(cx, "one").await])),
        "ask_twice" => {
            let first = elicit(cx, "one").await;
            if let Some(progress) = &cx.origin.progress {
                progress.report(raw(r#"{"progress":1}"#));
            }
            log(cx);
            let second = elicit(cx, "two").await;
            Ok(said(&[first, second]))
        }
        "ask_both" => {
            let later = async {
                // Questions of a server arrive one by one.
                tokio::task::yield_now().await;
                elicit(cx, "two").await
            };
            let (first, second) = join(elicit(cx, "one"), later).await;
            Ok(said(&[first, second]))
        }
        "ask_and_take_back" => {
            let asked = Box::pin(elicit(cx, "one"));
            let never = futures_util::future::select(asked, std::future::pending::<()>());
            let _ = timeout(Duration::from_secs(60), never).await;
            Ok(said(&["taken back".to_owned()]))
        }
        "sample" => Ok(said(&[ask(
            cx,
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":1}"#,
        )
        .await])),
        "roots" => Ok(said(&[ask(cx, "roots/list", "{}").await])),
        "beside" => Ok(said(&[cx
            .extras
            .extra_params
            .clone()
            .unwrap_or_default()
            .to_string()])),
        "who" => {
            let capabilities = cx
                .origin
                .ask
                .as_ref()
                .map(|ask| ask.client().capabilities().to_string());
            let meta = cx.extras.meta.as_ref().map(RawJson::to_string);
            Ok(said(&[format!("{capabilities:?} {meta:?}")]))
        }
        "log" => {
            log(cx);
            Ok(said(&["logged".to_owned()]))
        }
        "input" => input(cx),
        "stateless" => match &cx.extras.resume {
            None => Ok(needs(r#"{"q":{"method":"roots/list"}}"#, None)),
            Some(resume) => Ok(said(&[format!("{} {:?}", resume.responses, resume.state)])),
        },
        "insatiable" => Ok(needs(r#"{"q":{"method":"roots/list"}}"#, Some("\"s\""))),
        "ask_and_hang" => {
            elicit(cx, "one").await;
            std::future::pending().await
        }
        "panic_when_answered" => {
            elicit(cx, "one").await;
            panic!("a test wants this")
        }
        "visit" => Err(rpc(
            r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"elicitationId":"e","mode":"url","url":"https://example.com/a","message":"log in","x":1e2}]}}"#,
        )),
        "incapable" => Err(rpc(
            r#"{"code":-32021,"message":"no sampling","data":{"requiredCapabilities":{"sampling":{}}}}"#,
        )),
        "shared" | "grown" => Ok(Reply::value(RawJson::object()).into()),
        other => panic!("no tool {other}"),
    }
}

/// Asks for two inputs, and returns the answers.
fn input(cx: &CallContext) -> Result<Outcome, ToolError> {
    match &cx.extras.resume {
        None => Ok(needs(
            r#"{ "name":{"method":"elicitation/create","params":{"message":"name?","requestedSchema":{},"x":1e2}},"roots":{"method":"roots/list"} }"#,
            Some(r#""upstream state""#),
        )),
        Some(resume) => {
            let state = resume.state.as_ref().map(RawJson::to_string);
            Ok(said(&[format!(
                "{} {}",
                resume.responses,
                state.unwrap_or_default()
            )]))
        }
    }
}

fn needs(requests: &str, state: Option<&str>) -> Outcome {
    Outcome::NeedsInput(Box::new(
        InputRequest::new(raw(requests)).with_state(state.map(raw)),
    ))
}

fn other_feature(target: &Target, cx: &CallContext) -> Result<Outcome, ToolError> {
    let result = match target {
        Target::Prompt(prompt) if &**prompt.name() == "broken" => {
            return Err(rpc(r#"{"code":-7,"message":"own words","data":{"n":1e2}}"#));
        }
        _ if cx.extras.extra_params.is_some() => format!(
            r#"{{"contents":[],"messages":[],"beside":{}}}"#,
            cx.extras.extra_params.clone().unwrap_or_default()
        ),
        Target::Prompt(prompt) => format!(
            r#"{{ "messages":[],"of":"{}","given":{},"n":1e2 }}"#,
            prompt.name(),
            cx.arguments.raw()
        ),
        Target::Resource { uri, .. } if uri.ends_with("gone") => {
            return Err(rpc(r#"{"code":-32002,"message":"gone"}"#));
        }
        Target::Resource { uri, .. } if uri.ends_with("unread") => {
            let detail = raw(r#"{"code":-32601,"message":"no such method"}"#);
            let error = ToolError::new(ErrorKind::NotFound, "the server said: no such method");
            return Err(error.with_detail(detail));
        }
        Target::Resource { uri, .. } if uri.ends_with("modern") => {
            r#"{"resultType":"complete","contents":[],"ttlMs":7,"cacheScope":"public"}"#.to_owned()
        }
        Target::Resource { uri, .. } => format!(r#"{{ "contents":[{{"uri":"{uri}","text":"","n":1e2}}] }}"#),
        Target::Completion(of) if of.name().contains("broken") => {
            return Err(rpc(r#"{"code":-32601,"message":"no such method"}"#));
        }
        Target::Completion(_) => format!(
            r#"{{"completion":{{"values":["a"]}},"given":{}}}"#,
            cx.arguments.raw()
        ),
        other => panic!("no {other:?}"),
    };
    Ok(Reply::result(raw(&result), false).into())
}

fn rpc(detail: &str) -> ToolError {
    ToolError::new(ErrorKind::UpstreamError, "the server answered with an error").with_detail(raw(detail))
}

async fn elicit(cx: &CallContext, message: &str) -> String {
    let params = format!(r#"{{"message":"{message}","requestedSchema":{{"n":1e2}}}}"#);
    ask(cx, "elicitation/create", &params).await
}

async fn ask(cx: &CallContext, method: &str, params: &str) -> String {
    let Some(asker) = &cx.origin.ask else {
        return "no way".to_owned();
    };
    let question = Question::new(method.to_owned(), Some(raw(params)));
    match asker.ask(question).await {
        Ok(answer) => answer.to_string(),
        Err(AskError::Refused(error)) => format!("refused: {error}"),
        Err(error) => error.to_string(),
    }
}

fn log(cx: &CallContext) {
    if let Some(ask) = &cx.origin.ask
        && ask.client().log_level().is_some()
    {
        ask.client().log(&raw(r#"{"level":"warning","data":{"n":1e2}}"#));
        ask.client().log(&raw(r#"{"level":"debug","data":"not wanted"}"#));
    }
}

/// Returns a result with these texts, so that a test sees what the tool received.
fn said(texts: &[String]) -> Outcome {
    let value: Value = json!({ "said": texts });
    Reply::value(RawJson::from(value)).into()
}

impl Executor for BehaviorExecutor {
    fn kind(&self) -> &'static str {
        "acting"
    }

    fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        Ok(Arc::new(InProcess(self.clone())))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}
