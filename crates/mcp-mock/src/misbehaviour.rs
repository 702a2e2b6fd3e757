use std::time::Duration;

/// One way in which an answer does not come as it should, or a notification, or a stream that a client opens.
///
/// All of an answer's misbehaviours act together: first what changes the message, then what stands around it, then how
/// the bytes are delivered. Over stdio a message is a line. Over HTTP it is the body, or one event if the answer is
/// sent as events, which it is when more than one message has to be sent and the client takes events. Questions that come
/// before an answer do not misbehave. A client of a legacy session can come back for the rest of a stream that broke off, as
/// it can with any server that gives its events ids.
///
/// # Notifications and streams
/// A reply to the method of a notification ([`MockServerBuilder::on`](crate::MockServerBuilder::on)) says how the next one is
/// sent, to each client that it is for: its delays, [`MockReply::never`](crate::MockReply::never), which leaves it out, and all
/// misbehaviours that are not about a request. A reply to `GET` says how the next stream is opened on which a legacy client
/// listens over HTTP: its delays, `never`, and [`Status`](Self::Status), [`DropSession`](Self::DropSession),
/// [`Close`](Self::Close), [`ContentType`](Self::ContentType), [`EmptyStream`](Self::EmptyStream),
/// [`GarbageBefore`](Self::GarbageBefore) and [`Cut`](Self::Cut), by the bytes of the whole stream and at once by default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misbehavior {
    /// The answer carries an id that nobody asked with.
    WrongId,
    /// The answer carries the id as a string.
    StringId,
    /// The answer carries no id.
    WithoutId,
    /// In place of the answer, this text; `{id}` in it stands for the id.
    Raw(String),
    /// The answer is padded to at least so many bytes.
    Oversize(usize),
    /// The answer holds bytes that are no UTF-8.
    InvalidUtf8,
    /// The answer comes twice.
    Twice,
    /// This text, which may be no message, is sent before the answer.
    GarbageBefore(String),
    /// This text, which may be no message, is sent after the answer.
    GarbageAfter(String),
    /// So many notifications that belong to nothing are sent before the answer.
    Flood(usize),
    /// Half of the answer is sent, and the rest after this time.
    PauseHalfway(Duration),
    /// The answer is sent in pieces of so many bytes, with this time in between.
    Drip {
        /// How large a piece is.
        bytes: usize,
        /// The time between two pieces.
        every: Duration,
    },
    /// So many bytes of the answer are sent, half of it by default, and then the connection is closed.
    Cut(Option<usize>),
    /// The connection is closed in place of the answer.
    Close,
    /// Over stdio, nothing more is read for this time.
    Deaf(Duration),
    /// Over HTTP, the request is not worked on and answered with this status, headers and body. 202 says that it was
    /// taken for a notification.
    Status {
        /// The status.
        status: u16,
        /// The headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// Over HTTP, the answer says that it is of this media type.
    ContentType(String),
    /// Over HTTP, the answer is missing from its stream of events, which ends.
    EmptyStream,
    /// Over HTTP, the answer comes in a stream of events, as this text in place of its event; `{data}` in it stands for
    /// the message. What a stream may hold and what no stream should can be written like this: other ids, `retry`,
    /// comments, several lines of data, other ends of lines.
    Event(String),
    /// Over HTTP, the session is forgotten: 404 for this request and all that follow in it.
    DropSession,
}

impl Misbehavior {
    /// A status without a body, such as 503, in place of an answer over HTTP.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }
}
