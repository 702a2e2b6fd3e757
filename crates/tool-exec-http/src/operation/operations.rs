use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use raw_json::RawJson;
use sha2::{Digest, Sha256};
use tokio::{sync::oneshot, time::Instant};
use tool_core::{CallContext, ErrorKind, ToolError};
use url::Url;

use super::{Operation, callback::Callback};
use crate::template::check_url;

/// Long-running operations of HTTP tools: those that no call waits for, and those that wait for a callback. Clones share them.
///
/// # Callbacks
/// A tool with `async.callback` sends its API a URL that can be used once. Whoever serves that URL passes on what the API
/// sends:
///
/// ```
/// use tool_exec_http::{CallbackError, Operations};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let operations = Operations::default();
/// // URLs are `https://tools.example.com/callbacks/<token>`.
/// operations.receive_callbacks(Some("https://tools.example.com/callbacks/"))?;
/// let unknown = operations.deliver("an-unknown-token", b"{}".to_vec());
/// assert_eq!(unknown, Err(CallbackError::Unknown));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Operations(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    parked: HashMap<OperationKey, VecDeque<Operation>>,
    n_parked: usize,
    /// Callbacks that are awaited, by the digest of their token.
    callbacks: HashMap<[u8; 32], AwaitedCallback>,
    /// URL in front of the tokens; `None` if nobody receives callbacks.
    callback_base: Option<Url>,
}

/// Callback that an operation waits for.
struct AwaitedCallback {
    sender: oneshot::Sender<RawJson>,
    expires: Instant,
}

/// Call that an operation was begun by. The same call of the same principal goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OperationKey {
    tool: [u8; 32],
    principal: Arc<str>,
    tenant: Arc<str>,
    arguments: [u8; 32],
    idempotency_key: Option<Arc<str>>,
}

/// Error of a callback that was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// There is no such callback: it was never issued, was used, or has expired.
    #[error("there is no such callback, or it was used already, or it has expired")]
    Unknown,
    /// The body is not JSON.
    #[error("the body is not JSON")]
    NotJson,
    /// The URL below which callbacks are to be received is none.
    #[error("callbacks can only be received below an `http` or `https` URL")]
    InvalidUrl,
}

/// Maximum number of operations that no call waits for.
const MAX_PARKED: usize = 1024;
/// Maximum number of parked operations of one call.
const MAX_OF_CALL: usize = 16;
/// Maximum number of callbacks that are awaited.
const MAX_CALLBACKS: usize = 4096;
/// Size of a token in bytes.
const TOKEN_BYTES: usize = 16;

impl OperationKey {
    pub(crate) fn for_call(cx: &CallContext) -> Self {
        let caller = &cx.origin.caller;
        Self {
            tool: *cx.tool().fingerprint(),
            principal: Arc::clone(&caller.principal),
            tenant: Arc::clone(&caller.tenant),
            arguments: *cx.arguments.digest(),
            idempotency_key: cx.extras.idempotency_key.clone(),
        }
    }
}

impl Operations {
    /// Sets the URL below which callbacks are received from now on, or that none are received. It ends in `/`: a token is
    /// appended.
    ///
    /// # Errors
    /// [`CallbackError::InvalidUrl`] if this is no `http` or `https` URL.
    pub fn receive_callbacks(&self, base: Option<&str>) -> Result<(), CallbackError> {
        let base = base.map(check_url).transpose();
        self.0.lock().callback_base = base.map_err(|_| CallbackError::InvalidUrl)?;
        Ok(())
    }

    /// Returns `true` if a callback with this token is awaited, so that its body is worth reading.
    #[must_use]
    pub fn awaits(&self, token: &str) -> bool {
        let table = self.0.lock();
        let awaited = table.callbacks.get(&digest(token));
        awaited.is_some_and(AwaitedCallback::is_awaited)
    }

