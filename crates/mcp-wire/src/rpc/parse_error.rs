use raw_json::RawJson;

use crate::{Id, RpcError, code};

/// Reason why bytes are not a message, with the id of the call that they belong to, if it could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    kind: ParseErrorKind,
    id: Option<RawJson>,
    #[source]
    source: Option<raw_json::JsonError>,
}

/// Kind of a [`ParseError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The bytes are not JSON.
    #[error("the message is not JSON")]
    Json,
    /// Arrays and objects are nested too deep.
    #[error("the message is nested too deep")]
    TooDeep,
    /// An object has a duplicate key.
    #[error("the message has the key `{0}` twice")]
    DuplicateKey(String),
    /// A key of the message, its `params` or their `_meta` is a look-alike of one with a meaning: it differs only in case,
    /// compatibility forms, spaces or invisible characters, or it looks the same.
    #[error("the message has the key `{0}`, which some readers mistake for another")]
    LookAlikeKey(String),
    /// The message is an array.
    #[error("batches are not supported; send one message at a time")]
    Batch,
    /// A batch is empty, or too long.
    #[error("a batch must hold 1 to {max} messages", max = crate::MAX_BATCH)]
    BatchLength,
    /// The message is not an object.
    #[error("the message is not a JSON object")]
    NotAnObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// The id is null, a fraction, a container or too long.
    #[error("`id` must be an integer or a string of at most 1,024 bytes")]
    Id,
    /// The method is not a string, or too long.
    #[error("`method` must be a string of at most 256 bytes")]
    Method,
    /// The parameters are present and not an object.
    #[error("`params` must be an object")]
    Params,
    /// The message has no method, no result and no error.
    #[error("the message has neither `method`, `result` nor `error`")]
    Empty,
    /// The message has more than one of method, result and error.
    #[error("the message has more than one of `method`, `result` and `error`")]
    Ambiguous,
}

impl ParseError {
    pub(crate) fn new(kind: ParseErrorKind) -> Self {
        Self {
            kind,
            id: None,
            source: None,
        }
    }

    pub(crate) fn json(error: raw_json::JsonError) -> Self {
        let kind = match error.kind() {
            raw_json::JsonErrorKind::TooDeep(_) => ParseErrorKind::TooDeep,
            raw_json::JsonErrorKind::DuplicateKey(key) => ParseErrorKind::DuplicateKey(key.clone()),
            _ => ParseErrorKind::Json,
        };
        Self {
            kind,
            id: None,
            source: Some(error),
        }
    }

    pub(crate) fn about(mut self, id: Option<RawJson>) -> Self {
        self.id = id;
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }

    /// Returns the `id` of the message if one could be read, in whatever form it was written.
    #[must_use]
    pub fn id(&self) -> Option<&RawJson> {
        self.id.as_ref()
    }

    /// Returns the id for the response: that of the message if it is valid for a request. An invalid id is treated as
    /// unreadable, since its sender may not be able to read it either.
    #[must_use]
    pub fn answer_id(&self) -> Option<&RawJson> {
        self.id().filter(|id| Id::new(id).is_some())
    }

    /// Returns the error to respond with.
    #[must_use]
    pub fn to_rpc_error(&self) -> RpcError {
        let code = match self.kind {
            ParseErrorKind::Json => code::PARSE_ERROR,
            _ => code::INVALID_REQUEST,
        };
        let message = match &self.source {
            Some(source) if self.kind == ParseErrorKind::Json => format!("{self}: {source}"),
            _ => self.to_string(),
        };
        RpcError::new(code, message)
    }
}
