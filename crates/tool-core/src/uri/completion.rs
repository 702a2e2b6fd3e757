use raw_json::RawJson;

/// Request to complete a variable of a URI template, and the URIs of its values.
///
/// Rules for resources apply to completions as well: a value whose URI must not be read would reveal that the
/// resource exists.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_core::UriCompletion;
///
/// let arguments = RawJson::parse(r#"{"argument": {"name": "path", "value": "s"}}"#)?;
/// let completion = UriCompletion::new("file:///{+path}", &arguments);
/// let result = RawJson::parse(r#"{"completion": {"values": ["secret/a", "some"], "total": 2}}"#)?;
/// let shown = completion.retain(&result, |uri| !uri.contains("/secret/"));
/// assert!(!shown.as_str().contains("secret") && shown.as_str().contains("some"));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone)]
pub struct UriCompletion<'a> {
    template: &'a str,
    name: String,
    /// Values of other variables that the caller has chosen.
    chosen: Vec<(String, String)>,
}

impl<'a> UriCompletion<'a> {
    /// Reads the arguments of `completion/complete`: `argument`, and `context` with the values chosen earlier.
    #[must_use]
    pub fn new(template: &'a str, arguments: &RawJson) -> Self {
        let argument = arguments.get("argument");
        let name = argument.and_then(|argument| argument.get("name")?.string());
        let chosen = arguments
            .get("context")
            .and_then(|context| context.get("arguments"));
        let chosen = chosen.iter().flat_map(RawJson::members);
        Self {
            template,
            name: name.unwrap_or_default(),
            chosen: chosen
                .filter_map(|(name, value)| Some((name.into_owned(), value.string()?)))
                .collect(),
        }
    }

    /// Removes the values whose URI `is_kept` rejects, and then the total number of values.
    #[must_use]
    pub fn retain(&self, result: &RawJson, is_kept: impl Fn(&str) -> bool) -> RawJson {
        let Some(completion) = result.get("completion") else {
            return result.clone();
        };
        let values: Vec<RawJson> = completion.get("values").iter().flat_map(RawJson::items).collect();
        let is_kept = |value: &RawJson| match value.string() {
            Some(value) => self.uris(&value).iter().all(|uri| is_kept(uri)),
            // Not in the protocol's form, so the URI is unknown.
            None => false,
        };
        let kept: Vec<RawJson> = values.iter().filter(|value| is_kept(value)).cloned().collect();
        if kept.len() == values.len() {
            return result.clone();
        }
        let shown = RawJson::from_serialize(&kept).unwrap_or_else(|_| RawJson::null());
        completion
            .without_members(&["total"])
            .and_then(|completion| completion.with_members(&[("values", shown)]))
            .and_then(|completion| result.with_members(&[("completion", completion)]))
            .unwrap_or_else(|_| RawJson::null())
    }

    /// Returns the URIs of a value: the template expanded with it, and the value itself if it is a URI.
    fn uris(&self, value: &str) -> Vec<String> {
        let mut uri = String::new();
        let mut rest = self.template;
        while let Some((literal, tail)) = rest.split_once('{') {
            let Some((expression, tail)) = tail.split_once('}') else {
                break;
            };
            uri.push_str(literal);
            self.expand(expression, value, &mut uri);
            rest = tail;
        }
        uri.push_str(rest);
        let is_uri = value.contains(':');
        [uri]
            .into_iter()
            .chain(is_uri.then(|| value.to_owned()))
            .collect()
    }

    /// Expands an expression (RFC 6570, section 3.2) without encoding: rules treat encoded and plain text as equal.
    fn expand(&self, expression: &str, value: &str, uri: &mut String) {
        let operator = expression
            .chars()
            .next()
            .filter(|first| "+#/?&;.".contains(*first));
        let names = expression.trim_start_matches(['+', '#', '/', '?', '&', ';', '.']);
        let (first, separator) = match operator {
            None | Some('+') => ("", ","),
            Some('#') => ("#", ","),
            Some('/') => ("/", "/"),
            Some('.') => (".", "."),
            Some(';') => (";", ";"),
            Some('?') => ("?", "&"),
            Some(_) => ("&", "&"),
        };
        let mut before = first;
        for name in names.split(',') {
            let name = name.split([':', '*']).next().unwrap_or_default();
            let chosen = self.chosen.iter().find(|(chosen, _)| chosen == name);
            let value = match chosen {
                _ if name == self.name => value,
                Some((_, value)) => value,
                None => continue,
            };
            uri.push_str(before);
            if matches!(operator, Some(';' | '?' | '&')) {
                uri.extend([name, "="]);
            }
            uri.push_str(value);
            before = separator;
        }
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;

    use super::UriCompletion;

    #[test]
    fn values_lead_to_uris() {
        for (template, context, value, expected) in [
            ("file:///{+path}", "{}", "a/b", vec!["file:///a/b"]),
            ("file:///{dir}/{name}", r#"{"dir": "d"}"#, "x", vec!["file:///d/"]),
            (
                "db://t{/path*}{?dir,q}",
                r#"{"dir": "d", "q": "1"}"#,
                "x",
                vec!["db://t/x?dir=d&q=1"],
            ),
            ("{+path}", "{}", "file:/x", vec!["file:/x", "file:/x"]),
            ("a:{path", "{}", "x", vec!["a:{path"]),
        ] {
            let arguments =
                format!(r#"{{"argument": {{"name": "path"}}, "context": {{"arguments": {context}}}}}"#);
            let arguments = RawJson::parse(arguments).expect("JSON");
            assert_eq!(
                UriCompletion::new(template, &arguments).uris(value),
                expected,
                "{template}"
            );
        }
    }
}
