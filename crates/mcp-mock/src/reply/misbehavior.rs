use std::time::Duration;

/// One way in which an answer, a notification or an event stream is broken.
///
/// All misbehaviors of an answer act together: first those that change the message, then those that add messages around
/// it, then those that change the delivery of the bytes. Over stdio a message is a line. Over HTTP it is the body, or
/// one event if the answer is sent as events, which it is if several messages have to be sent and the client accepts
/// events. Questions before an answer do not misbehave. A client of a legacy session can resume a stream that broke
/// off, as with any server that gives its events ids.
///
/// # Notifications and streams
/// A reply to the method of a notification ([`MockServerBuilder::on`](crate::MockServerBuilder::on)) describes how the
/// next one is sent, to each of its clients: its delays, [`MockReply::never`](crate::MockReply::never), which drops it,
/// and all misbehaviors that do not concern a request. A reply to `GET` describes how the next stream of a legacy
/// client over HTTP is opened: its delays, `never`, and [`Status`](Self::Status), [`DropSession`](Self::DropSession),
/// [`Close`](Self::Close), [`ContentType`](Self::ContentType), [`EmptyStream`](Self::EmptyStream),
/// [`GarbageBefore`](Self::GarbageBefore) and [`Cut`](Self::Cut), which counts the bytes of the whole stream and cuts
/// at once by default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misbehavior {
    /// Answers with an id that no request has.
    WrongId,
    /// Answers with the id as a string.
    StringId,
    /// Answers without an id.
    WithoutId,
    /// Sends this text instead of the answer; `{id}` in it is replaced by the id.
    Raw(String),
    /// Pads the answer to at least this many bytes.
    Oversize(usize),
    /// Inserts bytes into the answer that are not UTF-8.
    InvalidUtf8,
    /// Sends the answer twice.
    Twice,
    /// Sends this text before the answer; it need not be a message.
    GarbageBefore(String),
    /// Sends this text after the answer; it need not be a message.
    GarbageAfter(String),
    /// Sends this many unrelated notifications before the answer.
    Flood(usize),
    /// Sends half of the answer, and the rest after this time.
    PauseHalfway(Duration),
    /// Sends the answer in pieces with pauses.
    Drip {
        /// Size of a piece, in bytes.
        bytes: usize,
        /// Time between two pieces.
        every: Duration,
    },
    /// Closes the connection after this many bytes of the answer; half of it by default.
    Cut(Option<usize>),
    /// Closes the connection instead of answering.
    Close,
    /// Stops reading for this time. Stdio only.
    Deaf(Duration),
    /// Answers with this status, headers and body without handling the request. 202 means that it was taken for a
    /// notification. HTTP only.
    Status {
        /// Status code.
        status: u16,
        /// Headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// Body.
        body: String,
    },
    /// Declares this media type for the answer. HTTP only.
    ContentType(String),
    /// Ends the event stream without the answer. HTTP only.
    EmptyStream,
    /// Sends the answer in an event stream, with this text instead of its event; `{data}` in it is replaced by the
    /// message. Any valid or invalid event can be written like this: other ids, `retry`, comments, several lines of
    /// data, other line ends. HTTP only.
    Event(String),
    /// Forgets the session: 404 for this and all further requests of it. HTTP only.
    DropSession,
}

impl Misbehavior {
    /// Returns a status without a body, such as 503, that replaces an answer over HTTP.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }
}
