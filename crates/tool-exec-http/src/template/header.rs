use http::{HeaderName, HeaderValue, header::COOKIE};
use tool_core::{Provider, Reference};

use super::text::{Piece, Scope, TemplateError, TextTemplate};

/// Template of a request header.
#[derive(Debug, Clone)]
pub(crate) struct HeaderTemplate {
    pub name: HeaderName,
    pub value: TextTemplate,
}

/// Error of rendering a header.
#[derive(Debug)]
pub(crate) enum HeaderError {
    /// Invalid argument.
    Argument(TemplateError),
    /// Invalid value of the operator in the header of this name.
    Value(HeaderName),
}

/// Headers about framing, routing and compression, which only the client sets.
const FORBIDDEN: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-http-method-override",
];

impl HeaderTemplate {
    /// Parses a header of the settings.
    pub(crate) fn parse(name: &str, value: &str) -> Result<Self, String> {
        Ok(Self {
            name: check_name(name)?,
            value: check_value(TextTemplate::parse(value)?)?,
        })
    }

    /// Parses a header in which braces are plain text.
    pub(crate) fn fixed(name: &str, value: &str) -> Result<Self, String> {
        Ok(Self {
            name: check_name(name)?,
            value: check_value(TextTemplate::fixed(value)?)?,
        })
    }

    /// Refuses an argument that would add a cookie to those that the operator has set (RFC 6265, section 4.2.1).
    fn check_cookies(&self, scope: &Scope<'_>) -> Result<(), TemplateError> {
        if self.name != COOKIE || self.value.sole_argument().is_some() {
            return Ok(());
        }
        let adds_one = |name: &&str| scope.text(name).is_ok_and(|text| text.contains([';', ',']));
        match self.value.arguments().find(adds_one) {
            Some(name) => Err(TemplateError::Argument(
                name.to_owned(),
                "must not contain `;` or `,`: they would add another cookie".to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// Renders the header of one call. Returns `None` if one of its arguments is absent.
    pub(crate) fn render(&self, scope: &Scope<'_>) -> Result<Option<HeaderValue>, HeaderError> {
        self.check_cookies(scope).map_err(HeaderError::Argument)?;
        let text = match self.value.plain(scope) {
            Ok(text) => text,
            Err(TemplateError::Absent(_)) => return Ok(None),
            Err(unusable) => return Err(HeaderError::Argument(unusable)),
        };
        // A value from a file or a shell often ends in a line break.
        let Some(mut value) = header_value(text.trim_matches(['\r', '\n', ' ', '\t'])) else {
            let unfit = |name: &&str| scope.text(name).is_ok_and(|text| header_value(&text).is_none());
            let culprit = self.value.arguments().find(unfit);
            return Err(culprit.map_or_else(
                || HeaderError::Value(self.name.clone()),
                |name| {
                    let reason = "contains characters that are not allowed in a header".to_owned();
                    HeaderError::Argument(TemplateError::Argument(name.to_owned(), reason))
                },
            ));
        };
        value.set_sensitive(self.value.references().next().is_some());
        Ok(Some(value))
    }
}

/// Header from an environment variable.
pub(crate) enum EnvironmentHeader {
    /// Header with the variable's value.
    Header(HeaderTemplate),
    /// Required variable. If no other part uses it, its value becomes this header.
    Needed(Reference, HeaderTemplate),
}

impl EnvironmentHeader {
    /// Parses `Header=NAME`, `Header: NAME` or `NAME`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (header, variable) = match text.split_once(['=', ':']) {
            Some((header, variable)) => (Some(header.trim()), variable.trim()),
            None => (None, text.trim()),
        };
        let usable = variable.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && variable
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !usable {
            return Err(format!("invalid name of an environment variable: `{variable}`"));
        }
        let reference = Reference::new(Provider::Environment, variable.to_owned());
        let value = TextTemplate(vec![Piece::Reference(reference.clone())]);
        Ok(match header {
            Some(header) => Self::Header(HeaderTemplate {
                name: check_name(header)?,
                value,
            }),
            None => Self::Needed(
                reference,
                HeaderTemplate {
                    name: check_name(&variable.replace('_', "-"))?,
                    value,
                },
            ),
        })
    }
}

pub(crate) fn check_name(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("invalid header name `{}`", name.escape_debug()))?;
    if FORBIDDEN.contains(&parsed.as_str()) || parsed.as_str().starts_with("proxy-") {
        return Err(format!("`{parsed}` is set by the client and cannot be given"));
    }
    Ok(parsed)
}

/// Returns a header's value if it consists of visible ASCII, spaces and tabs. Servers interpret other bytes differently
/// (RFC 9110, section 5.5).
fn header_value(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    HeaderValue::from_str(text).ok().filter(|_| plain)
}

fn check_value(value: TextTemplate) -> Result<TextTemplate, String> {
    let plain = value.0.iter().all(|piece| match piece {
        Piece::Literal(text) => header_value(text).is_some(),
        _ => true,
    });
    if plain {
        Ok(value)
    } else {
        Err("contains characters that are not allowed in a header".to_owned())
    }
}
