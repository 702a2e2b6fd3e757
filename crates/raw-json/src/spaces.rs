//! Spaces between tokens: removed, or one member and item on each line.

use crate::RawJson;

impl RawJson {
    /// Returns the text with one member or item on each line, two spaces for each level.
    ///
    /// Only white space between tokens changes: numbers and strings keep their spelling.
    ///
    /// # Examples
    ///
    /// ```
    /// # use raw_json::RawJson;
    /// let value = RawJson::parse(r#"{"rate":1e2,"ids":[]}"#)?;
    /// assert_eq!(value.indented(), "{\n  \"rate\": 1e2,\n  \"ids\": []\n}");
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn indented(&self) -> String {
        let mut out = String::with_capacity(self.len() * 2);
        let mut depth = 0_usize;
        // `true` after a bracket that opens, which may be followed by the one that closes it.
        let mut is_open = false;
        for token in Tokens(self.as_str()) {
            let closes = matches!(token, "}" | "]");
            if closes {
                depth = depth.saturating_sub(1);
            }
            if is_open != closes {
                line_break(&mut out, depth);
            }
            is_open = false;
            out.push_str(token);
            match token {
                "{" | "[" => {
                    depth += 1;
                    is_open = true;
                }
                "," => line_break(&mut out, depth),
                ":" => out.push(' '),
                _ => {}
            }
        }
        out
    }

    /// Returns the value without white space between its tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use raw_json::RawJson;
    /// let value = RawJson::parse(r#"{ "rate": 1e2 }"#)?;
    /// assert_eq!(value.compact().as_str(), r#"{"rate":1e2}"#);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn compact(&self) -> Self {
        let length: usize = Tokens(self.as_str()).map(str::len).sum();
        if length == self.len() {
            return self.clone();
        }
        Self::from_trusted(Tokens(self.as_str()).collect())
    }
}

fn line_break(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Tokens of a text that is JSON: brackets, commas and colons, strings, and other values.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_ascii_start();
        let bytes = text.as_bytes();
        let end = match bytes.first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_end(bytes),
            _ => bytes
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'}' | b']'))
                .unwrap_or(bytes.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

/// Returns the offset after the string at the start of a text.
fn string_end(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
