use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::json;
use tokio::sync::oneshot;
use tool_core::{
    Backend, CallContext, ErrorKind, Invoke, Outcome, Preview, Reply, ToolError, format_duration,
};
use tool_settings::program::{ProgramFailure, argument_variables, resolve_environment};
use tracing::debug;

use crate::{
    EngineError, PullPolicy,
    engine::{ContainerExit, Engine, FoundImage, Job, RunResult, create_body, find_image, run},
    executor::RuntimeParts,
    plan::Plan,
};

/// Name of the level of isolation, in replies, errors and spans.
const LEVEL: &str = "container";
/// Subject of messages.
const SUBJECT: &str = "the container";
/// Exit codes above this one are numbers of signals.
const SIGNALS: i32 = 128;

/// A tool in a container, ready to be called.
pub(crate) struct ContainerBackend {
    plan: Plan,
    runtime: Arc<RuntimeParts>,
    /// The image that an engine was found to have.
    image: Mutex<Option<(Weak<Engine>, FoundImage)>>,
}

impl ContainerBackend {
    pub(crate) fn new(plan: Plan, runtime: Arc<RuntimeParts>) -> Self {
        Self {
            plan,
            runtime,
            image: Mutex::default(),
        }
    }
}

impl Invoke for ContainerBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let started = cx.clock.now();
        let variables = self.variables(cx).await?;
        let refused = |error: EngineError| error.into_tool_error(&*self.runtime.secrets);
        let engine = self.runtime.engine().await.map_err(refused)?;
        engine.about.check_limits().map_err(refused)?;
        let image = self.find_image(cx, &engine).await;
        let image = match image {
            Ok(image) => image,
            Err(error) => return Err(self.failed(&engine, error).await),
        };
        let job = self.job(cx, &image, &variables).await?;
        let (reply, result) = oneshot::channel();
        let (task_engine, runs) = (engine.clone(), self.runtime.runs.clone());
        let gateways = self.runtime.gateways.clone();
        // A task of its own: the container is removed whatever becomes of the call.
        tokio::spawn(async move {
            if !run(task_engine.clone(), job, reply, runs).await {
                gateways.reap(&task_engine).await;
            }
        });
        let result = result.await.unwrap_or_else(|_| {
            let (action, message) = ("run the container", "the gateway stops".to_owned());
            Err(EngineError::Lost { action, message })
        });
        let result = match result {
            Ok(result) => result,
            Err(error) => return Err(self.failed(&engine, error).await),
        };
        debug!(
            tool = %self.plan.tool,
            level = LEVEL,
            engine = engine.about.name,
            exit = ?result.exit,
            elapsed_ms = cx.clock.now().since(started).as_millis(),
            "a container has run"
        );
        let mut reply = Reply::value(self.reply(&result)?);
        reply.add_meta(
            Reply::SANDBOX_KEY,
            RawJson::from(json!({"level": LEVEL, "network": "off"})),
        );
        Ok(reply.into())
    }
}

impl Backend for ContainerBackend {
    /// Returns 0, since equal settings make equal backends. Returns `None` for tools with references, whose values may depend on
    /// the configuration.
    fn backend_id(&self) -> Option<usize> {
        self.plan.references().next().is_none().then_some(0)
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        let plan = &self.plan;
        let mut variables: Vec<String> = plan.env.iter().map(|(name, _)| name.clone()).collect();
        let arguments = self.argument_variables(cx)?;
        variables.extend(arguments.into_iter().map(|(name, _)| name));
        let limits = &plan.limits;
        let image = plan.image.to_string();
        let request = json!({
            "image": image,
            "command": plan.command,
            "args": plan.args,
            "user": plan.user,
            "variables": variables,
            "network": "off",
            "limits": {
                "wall_time_ms": u64::try_from(limits.wall_time.as_millis()).unwrap_or(u64::MAX),
                "memory": limits.memory,
                "processes": limits.processes,
            },
        });
        let text = format!(
            "nothing is run: a container of `{image}` would run, with the arguments on standard input"
        );
        Ok(Some(Preview::new(RawJson::from(request), text)))
    }
}

impl ContainerBackend {
    /// Returns the variables of a call: those of the settings with their current values, and those of the arguments.
    async fn variables(&self, cx: &CallContext) -> Result<Vec<(String, String)>, ToolError> {
        let mut variables = resolve_environment(&self.plan.env, &*self.runtime.secrets).await?;
        variables.extend(self.argument_variables(cx)?);
        Ok(variables)
    }

