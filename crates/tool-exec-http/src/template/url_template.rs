use raw_json::{JsonKind, RawJson};
use url::{Host, Url};

use super::{
    encode,
    query_param::QueryParam,
    text::{Inserted, Piece, Scope, TemplateError, TextTemplate},
};

/// URL template, split into parts so that every inserted value is encoded for its part.
#[derive(Debug, Clone)]
pub(crate) struct UrlTemplate {
    /// Scheme, host and port: everything before the path and the query.
    origin: TextTemplate,
    path: TextTemplate,
    pub query: Vec<QueryParam>,
}

/// Error of rendering a URL.
#[derive(Debug)]
pub(crate) enum UrlError {
    /// Invalid arguments.
    Arguments(TemplateError),
    /// Values of the operator that do not result in a URL. The text contains none of them.
    Values(&'static str),
}

impl From<TemplateError> for UrlError {
    fn from(unusable: TemplateError) -> Self {
        Self::Arguments(unusable)
    }
}

impl UrlTemplate {
    /// Parses a URL template.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("must not contain control characters".to_owned());
        }
        let (origin, path, query) = split(&TextTemplate::parse(text)?)?;
        check_origin(&origin)?;
        let mut shape = String::new();
        for piece in &path.0 {
            shape.push_str(match piece {
                Piece::Literal(text) => text,
                _ => "{}",
            });
        }
        if shape.split('/').any(is_dots) {
            return Err("must not have `.` or `..` segments in its path".to_owned());
        }
        let address = Self {
            origin,
            path,
            query: QueryParam::parse_all(&query)?,
        };
        // A literal origin is checked now; any other is checked in every call.
        if let Some(origin) = address.origin.literal() {
            check_url(origin).map_err(str::to_owned)?;
        }
        Ok(address)
    }

    /// Returns the first argument in the host, if any.
    pub(crate) fn host_argument(&self) -> Option<&str> {
        self.origin.arguments().next()
    }

    /// Returns the origin if it is the same in every call.
    pub(crate) fn constant(&self) -> Option<Url> {
        self.origin.literal().and_then(|origin| Url::parse(origin).ok())
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &TextTemplate> {
        let query = self.query.iter().flat_map(QueryParam::texts);
        [&self.origin, &self.path].into_iter().chain(query)
    }

    /// Renders the URL of one call, without the query.
    pub(crate) fn render(&self, scope: &Scope<'_>) -> Result<Url, UrlError> {
        let origin = self.origin.render(scope, |out, inserted| {
            if let Inserted::Argument(name, text) = inserted
                && !is_label(text)
            {
                let reason = "must be one label of a host name: letters, digits and hyphens";
                return Err(TemplateError::Argument(name.to_owned(), reason.to_owned()));
            }
            out.push_str(inserted.text());
            Ok(())
        })?;
        // Checked without the path: if the host is empty, the URL standard takes the path's first segment as the host.
        let base = check_url(&origin).map_err(UrlError::Values)?;
        let mut last = String::new();
        let path = self.path.render(scope, |out, inserted| match inserted {
            Inserted::Value(text) => {
                encode::push_path(out, text);
                Ok(())
            }
            Inserted::Argument(name, "") => Err(TemplateError::Argument(
                name.to_owned(),
                "must not be empty".to_owned(),
            )),
            Inserted::Argument(name, _) if scope.argument(name).is_some_and(is_container) => {
                let reason = "must be a single value, since it is part of the path";
                Err(TemplateError::Argument(name.to_owned(), reason.to_owned()))
            }
            Inserted::Argument(name, text) => {
                name.clone_into(&mut last);
                encode::push_value(out, text);
                Ok(())
            }
        })?;
        // Checked on the whole path: two adjacent arguments may form a dot segment that neither of them is.
        if !last.is_empty() && path.split('/').any(is_dots) {
            let reason = "must not make a segment `.` or `..` of the path";
            return Err(TemplateError::Argument(last, reason.to_owned()).into());
        }
        let whole = if origin.ends_with('/') && path.starts_with('/') {
            format!("{}{path}", origin.trim_end_matches('/'))
        } else {
            format!("{origin}{path}")
        };
        let url = check_url(&whole).map_err(UrlError::Values)?;
        if url.origin() != base.origin() {
            return Err(UrlError::Values("does not keep its host"));
        }
        Ok(url)
    }
}

