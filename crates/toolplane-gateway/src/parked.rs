use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use mcp_server::Principal;
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::sleep};
use toolplane::core::{BoxFuture, ErrorKind, Outcome, ToolError};

use crate::{client::ANSWER, dialogue::Dialogue};

/// The calls that wait for their clients to come back with what they were asked for.
///
/// A call that nobody comes back for is cancelled after [`ANSWER`].
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    by_number: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    call: OpenCall,
    principal: Principal,
    /// Cancels the call when its time is over.
    _expiry: Owned<()>,
}

/// How many calls may wait in all.
const MAX_PARKED: usize = 256;
/// How many calls of one principal may wait. Each may hold a connection of its own to a server, of which a server has twice
/// as many unless it is set otherwise.
const MAX_OF_PRINCIPAL: usize = 8;

impl Parked {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().by_number.len()
    }

    /// Takes a call whose client was asked, under a number that is good for one time. Gives it back when there is no
    /// room for it.
    pub(crate) fn park(self: &Arc<Self>, call: OpenCall, principal: &Principal) -> Result<u64, OpenCall> {
        let mut calls = self.0.lock();
        let waiting = calls.by_number.values();
        let n_own = waiting.filter(|waiting| waiting.principal == *principal).count();
        if calls.by_number.len() >= MAX_PARKED || n_own >= MAX_OF_PRINCIPAL {
            return Err(call);
        }
        calls.last += 1;
        let number = calls.last;
        let parked = Arc::downgrade(self);
        let expiry = tokio::spawn(async move {
            sleep(ANSWER).await;
            if let Some(parked) = parked.upgrade() {
                drop(parked.take(number));
            }
        });
        let waiting = Waiting {
            call: call.apart(),
            principal: principal.clone(),
            _expiry: Owned(expiry),
        };
        calls.by_number.insert(number, waiting);
        Ok(number)
    }

    /// The call that was parked under this number, for the one who comes back for it.
    pub(crate) fn take(&self, number: u64) -> Option<OpenCall> {
        let waiting = self.0.lock().by_number.remove(&number)?;
        Some(waiting.call)
    }

    /// Cancels all that wait, and returns when they have ended.
    pub(crate) async fn cancel_all(&self) {
        let waiting: Vec<_> = self.0.lock().by_number.drain().collect();
        for (_, waiting) in waiting {
            waiting.call.cancel().await;
        }
    }
}

/// How long a question waits for others that are asked at the same time: each round takes the client another request.
const TOGETHER: Duration = Duration::from_millis(20);

/// How a call came out.
type Ended = Result<Outcome, ToolError>;

/// A call that is under way, and what it asks. Dropping it cancels the call.
pub(crate) struct OpenCall {
    pub(crate) dialogue: Arc<Dialogue>,
    run: Run,
}

/// What works on a call.
enum Run {
    /// Whoever waits for it: as long as nothing was asked.
    Here(BoxFuture<'static, Ended>),
    /// A task of its own: it goes on while nobody waits.
    Apart(Owned<Ended>),
}

/// What comes next of a call.
pub(crate) enum Next {
    Ended(Ended),
    /// There are questions to put.
    Asked,
}

impl OpenCall {
    pub(crate) fn new(dialogue: Arc<Dialogue>, call: BoxFuture<'static, Ended>) -> Self {
        Self {
            dialogue,
            run: Run::Here(call),
        }
    }

    /// Waits until the call ends or asks.
    pub(crate) async fn next(&mut self) -> Next {
        let Self { dialogue, run } = self;
        let ended = async {
            match run {
                Run::Here(call) => call.await,
                Run::Apart(task) => (&mut task.0).await.unwrap_or_else(|_| {
                    let message = "the call broke off";
                    Err(ToolError::new(ErrorKind::Internal, message))
                }),
            }
        };
        let asked = async {
            dialogue.asked().await;
            sleep(TOGETHER).await;
        };
        tokio::select! {
            biased;
            ended = ended => Next::Ended(ended),
            () = asked => Next::Asked,
        }
    }

    /// Cancels the call, and returns when it has ended.
    async fn cancel(self) {
        if let Run::Apart(mut task) = self.run {
            task.0.abort();
            // It was aborted, or has ended by itself.
            let _ = (&mut task.0).await;
        }
    }

    fn apart(self) -> Self {
        let run = match self.run {
            Run::Here(call) => Run::Apart(Owned(tokio::spawn(call))),
            apart @ Run::Apart(_) => apart,
        };
        Self { run, ..self }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall").finish_non_exhaustive()
    }
}

/// A task that ends with this.
#[derive(Debug)]
pub(crate) struct Owned<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
