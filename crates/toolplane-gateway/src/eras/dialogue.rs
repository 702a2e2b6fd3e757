use std::{fmt, sync::Arc};

use mcp_server::{ClientHandle, RequestContext};
use parking_lot::Mutex;
use raw_json::{JsonKind, RawJson};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};
use toolplane::core::{Ask, AskError, BoxFuture, ClientKey, Progress, Question};

use crate::client::{ANSWER_TIMEOUT, askable_capabilities, client_key, forward_log};

/// Questions of one call to its modern client, over as many rounds as they take: a question is sent in the answer to one
/// request, and the client's answer comes with the next.
///
/// | state of a question | event | next state |
/// |---|---|---|
/// | none | [`Ask::ask`] | unsent |
/// | unsent | [`Dialogue::take_questions`] | sent |
/// | unsent | [`Dialogue::resume`] | unsent |
/// | sent | [`Dialogue::resume`] with an answer to it | none: the tool receives the answer |
/// | sent | [`Dialogue::resume`] without an answer to it | unsent |
/// | any | [`Dialogue::refuse`] | none: the tool receives an error |
/// | any | the tool stops waiting, or [`ANSWER_TIMEOUT`] has passed | none |
pub(crate) struct Dialogue {
    key: ClientKey,
    capabilities: RawJson,
    state: Mutex<State>,
    /// Wakes who waits for an unsent question.
    unsent: Notify,
}

struct State {
    /// The latest request of the client. Progress and logs reach the client only while it is in progress.
    request: ClientHandle,
    last: u64,
    /// Questions without an answer, oldest first.
    open: Vec<OpenQuestion>,
}

struct OpenQuestion {
    number: u64,
    question: Question,
    is_sent: bool,
    answer: oneshot::Sender<Result<RawJson, AskError>>,
}

/// Maximum number of open questions of one call.
const MAX_OPEN: usize = 64;

impl Dialogue {
    pub(super) fn new(cx: &RequestContext) -> Arc<Self> {
        let request = cx.client();
        Arc::new(Self {
            key: client_key(cx),
            capabilities: askable_capabilities(request.capabilities()),
            state: Mutex::new(State {
                request,
                last: 0,
                open: Vec::new(),
            }),
            unsent: Notify::new(),
        })
    }

    /// Continues with the client's next request and its answers, by the keys of the questions. A question without an answer
    /// is sent again.
    pub(super) fn resume(&self, request: ClientHandle, responses: Option<&RawJson>) {
        let mut state = self.state.lock();
        state.request = request;
        for open in std::mem::take(&mut state.open) {
            let answer = responses.and_then(|responses| responses.get(&open.key()));
            match answer.filter(|answer| open.is_sent && answer.kind() == JsonKind::Object) {
                // The tool may have stopped waiting in the meantime.
                Some(answer) => drop(open.answer.send(Ok(answer))),
                None => state.open.push(OpenQuestion {
                    is_sent: false,
                    ..open
                }),
            }
        }
        let is_open = !state.open.is_empty();
        drop(state);
        if is_open {
            self.unsent.notify_one();
        }
    }

    /// Waits until there is an unsent question.
    pub(super) async fn wait_for_question(&self) {
        while !self.state.lock().open.iter().any(|open| !open.is_sent) {
            self.unsent.notified().await;
        }
    }

    /// Returns the unsent questions with their keys, and marks them as sent.
    pub(super) fn take_questions(&self) -> Vec<(String, Question)> {
        let mut state = self.state.lock();
        let unsent = state.open.iter_mut().filter(|open| !open.is_sent);
        unsent
            .map(|open| {
                open.is_sent = true;
                (open.key(), open.question.clone())
            })
            .collect()
    }

    /// Fails all open questions: the client cannot be asked for this reason.
    pub(super) fn refuse(&self, reason: &str) {
        let open = std::mem::take(&mut self.state.lock().open);
        for open in open {
            let _ = open.answer.send(Err(AskError::Impossible(reason.to_owned())));
        }
    }

    /// Opens a question, unless the client did not declare that it can be asked this.
    fn open(&self, question: Question) -> Result<PendingAnswer<'_>, AskError> {
        let mut state = self.state.lock();
        state
            .request
            .check_askable(&question.method, question.params.as_ref())
            .map_err(|error| AskError::Impossible(error.message))?;
        if state.open.len() >= MAX_OPEN {
            let reason = format!("too many open questions: the limit is {MAX_OPEN} for each call");
            return Err(AskError::Impossible(reason));
        }
        let (answer, answered) = oneshot::channel();
        state.last += 1;
        let number = state.last;
        state.open.push(OpenQuestion {
            number,
            question,
            is_sent: false,
            answer,
        });
        drop(state);
        self.unsent.notify_one();
        Ok(PendingAnswer {
            dialogue: self,
            number,
            answered,
        })
    }

    fn request(&self) -> ClientHandle {
        self.state.lock().request.clone()
    }
}

impl OpenQuestion {
    /// Returns the key by which the client answers the question.
    fn key(&self) -> String {
        format!("question-{}", self.number)
    }
}

/// Receiver of the answer to a question. Closes the question when dropped.
struct PendingAnswer<'a> {
    dialogue: &'a Dialogue,
    number: u64,
    answered: oneshot::Receiver<Result<RawJson, AskError>>,
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        let mut state = self.dialogue.state.lock();
        state.open.retain(|open| open.number != self.number);
    }
}

impl Ask for Dialogue {
    fn client(&self) -> ClientKey {
        self.key.clone()
    }

    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async move {
            let mut pending = self.open(question)?;
            match timeout(ANSWER_TIMEOUT, &mut pending.answered).await {
                Ok(Ok(answer)) => answer,
                _ => Err(AskError::Unanswered),
            }
        })
    }

    fn takes_rounds(&self) -> bool {
        true
    }

    fn log_level(&self) -> Option<Arc<str>> {
        Some(self.request().log_level()?.as_str().into())
    }

    fn log(&self, message: &RawJson) {
        forward_log(&self.request(), message);
    }
}

impl Progress for Dialogue {
    fn report(&self, report: RawJson) {
        self.request().progress().report(&report);
    }
}

impl fmt::Debug for Dialogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialogue").finish_non_exhaustive()
    }
}