    fn argument_variables(&self, cx: &CallContext) -> Result<Vec<(String, String)>, ToolError> {
        let taken = self.plan.env.iter().map(|(name, _)| name.as_str());
        argument_variables(cx.arguments.raw(), taken, &BTreeMap::new())
            .map_err(|message| ToolError::new(ErrorKind::InvalidArguments, message))
    }

    /// Returns the image, which an engine is asked for once.
    async fn find_image(&self, cx: &CallContext, engine: &Arc<Engine>) -> Result<FoundImage, EngineError> {
        let of_engine = |known: &Weak<Engine>| known.as_ptr() == Arc::as_ptr(engine);
        let known = self.image.lock().clone();
        if let Some((_, image)) = known.filter(|(known, _)| of_engine(known)) {
            return Ok(image);
        }
        let plan = &self.plan;
        let may_pull = self.runtime.options.pull == PullPolicy::Missing && !plan.is_stored;
        let report = || {
            if let Some(progress) = &cx.origin.progress {
                let message = format!("pulling the image {}", plan.image);
                progress.report(RawJson::from(json!({"progress": 0, "message": message})));
            }
        };
        let image = find_image(engine, &plan.image, may_pull, report).await?;
        *self.image.lock() = Some((Arc::downgrade(engine), image.clone()));
        Ok(image)
    }

    async fn job(
        &self,
        cx: &CallContext,
        image: &FoundImage,
        variables: &[(String, String)],
    ) -> Result<Job, ToolError> {
        let mut limits = self.plan.limits.clone();
        if let Some(remaining) = cx.remaining() {
            if remaining.is_zero() {
                let message = "no time was left to run the container";
                return Err(ToolError::new(ErrorKind::Timeout, message));
            }
            limits.wall_time = limits.wall_time.min(remaining);
        }
        let internal = |error: std::io::Error| {
            ToolError::new(ErrorKind::Internal, "the container could not be named").with_source(error)
        };
        let gateway = self.runtime.gateways.own().await.map_err(internal)?;
        Ok(Job {
            name: gateway.container_name().map_err(internal)?,
            body: create_body(&self.plan, image, variables, &gateway),
            stdin: cx.arguments.raw().as_str().as_bytes().to_vec(),
            limits,
            dispatch: cx.dispatch().clone(),
        })
    }

    /// Returns the error of a container that did not run. What was known of the engine and the image is asked for again.
    async fn failed(&self, engine: &Arc<Engine>, error: EngineError) -> ToolError {
        *self.image.lock() = None;
        if matches!(error, EngineError::Lost { .. }) {
            self.runtime.forget(engine).await;
        }
        error.into_tool_error(&*self.runtime.secrets)
    }

    /// Returns the result of a container that ended in this way.
    fn reply(&self, result: &RunResult) -> Result<RawJson, ToolError> {
        let limits = &self.plan.limits;
        let failure = ProgramFailure::new(LEVEL, &result.stderr, &*self.runtime.secrets);
        match result.exit {
            ContainerExit::Code(0) => {
                self.plan.output.read(&result.stdout).map_err(|reason| {
                    failure.error(ErrorKind::Protocol, format!("what {SUBJECT} {reason}"), [])
                })
            }
            ContainerExit::Code(code) if code > SIGNALS => {
                let signal = code - SIGNALS;
                let message = format!("{SUBJECT} was ended by signal {signal}");
                let details = [("signal", json!(signal))];
                Err(failure.error(self.plan.exit_codes.kind(code), message, details))
            }
            ContainerExit::Code(code) => {
                let message = format!("{SUBJECT} ended with exit code {code}");
                let details = [("exit_code", json!(code))];
                Err(failure.error(self.plan.exit_codes.kind(code), message, details))
            }
            ContainerExit::TimedOut => {
                let limit = format_duration(limits.wall_time.min(limits.cpu_time));
                let message = format!("{SUBJECT} was stopped at its time limit ({limit} or less)");
                Err(failure.error(ErrorKind::Timeout, message, [("limit", json!("time"))]))
            }
            ContainerExit::OutOfMemory => Err(failure.out_of_memory(SUBJECT, limits.memory)),
            ContainerExit::OutputLimit => Err(failure.too_much_output(SUBJECT, limits.output)),
        }
    }
}
