use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{Backend, CallContext, ErrorKind, Invoke, Outcome, Preview, Reply, ToolError};
use tool_sandbox::{NetworkAccess, Sandbox, SandboxExit, SandboxLevel};
use tool_settings::program::{argument_variables, resolve_environment};
use tracing::debug;

use crate::{
    ScriptLanguage,
    executor::RuntimeParts,
    interpreter::FoundInterpreter,
    plan::Plan,
    run::{AccessReporter, Failed, Job, LineReporter, WarmWorkers, command, refused, reply},
};

/// A tool with code, ready to be called.
pub(crate) struct ScriptBackend {
    pub(crate) plan: Plan,
    pub(crate) runtime: Arc<RuntimeParts>,
    /// Interpreters that wait for a call.
    pub(crate) warm: Arc<WarmWorkers>,
}

/// Everything that runs of one tool need, found before anything is started.
struct Place {
    interpreter: FoundInterpreter,
    packages: Option<PathBuf>,
    sandbox: Sandbox,
}

impl Invoke for ScriptBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let variables = self.variables(cx).await?;
        let place = self.place(cx).await?;
        let dispatch = cx.dispatch().clone();
        let started = cx.clock.now();
        let mut limits = self.plan.limits.clone();
        if let Some(remaining) = cx.remaining() {
            if remaining.is_zero() {
                let message = "no time was left to run the code";
                return Err(ToolError::new(ErrorKind::Timeout, message));
            }
            limits.wall_time = limits.wall_time.min(remaining);
        }
        let lines = LineReporter::for_call(self.plan.stream, cx, &self.runtime.secrets);
        dispatch.sent();
        let finished = match self.take_warm(cx, &variables).await {
            Some(child) => {
                let arguments = cx.arguments.raw().as_str().as_bytes().to_vec();
                match &lines {
                    Some(lines) => child.finish_observed(arguments, &limits, lines.observer()).await,
                    None => child.finish(arguments, &limits).await,
                }
            }
            None => {
                let accesses = AccessReporter::for_call(cx, &self.runtime.secrets);
                let job = Job {
                    interpreter: &place.interpreter,
                    packages: place.packages.as_deref(),
                    variables: variables.clone(),
                    arguments: Some(cx.arguments.raw()),
                };
                let mut command = command(&self.plan, job)
                    .limits(limits)
                    .on_event(accesses.observer());
                if let Some(lines) = &lines {
                    command = command.on_stdout(lines.observer());
                }
                place.sandbox.run(command).await
            }
        };
        let finished = finished.map_err(|error| {
            dispatch.not_taken();
            refused(error)
        })?;
        if let Some(lines) = lines {
            lines.end();
        }
        if finished.exit != SandboxExit::TimedOut {
            dispatch.answered();
        }
        self.prepare_next(cx, &place, variables);
        debug!(
            tool = %self.plan.tool,
            level = finished.level.as_str(),
            exit = ?finished.exit,
            elapsed_ms = cx.clock.now().since(started).as_millis(),
            "code has run"
        );
        let failed = Failed {
            plan: &self.plan,
            secrets: &*self.runtime.secrets,
            level: finished.level,
            stderr: &finished.stderr,
        };
        let result = reply(&failed, finished.exit, &finished.stdout)?;
        let mut reply = Reply::value(result);
        reply.add_meta(Reply::SANDBOX_KEY, self.meta(finished.level));
        Ok(reply.into())
    }
}

impl Backend for ScriptBackend {
    /// Returns 0, since equal files and settings make equal backends. Returns `None` for tools with references, whose values may
    /// depend on the configuration.
    fn backend_id(&self) -> Option<usize> {
        self.plan.references().next().is_none().then_some(0)
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        let plan = &self.plan;
        let names = plan.env.iter().map(|(name, _)| name.clone());
        let mut variables: Vec<String> = names.collect();
        if plan.language == ScriptLanguage::Bash {
            let arguments = self.argument_variables(cx)?;
            variables.extend(arguments.into_iter().map(|(name, _)| name));
        }
        let network = network(&plan.network);
        let request = json!({
            "interpreter": plan.interpreter.name,
            "entrypoint": plan.entry,
            "files": plan.digests(),
            "variables": variables,
            "network": network,
            "limits": {
                "wall_time_ms": u64::try_from(plan.limits.wall_time.as_millis()).unwrap_or(u64::MAX),
                "memory": plan.limits.memory,
                "processes": plan.limits.processes,
            },
        });
        let text = format!(
            "nothing is run: `{}` would run `{}` in a sandbox, with the arguments on standard input",
            plan.interpreter.name, plan.entry
        );
        Ok(Some(Preview::new(RawJson::from(request), text)))
    }
}

