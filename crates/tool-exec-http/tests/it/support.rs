//! Fixtures: tools and calls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::timeout;
use tool_core::{
    Arguments, BoxFuture, CallContext, Caller, CheckError, CheckJson, Clock, Descriptor, DispatchState,
    DynBackend, ErrorKind, Executor, ExecutorSpec, Instant, Origin, Outcome, PrepareError, Reference, Secret,
    SecretError, Secrets, Target, Tool, ToolError, ToolParts,
};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions};

/// Timeout of a test that hangs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Secret store with values by the reference's text, such as `${KEY}`.
#[derive(Default)]
pub(crate) struct Values(Mutex<HashMap<String, String>>);

impl Values {
    pub(crate) fn new(pairs: &[(&str, &str)]) -> Arc<Self> {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Arc::new(Self(Mutex::new(pairs.collect())))
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        self.0.lock().unwrap().insert(key.to_owned(), value.to_owned());
    }

    pub(crate) fn present(&self, key: &str) -> Option<String> {
        self.0.lock().unwrap().get(key).cloned()
    }

    pub(crate) fn remove(&self, key: &str) {
        self.0.lock().unwrap().remove(key);
    }
}

impl Secrets for Values {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let value = self.0.lock().unwrap().get(&reference.to_string()).cloned();
        Box::pin(async move { Ok(value.map(Secret::new)) })
    }

    /// Records the value of the name.
    fn learn_written(&self, name: &str, value: &str) {
        self.set(name, value);
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(self.0.lock().unwrap().contains_key(&reference.to_string()))
    }
}

struct Anything;

impl CheckJson for Anything {
    fn check(&self, _: &Value) -> Result<(), CheckError> {
        Ok(())
    }
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }
}

/// Result of a call.
pub(crate) struct Done {
    pub(crate) result: Result<RawJson, ToolError>,
    pub(crate) dispatch: DispatchState,
}

impl Done {
    pub(crate) fn text(&self) -> &str {
        self.result
            .as_ref()
            .unwrap_or_else(|error| panic!("{error:?}"))
            .as_str()
    }

    pub(crate) fn error(&self) -> &ToolError {
        self.result.as_ref().expect_err("the call was to fail")
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.error().kind()
    }
}

/// Prepared tool.
pub(crate) struct Prepared {
    invoke: Arc<dyn DynBackend>,
    descriptor: Descriptor,
}

impl Prepared {
    pub(crate) async fn call(&self, arguments: Value) -> Done {
        self.call_text(&arguments.to_string()).await
    }

    pub(crate) async fn call_text(&self, arguments: &str) -> Done {
        self.call_within(arguments, None).await
    }

    pub(crate) fn context(&self, arguments: &str) -> CallContext {
        let mut parts = ToolParts::new(Arc::new(self.descriptor.clone()), self.invoke.clone());
        parts.input = Arc::new(Anything);
        parts.state = Arc::default();
        let tool = Tool::new(parts);
        CallContext::new(
            Target::Tool(Arc::new(tool)),
            Arc::new(Arguments::parse(arguments.to_owned()).unwrap()),
            Arc::new(Caller::local()),
            Arc::new(StoppedClock),
        )
    }

    pub(crate) async fn call_within(&self, arguments: &str, limit: Option<Duration>) -> Done {
        let mut cx = self.context(arguments);
        if let Some(limit) = limit {
            cx.tighten_deadline(limit);
        }
        let outcome = timeout(LONG, self.invoke.invoke_boxed(&mut cx))
            .await
            .expect("the call hangs");
        Done {
            result: outcome.map(|outcome| match outcome {
                Outcome::Reply(reply) => reply.raw().clone(),
                other => panic!("{other:?}"),
            }),
            dispatch: cx.dispatch().state(),
        }
    }

    pub(crate) fn invoke(&self) -> &Arc<dyn DynBackend> {
        &self.invoke
    }
}

/// Returns an executor whose tools may reach loopback.
pub(crate) fn executor(secrets: Arc<Values>) -> HttpExecutor {
    let options =
        HttpExecutorOptions::default().with_allow_private_networks(vec!["127.0.0.1".parse().unwrap()]);
    HttpExecutor::new(options, secrets)
}

pub(crate) fn descriptor(config: Value) -> Descriptor {
    let mut descriptor = Descriptor::new("tool", ExecutorSpec::new("http").with_config(config));
    descriptor.description = "A tool.".to_owned();
    descriptor.input_schema = RawJson::from(json!({"type": "object"}));
    descriptor.origin = Origin::operator("test");
    descriptor
}

pub(crate) fn prepare_by(
    executor: &HttpExecutor,
    descriptor: Descriptor,
) -> Result<Prepared, Vec<PrepareError>> {
    let invoke = executor.prepare(&descriptor)?;
    Ok(Prepared { invoke, descriptor })
}

/// Returns a tool that may reach loopback and has these values.
pub(crate) fn prepare_with(config: Value, values: &[(&str, &str)]) -> Prepared {
    let executor = executor(Values::new(values));
    prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

pub(crate) fn prepare(config: Value) -> Prepared {
    prepare_with(config, &[])
}

/// Returns the problems of settings, as `pointer: message`.
pub(crate) fn problems(config: Value) -> Vec<String> {
    let executor = executor(Values::new(&[("${SET}", "a value")]));
    let Err(problems) = prepare_by(&executor, descriptor(config)) else {
        return Vec::new();
    };
    let shown = problems.iter().map(|problem| match &problem.hint {
        Some(hint) => format!("{}: {problem} [{hint}]", problem.pointer),
        None => format!("{}: {problem}", problem.pointer),
    });
    shown.collect()
}
