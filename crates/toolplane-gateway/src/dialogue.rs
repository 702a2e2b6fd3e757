use std::{fmt, sync::Arc};

use mcp_server::{ClientHandle, RequestContext};
use parking_lot::Mutex;
use raw_json::{JsonKind, RawJson};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};
use toolplane::core::{Ask, AskError, BoxFuture, ClientKey, Progress, Question};

use crate::client::{self, ANSWER};

/// What a call asks a client of the modern era and tells it, over as many requests as that takes: a question is the
/// answer to one request, and what the client gives comes with the next.
pub(crate) struct Dialogue {
    key: ClientKey,
    capabilities: RawJson,
    state: Mutex<State>,
    /// There is a question that was not put yet.
    news: Notify,
}

struct State {
    /// The request that waits now, or waited last: nothing gets through to one that is answered.
    request: ClientHandle,
    last: u64,
    /// The questions without an answer, oldest first.
    open: Vec<Open>,
}

struct Open {
    number: u64,
    question: Question,
    is_put: bool,
    answer: oneshot::Sender<Result<RawJson, AskError>>,
}

/// How many questions one call may have open.
const MAX_OPEN: usize = 64;

impl Dialogue {
    pub(crate) fn new(cx: &RequestContext) -> Arc<Self> {
        let request = cx.client();
        Arc::new(Self {
            key: client::key(cx),
            capabilities: client::askable(request.capabilities()),
            state: Mutex::new(State {
                request,
                last: 0,
                open: Vec::new(),
            }),
            news: Notify::new(),
        })
    }

    /// Goes on with another request, which brings what the client gave by the keys of its questions. A question that it
    /// gave nothing for is put again.
    pub(crate) fn go_on(&self, request: ClientHandle, given: Option<&RawJson>) {
        let mut state = self.state.lock();
        state.request = request;
        for open in std::mem::take(&mut state.open) {
            let answer = given.and_then(|given| given.get(&open.key()));
            match answer.filter(|answer| open.is_put && answer.kind() == JsonKind::Object) {
                // Who asked may have gone meanwhile.
                Some(answer) => drop(open.answer.send(Ok(answer))),
                None => state.open.push(Open {
                    is_put: false,
                    ..open
                }),
            }
        }
        let is_open = !state.open.is_empty();
        drop(state);
        if is_open {
            self.news.notify_one();
        }
    }

    /// Waits until there is a question to put.
    pub(crate) async fn asked(&self) {
        while !self.state.lock().open.iter().any(|open| !open.is_put) {
            self.news.notified().await;
        }
    }

    /// The questions to be put now, by their keys: every open one that was not put yet.
    pub(crate) fn put(&self) -> Vec<(String, Question)> {
        let mut state = self.state.lock();
        let new = state.open.iter_mut().filter(|open| !open.is_put);
        new.map(|open| {
            open.is_put = true;
            (open.key(), open.question.clone())
        })
        .collect()
    }

    /// Tells whoever asks that there is no way to put the questions.
    pub(crate) fn refuse(&self, why: &str) {
        let open = std::mem::take(&mut self.state.lock().open);
        for open in open {
            let _ = open.answer.send(Err(AskError::Impossible(why.to_owned())));
        }
    }

    /// Opens a question, unless the client cannot be asked this.
    fn open(&self, question: Question) -> Result<Asking<'_>, AskError> {
        let mut state = self.state.lock();
        state
            .request
            .check_askable(&question.method, question.params.as_ref())
            .map_err(|error| AskError::Impossible(error.message))?;
        if state.open.len() >= MAX_OPEN {
            let why = format!("{MAX_OPEN} questions of the call are open already");
            return Err(AskError::Impossible(why));
        }
        let (answer, answered) = oneshot::channel();
        state.last += 1;
        let number = state.last;
        state.open.push(Open {
            number,
            question,
            is_put: false,
            answer,
        });
        drop(state);
        self.news.notify_one();
        Ok(Asking {
            dialogue: self,
            number,
            answered,
        })
    }

    fn request(&self) -> ClientHandle {
        self.state.lock().request.clone()
    }
}

impl Open {
    /// What the client knows the question by.
    fn key(&self) -> String {
        format!("question-{}", self.number)
    }
}

/// A question that is open until this is dropped.
struct Asking<'a> {
    dialogue: &'a Dialogue,
    number: u64,
    answered: oneshot::Receiver<Result<RawJson, AskError>>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.dialogue
            .state
            .lock()
            .open
            .retain(|open| open.number != number);
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
            let mut asking = self.open(question)?;
            match timeout(ANSWER, &mut asking.answered).await {
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
        client::log(&self.request(), message);
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