impl ScriptBackend {
    /// Returns the variables of a call: those of the settings with their current values, and for a script those of the arguments.
    async fn variables(&self, cx: &CallContext) -> Result<Vec<(String, String)>, ToolError> {
        let mut variables = resolve_environment(&self.plan.env, &*self.runtime.secrets).await?;
        if self.plan.language == ScriptLanguage::Bash {
            variables.extend(self.argument_variables(cx)?);
        }
        Ok(variables)
    }

    fn argument_variables(&self, cx: &CallContext) -> Result<Vec<(String, String)>, ToolError> {
        let taken = self.plan.env.iter().map(|(name, _)| name.as_str());
        argument_variables(cx.arguments.raw(), taken, &self.plan.variables)
            .map_err(|message| ToolError::new(ErrorKind::InvalidArguments, message))
    }

    /// Finds interpreter, packages and sandbox.
    async fn place(&self, cx: &CallContext) -> Result<Place, ToolError> {
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message).with_no_retry();
        let interpreter = self.plan.interpreter.find().map_err(unavailable)?;
        let packages = self.packages(cx, &interpreter.path).await?;
        let sandbox = self.runtime.sandboxes.get(self.plan.level).await;
        Ok(Place {
            interpreter,
            packages,
            sandbox: sandbox.map_err(refused)?,
        })
    }

    async fn packages(&self, cx: &CallContext, python: &Path) -> Result<Option<PathBuf>, ToolError> {
        let Some(lock) = &self.plan.requirements else {
            return Ok(None);
        };
        let report = || {
            if let Some(progress) = &cx.origin.progress {
                let message = format!("installing {} packages", lock.len());
                progress.report(RawJson::from(json!({"progress": 0, "message": message})));
            }
        };
        let installed = self.runtime.environments.install(lock, python, report).await;
        let installed = installed.map_err(|error| {
            let message = error.to_string();
            ToolError::new(ErrorKind::Unavailable, message).with_source(error)
        })?;
        Ok(Some(installed))
    }

    async fn take_warm(
        &self,
        cx: &CallContext,
        variables: &[(String, String)],
    ) -> Option<tool_sandbox::SandboxChild> {
        match self.plan.is_stateless {
            true => self.warm.take(digest(variables), cx).await,
            false => None,
        }
    }

    /// Starts the interpreter of the next call, if the tool allows that.
    fn prepare_next(&self, cx: &CallContext, place: &Place, variables: Vec<(String, String)>) {
        if !self.plan.is_stateless || self.warm.has_one() {
            return;
        }
        let key = digest(&variables);
        let job = Job {
            interpreter: &place.interpreter,
            packages: place.packages.as_deref(),
            variables,
            arguments: None,
        };
        let accesses = AccessReporter::for_later_call(cx, &self.runtime.secrets);
        let command = command(&self.plan, job).on_event(accesses.observer());
        match place.sandbox.spawn(command) {
            Ok(child) => self.warm.keep(child, accesses, key),
            Err(error) => debug!(tool = %self.plan.tool, %error, "no interpreter waits for the next call"),
        }
    }

    fn meta(&self, level: SandboxLevel) -> RawJson {
        RawJson::from(json!({"level": level.as_str(), "network": network(&self.plan.network)}))
    }
}

/// Returns the access to the network, for people and programs.
fn network(network: &NetworkAccess) -> &'static str {
    match network {
        NetworkAccess::Off => "off",
        _ => "hosts",
    }
}

fn digest(variables: &[(String, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    variables.hash(&mut hasher);
    hasher.finish()
}