/// Splits a template into origin, path and query.
fn split(text: &TextTemplate) -> Result<(TextTemplate, TextTemplate, TextTemplate), String> {
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    let mut place = 0;
    let mut schemed = false;
    for piece in &text.0 {
        let Piece::Literal(literal) = piece else {
            parts[place].push(piece.clone());
            continue;
        };
        let mut rest = literal.as_str();
        if rest.contains('#') {
            return Err("must not have a fragment (`#…`): it is never sent".to_owned());
        }
        if place == 0 {
            let after_scheme = rest.find("://").filter(|_| !schemed).map_or(0, |at| at + 3);
            schemed |= after_scheme > 0;
            if !schemed && parts[0].is_empty() {
                return Err("must begin with `http://` or `https://`".to_owned());
            }
            let end = rest[after_scheme..]
                .find(['/', '?', '\\'])
                .map_or(rest.len(), |at| after_scheme + at);
            push(&mut parts[0], &rest[..end]);
            rest = &rest[end..];
            place = usize::from(!rest.is_empty());
        }
        if place == 1
            && let Some(mark) = rest.find('?')
        {
            push(&mut parts[1], &rest[..mark]);
            rest = &rest[mark + 1..];
            place = 2;
        }
        push(&mut parts[place], rest);
    }
    let [origin, path, query] = parts.map(TextTemplate);
    Ok((origin, path, query))
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Literal(text.to_owned()));
    }
}

/// Checks that arguments are part of the host's name, never of the scheme, the user or the port.
fn check_origin(origin: &TextTemplate) -> Result<(), String> {
    let mut before = String::new();
    for piece in &origin.0 {
        match piece {
            Piece::Literal(text) => before.push_str(text),
            Piece::Reference(_) => before.push_str("${}"),
            Piece::Argument(name) => {
                let host = before.split_once("://").map(|(_, host)| host);
                if host.is_none_or(|host| host.contains(['@', ':']) || host.contains("${}")) {
                    return Err(format!(
                        "`{{{name}}}` is not allowed here: an argument may be part of the host's name, the path or the query"
                    ));
                }
            }
        }
    }
    if before.contains('@') {
        return Err("must not contain a user or password; put them into a header".to_owned());
    }
    Ok(())
}

/// Parses a rendered URL and checks it.
pub(crate) fn check_url(text: &str) -> Result<Url, &'static str> {
    // The WHATWG URL Standard removes tabs and line breaks silently; here they indicate an injection.
    if text.chars().any(char::is_control) {
        return Err("contains control characters");
    }
    let url = Url::parse(text).map_err(|_| "is not a URL")?;
    check_parsed(&url)?;
    Ok(url)
}

/// Checks a URL: scheme `http` or `https`, a host, no user, no fragment.
pub(crate) fn check_parsed(url: &Url) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") {
        Err("must begin with `http://` or `https://`")
    } else if !url.username().is_empty() || url.password().is_some() {
        Err("must not contain a user or password; put them into a header")
    } else if url.fragment().is_some() {
        Err("must not have a fragment (`#…`): it is never sent")
    } else if url.host().is_none_or(|host| host == Host::Domain("")) {
        Err("has no host")
    } else {
        Ok(())
    }
}

fn is_container(value: &RawJson) -> bool {
    matches!(value.kind(), JsonKind::Array | JsonKind::Object)
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use percent_encoding::percent_decode_str;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
    use raw_json::RawJson;

    use super::UrlTemplate;
    use crate::template::Scope;

    /// Texts with many characters that have a meaning in URLs.
    fn hostile() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "/", "..", ".", "%2e", "%2F", "\\", "?", "#", "&", "=", "@", ":", "//", "\n", "\t", "ü", "a",
        ]);
        let made = prop::collection::vec(parts, 0..8).prop_map(|parts| parts.concat());
        prop::strategy::Union::new([made.boxed(), any::<String>().boxed()])
    }

    proptest! {
        #[test]
        fn an_argument_stays_where_it_stands(text in hostile()) {
            let address = UrlTemplate::parse("https://host.example:8443/a/{x}/b?q={x}&z=1").unwrap();
            let arguments = [("x".into(), RawJson::from(text.as_str()))];
            let scope = Scope { arguments: &arguments, values: &HashMap::new() };
            let Ok(mut url) = address.render(&scope) else {
                prop_assert_eq!(true, matches!(&*text, "" | "." | ".."));
                return Ok(());
            };
            let mut query = String::new();
            for pair in &address.query {
                pair.push_to(&mut query, &scope).unwrap();
            }
            url.set_query(Some(&query));
            prop_assert_eq!(url.origin().ascii_serialization(), "https://host.example:8443");
            prop_assert_eq!(url.fragment(), None);
            let segments: Vec<String> = url
                .path_segments()
                .unwrap()
                .map(|segment| percent_decode_str(segment).decode_utf8().unwrap().into_owned())
                .collect();
            prop_assert_eq!(segments, ["a", &text, "b"]);
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(pairs, [("q".to_owned(), text), ("z".to_owned(), "1".to_owned())]);
        }
    }
}
