use http::{HeaderMap, HeaderValue};
use mcp_wire::{RpcError, code, header, meta_key};

/// Headers that the transport reads, found in one pass, which takes as long as three lookups.
#[derive(Debug, Default)]
pub(crate) struct KnownHeaders<'a> {
    pub(crate) host: FoundHeader<'a>,
    pub(crate) origin: FoundHeader<'a>,
    pub(crate) accept: FoundHeader<'a>,
    pub(crate) content_type: FoundHeader<'a>,
    pub(crate) content_encoding: FoundHeader<'a>,
    pub(crate) session: FoundHeader<'a>,
    pub(crate) version: FoundHeader<'a>,
    pub(crate) method: FoundHeader<'a>,
    pub(crate) name: FoundHeader<'a>,
    pub(crate) trace: FoundHeader<'a>,
}

/// Value of one header, if it is present.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FoundHeader<'a> {
    pub(crate) first: Option<&'a HeaderValue>,
    pub(crate) is_repeated: bool,
}

impl<'a> KnownHeaders<'a> {
    pub(crate) fn from_map(headers: &'a HeaderMap) -> Self {
        let mut known = Self::default();
        for (name, value) in headers {
            let found = match name.as_str() {
                "host" => &mut known.host,
                "origin" => &mut known.origin,
                "accept" => &mut known.accept,
                "content-type" => &mut known.content_type,
                "content-encoding" => &mut known.content_encoding,
                header::SESSION_ID => &mut known.session,
                header::PROTOCOL_VERSION => &mut known.version,
                header::METHOD => &mut known.method,
                header::NAME => &mut known.name,
                meta_key::TRACE_PARENT => &mut known.trace,
                _ => continue,
            };
            found.is_repeated = found.first.is_some();
            found.first = found.first.or(Some(value));
        }
        known
    }
}

impl<'a> FoundHeader<'a> {
    /// Returns the only value of the header. Fails if the header is repeated or is not text.
    pub(crate) fn single(self, name: &str) -> Result<Option<&'a str>, RpcError> {
        let Some(value) = self.first else {
            return Ok(None);
        };
        if self.is_repeated {
            return Err(mismatch(format!("the header `{name}` is repeated")));
        }
        let text = value.to_str();
        let text = text.map_err(|_| mismatch(format!("the header `{name}` has invalid characters")))?;
        Ok(Some(text))
    }
}

/// Returns the error for a header that is invalid, or contradicts the body.
pub(super) fn mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}