    /// Delivers what an API sent to a callback URL, and ends the URL.
    ///
    /// # Errors
    /// If no callback with this token is awaited, or the body is not JSON. A body that is not JSON does not end the URL.
    pub fn deliver(&self, token: &str, body: Vec<u8>) -> Result<(), CallbackError> {
        if !self.awaits(token) {
            return Err(CallbackError::Unknown);
        }
        let answer = match body.is_empty() {
            true => RawJson::null(),
            false => RawJson::parse(body).map_err(|_| CallbackError::NotJson)?,
        };
        let awaited = self.0.lock().callbacks.remove(&digest(token));
        let awaited = awaited.filter(AwaitedCallback::is_awaited);
        let sender = awaited.ok_or(CallbackError::Unknown)?.sender;
        sender.send(answer).map_err(|_| CallbackError::Unknown)
    }

    /// Issues a callback URL that can be used for this time.
    ///
    /// # Errors
    /// If nobody receives callbacks here, or too many are awaited.
    pub(crate) fn issue(&self, lifetime: Duration) -> Result<Callback, ToolError> {
        let failed = |kind, message: &str| ToolError::new(kind, message);
        let mut table = self.0.lock();
        let base = table.callback_base.clone().ok_or_else(|| {
            let message = "the tool needs a callback, which this process does not receive: set `gateway.public_url` and run \
                           `toolplane serve --http`";
            failed(ErrorKind::Unavailable, message).with_no_retry()
        })?;
        table.callbacks.retain(|_, awaited| awaited.is_awaited());
        if table.callbacks.len() >= MAX_CALLBACKS {
            return Err(failed(ErrorKind::Unavailable, "too many callbacks are awaited"));
        }
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random)
            .map_err(|_| failed(ErrorKind::Internal, "no random numbers for a callback URL"))?;
        let token = raw_json::hex(&random);
        let url = base
            .join(&token)
            .map_err(|_| failed(ErrorKind::Internal, "the callback URL is not valid"))?;
        let (sender, answer) = oneshot::channel();
        let expires = Instant::now() + lifetime;
        table
            .callbacks
            .insert(digest(&token), AwaitedCallback { sender, expires });
        Ok(Callback::new(url, answer))
    }

    /// Parks an operation for the next call with its key, unless it has expired. The oldest one makes room.
    pub(crate) fn park(&self, operation: Operation) {
        if operation.expires <= Instant::now() {
            return;
        }
        let mut table = self.0.lock();
        table.drop_expired();
        if table.n_parked >= MAX_PARKED {
            table.drop_oldest();
        }
        let parked = table.parked.entry(operation.key.clone()).or_default();
        parked.push_back(operation);
        let n_dropped = parked.len().saturating_sub(MAX_OF_CALL);
        parked.drain(..n_dropped);
        table.n_parked = table.n_parked + 1 - n_dropped;
    }

    /// Takes the oldest parked operation of the same call.
    pub(crate) fn take(&self, key: &OperationKey) -> Option<Operation> {
        let mut table = self.0.lock();
        table.drop_expired();
        let parked = table.parked.get_mut(key)?;
        let operation = parked.pop_front();
        if parked.is_empty() {
            table.parked.remove(key);
        }
        table.n_parked -= usize::from(operation.is_some());
        operation
    }
}

impl AwaitedCallback {
    /// Returns `true` if its operation still waits for it.
    fn is_awaited(&self) -> bool {
        !self.sender.is_closed() && Instant::now() < self.expires
    }
}

impl Table {
    fn drop_expired(&mut self) {
        let now = Instant::now();
        self.parked.retain(|_, parked| {
            parked.retain(|operation| operation.expires > now);
            !parked.is_empty()
        });
        self.n_parked = self.parked.values().map(VecDeque::len).sum();
    }

    fn drop_oldest(&mut self) {
        let oldest = self.parked.iter();
        let oldest = oldest.min_by_key(|(_, parked)| parked.front().map(|operation| operation.begun));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        tracing::warn!("too many operations are parked: the result of the oldest one is given up");
        if let Some(parked) = self.parked.get_mut(&key) {
            parked.pop_front();
            if parked.is_empty() {
                self.parked.remove(&key);
            }
        }
        self.n_parked = self.n_parked.saturating_sub(1);
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.lock();
        f.debug_struct("Operations")
            .field("n_parked", &table.n_parked)
            .field("n_callbacks", &table.callbacks.len())
            .finish()
    }
}
