use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Sends events to a client while its request runs, and before its response.
#[derive(Debug)]
pub(crate) struct EventSender {
    /// Token under which the client wants progress, if it does.
    pub(crate) token: Option<RawJson>,
    state: Mutex<State>,
}

/// Event of one request, on its way to the stream of the response.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Message to the client.
    Frame(Vec<u8>),
    /// Request to end the stream, and to have the client resume it after this time.
    Pause(Duration),
}

#[derive(Debug)]
struct State {
    /// `None` once the request is answered.
    channel: Option<Channel>,
    /// Last amount of progress that was sent.
    progress: f64,
}

/// Channel that the events of a request go into.
#[derive(Debug, Clone)]
enum Channel {
    /// Output queue of a whole connection, over stdio.
    Connection(mpsc::Sender<Vec<u8>>),
    /// Stream of the response, over HTTP.
    Response(mpsc::Sender<Outgoing>),
}

/// Reason why an event was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The client does not read the events that wait for it.
    Full,
    /// The request is answered, or the client is gone.
    Closed,
}

impl EventSender {
    /// Sends into the output queue of a connection.
    pub(crate) fn for_connection(token: Option<RawJson>, queue: mpsc::Sender<Vec<u8>>) -> Arc<Self> {
        Self::new(token, Channel::Connection(queue))
    }

    /// Sends into the stream of a response.
    pub(crate) fn for_response(token: Option<RawJson>, events: mpsc::Sender<Outgoing>) -> Arc<Self> {
        Self::new(token, Channel::Response(events))
    }

    fn new(token: Option<RawJson>, channel: Channel) -> Arc<Self> {
        Arc::new(Self {
            token,
            state: Mutex::new(State {
                channel: Some(channel),
                progress: f64::NEG_INFINITY,
            }),
        })
    }

    /// Sends a message, unless the request is answered.
    pub(crate) fn send(&self, frame: Vec<u8>) -> Result<(), NotSent> {
        // Sent under the lock: after `close` has held it, no event of this request can follow the response.
        let state = self.state.lock();
        state.channel.as_ref().ok_or(NotSent::Closed)?.try_send(frame)
    }

    /// Sends progress if the amount has grown.
    pub(crate) fn send_progress(&self, amount: f64, frame: impl FnOnce() -> Vec<u8>) {
        let mut state = self.state.lock();
        if amount <= state.progress {
            return;
        }
        if let Some(channel) = &state.channel
            && channel.try_send(frame()).is_ok()
        {
            state.progress = amount;
        }
    }

    /// Ends the stream of the response until the client resumes it. Has no effect on a connection over stdio.
    pub(crate) fn pause(&self, retry: Duration) {
        if let Some(Channel::Response(events)) = &self.state.lock().channel {
            let _ = events.try_send(Outgoing::Pause(retry));
        }
    }

    /// Waits until the client has disconnected.
    pub(crate) async fn disconnected(&self) {
        let channel = self.state.lock().channel.clone();
        match channel {
            Some(Channel::Connection(queue)) => queue.closed().await,
            Some(Channel::Response(events)) => events.closed().await,
            None => {}
        }
    }

    /// Closes the channel: called right before the response is sent.
    pub(crate) fn close(&self) {
        self.state.lock().channel = None;
    }
}

impl Channel {
    fn try_send(&self, frame: Vec<u8>) -> Result<(), NotSent> {
        match self {
            Self::Connection(queue) => queue.try_send(frame).map_err(NotSent::from),
            Self::Response(events) => events.try_send(Outgoing::Frame(frame)).map_err(NotSent::from),
        }
    }
}

impl<T> From<TrySendError<T>> for NotSent {
    fn from(error: TrySendError<T>) -> Self {
        match error {
            TrySendError::Full(_) => Self::Full,
            TrySendError::Closed(_) => Self::Closed,
        }
    }
}
