use raw_json::RawJson;

use crate::{Id, RpcError, code};

/// Why bytes are no message, and which call they were about as far as that can be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    kind: ParseErrorKind,
    id: Option<RawJson>,
    #[source]
    source: Option<raw_json::JsonError>,
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The bytes are no JSON.
    #[error("the message is no JSON")]
    Json,
    /// Arrays and objects are nested too deep.
    #[error("the message is nested too deep")]
    TooDeep,
    /// A key stands twice in an object.
    #[error("the message has the key `{0}` twice")]
    DuplicateKey(String),
    /// A key differs from one that has a meaning in case, compatibility forms or characters that nobody sees only: in the
    /// message, in its `params` or in `_meta` there.
    #[error("the message has the key `{0}`, which some readers take for another")]
    CaseVariant(String),
    /// The message is an array.
    #[error("batches are not supported; send one message at a time")]
    Batch,
    /// A batch holds nothing, or too much.
    #[error("a batch must hold 1 to {max} messages", max = crate::MAX_BATCH)]
    BatchLength,
    /// The message is no object.
    #[error("the message is no JSON object")]
    NotAnObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// The id is null, a fraction, a container or too long.
    #[error("`id` must be an integer or a string of at most 1,024 bytes")]
    Id,
    /// The method is no string, or too long.
    #[error("`method` must be a string of at most 256 bytes")]
    Method,
    /// The parameters are neither an object nor left out.
    #[error("`params` must be an object")]
    Params,
    /// There is neither a method, nor a result, nor an error.
    #[error("the message has neither `method`, `result` nor `error`")]
    Empty,
    /// There is more than one of method, result and error.
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

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }

    /// The `id` of the message if one could be read, in whatever form it was written.
    #[must_use]
    pub fn id(&self) -> Option<&RawJson> {
        self.id.as_ref()
    }

    /// The id to answer under: that of the message if it is one that a request may have. Any other is answered as if
    /// it could not be read, since its sender may not be able to read it either.
    #[must_use]
    pub fn answer_id(&self) -> Option<&RawJson> {
        self.id().filter(|id| Id::new(id).is_some())
    }

    /// The error to answer with.
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
