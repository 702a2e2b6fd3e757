use std::{fmt, sync::Arc};

use mcp_server::{
    Answer, ClientRequestError, HeaderParams, InputRequired, Peer, RequestContext, ServerIdentity, Service,
};
use mcp_wire::{Era, Request, Revision, RpcError};
use raw_json::RawJson;
use tokio::time::sleep;

use crate::{
    reply::{
        mock_reply::{Question, ReplyOutcome, Step},
        plan::{PendingPlans, ReplyPlan, Round},
        template,
    },
    server::{catalog::FeatureKind, default_answer, result_shapes, state::State},
};

/// The service behind `mcp-server`: answers as planned when the request arrived.
pub(crate) struct MockService {
    state: Arc<State>,
    /// Plans of the one connection over stdio; over HTTP a request carries its own.
    plans: Arc<PendingPlans>,
}

impl MockService {
    pub(crate) fn new(state: Arc<State>, plans: Arc<PendingPlans>) -> Self {
        Self { state, plans }
    }

    fn plan(&self, request: &Request, cx: &RequestContext) -> Arc<ReplyPlan> {
        let carried = cx.http().and_then(|head| head.extensions.get::<Arc<ReplyPlan>>());
        carried
            .cloned()
            .or_else(|| self.plans.get(&request.id))
            // The plan is gone if the request was cancelled a moment ago.
            .unwrap_or_else(|| Arc::new(self.state.plan(request)))
    }
}

impl fmt::Debug for MockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockService").finish_non_exhaustive()
    }
}

impl Service for MockService {
    fn info(&self) -> ServerIdentity {
        self.state.info.clone()
    }

    fn capabilities(&self, _: Revision) -> RawJson {
        self.state.capabilities()
    }

    fn header_params(&self, tool: &str, _: &Peer) -> HeaderParams<'_> {
        let tool = self.state.catalog.find(FeatureKind::Tool, tool);
        tool.and_then(|tool| tool.mirrored.clone()).into()
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let plan = self.plan(&request, cx);
        plan.serve();
        let performance = ScriptRun {
            state: &self.state,
            plan: &plan,
            request: &request,
            cx,
        };
        performance.run().await
    }
}

/// One request on its way through its script.
struct ScriptRun<'a> {
    state: &'a State,
    plan: &'a ReplyPlan,
    request: &'a Request,
    cx: &'a RequestContext,
}

impl ScriptRun<'_> {
    async fn run(&self) -> Result<Answer, RpcError> {
        let (mut answers, first) = self.before();
        for (index, step) in self.plan.reply.steps.iter().enumerate().skip(first) {
            match step {
                Step::Delay(time) => sleep(*time).await,
                Step::Progress(report) => self.cx.progress().report(report),
                Step::Log(level, message) => self.cx.log(*level, message),
                Step::Notify(method, params) => self.state.notices.send(method, params.as_ref()),
                Step::Change(change) => self.state.change(change),
                Step::Ask(question) if answers.get(&question.key).is_some() => {}
                Step::Ask(_) if self.cx.era() == Era::Modern => return self.ask_at(index, &answers),
                Step::Ask(question) => match self.ask(question).await {
                    Ok(answer) => answers = with(&answers, &question.key, answer),
                    Err(ClientRequestError::NotDeclared(error)) => return Err(error),
                    Err(error) => return result_shapes::failure(&self.request.method, &said(&error)),
                },
            }
        }
        self.outcome(&answers)
    }

    /// Returns the client's answers of earlier rounds, and the step to continue with.
    fn before(&self) -> (RawJson, usize) {
        let Some(round) = Round::from_params(self.request.params.as_ref()) else {
            return (RawJson::object(), 0);
        };
        let given = self.cx.input_responses().cloned().unwrap_or(RawJson::object());
        let answers = given.members().fold(round.answers, |answers, (key, answer)| {
            with(&answers, &key, answer)
        });
        (answers, round.step)
    }

    /// Asks the consecutive questions from this step on in one round.
    fn ask_at(&self, step: usize, answers: &RawJson) -> Result<Answer, RpcError> {
        let questions = self.plan.reply.steps[step..].iter().map_while(|step| match step {
            Step::Ask(question) => Some(question),
            _ => None,
        });
        questions
            .filter(|question| answers.get(&question.key).is_none())
            .fold(InputRequired::new(), |round, question| {
                round.ask(&question.key, &question.method, question.params.clone())
            })
            .state(self.plan.round(step, answers))
            .answer(self.request, self.cx)
    }

    async fn ask(&self, question: &Question) -> Result<RawJson, ClientRequestError> {
        let (method, params) = (&question.method, question.params.as_ref());
        // Checked first: the error of a client without a channel for questions would say less.
        self.cx
            .check_askable(method, params)
            .map_err(ClientRequestError::NotDeclared)?;
        self.cx.ask(method, params).await
    }

    fn outcome(&self, answers: &RawJson) -> Result<Answer, RpcError> {
        let shape =
            |text: &str| result_shapes::text(self.request, self.plan.entry.as_deref(), text, self.cx.era());
        match &self.plan.reply.outcome {
            ReplyOutcome::Usual => default_answer::answer(self.state, self.plan, self.request, self.cx),
            ReplyOutcome::Text(text) => shape(text),
            ReplyOutcome::Template(text) => shape(&self.filled(text, answers)),
            ReplyOutcome::Structured(content) => Ok(result_shapes::structured(content)),
            ReplyOutcome::Result(result) => Ok(result.clone().into()),
            ReplyOutcome::Failure(text) => result_shapes::failure(&self.request.method, text),
            ReplyOutcome::Error(error) => Err(error.clone()),
            // This answer is dropped on its way out.
            ReplyOutcome::Never => Ok(RawJson::object().into()),
        }
    }

    fn filled(&self, text: &str, answers: &RawJson) -> String {
        let arguments = match (&self.plan.entry, self.cx.uri()) {
            (Some(entry), Some(uri)) => result_shapes::parts(&entry.key, &uri),
            _ => self.cx.arguments().cloned().unwrap_or(RawJson::object()),
        };
        template::fill(text, |path| match path.strip_prefix('$') {
            Some("call") => Some(RawJson::from(self.plan.call as u64)),
            Some(path) => template::at(answers, path.strip_prefix("answers.")?),
            None => template::at(&arguments, path),
        })
    }
}

fn with(object: &RawJson, key: &str, value: RawJson) -> RawJson {
    object
        .with_members(&[(key, value)])
        .expect("what is given is kept in an object")
}

/// Describes why the client gave no answer.
fn said(error: &ClientRequestError) -> String {
    match error {
        ClientRequestError::Refused(refusal) => format!("{error}: {refusal}"),
        _ => error.to_string(),
    }
}
