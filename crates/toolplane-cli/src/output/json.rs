use raw_json::RawJson;

/// Formats a value over several lines. Only whitespace between tokens changes: numbers and strings keep their spelling.
pub(crate) fn pretty(value: &RawJson) -> String {
    let mut text = String::with_capacity(value.len() * 2);
    let mut depth = 0;
    let mut bytes = value.as_str().char_indices().peekable();
    while let Some((at, c)) = bytes.next() {
        match c {
            '"' => {
                let end = string_end(value.as_str(), at);
                text.push_str(&value.as_str()[at..end]);
                while bytes.next_if(|(next, _)| *next < end).is_some() {}
            }
            '{' | '[' => {
                text.push(c);
                while bytes.next_if(|(_, space)| space.is_ascii_whitespace()).is_some() {}
                if let Some((_, close)) = bytes.next_if(|(_, next)| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    line_break(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line_break(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line_break(&mut text, depth);
            }
            ':' => text.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => text.push(other),
        }
    }
    text
}

fn line_break(text: &mut String, depth: usize) {
    text.push('\n');
    for _ in 0..depth {
        text.push_str("  ");
    }
}

/// Returns the index just past the closing quote of the string that begins at `start`.
fn string_end(text: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_changes() {
        let text = r#" {"a" : [1e2,{ }, [ ], 123456789012345678901234567890,"x\", [é"],"b":null} "#;
        let shown = pretty(&RawJson::parse(text.to_owned()).unwrap());
        let expected = "{\n  \"a\": [\n    1e2,\n    {},\n    [],\n    123456789012345678901234567890,\n    \"x\\\", [é\"\n  ],\n  \"b\": null\n}";
        assert_eq!(shown, expected);
    }
}
