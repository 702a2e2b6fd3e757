//! JSON texts for people: indented, with the same tokens.

/// Indents a text without spaces between its tokens: one member or item on each line.
pub(crate) fn indent(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let bytes = compact.as_bytes();
    let mut tokens = Tokens::default();
    for (at, letter) in compact.char_indices() {
        if tokens.is_in_text(letter) {
            out.push(letter);
            continue;
        }
        match letter {
            '{' | '[' => {
                out.push(letter);
                if !matches!(bytes.get(at + 1), Some(b'}' | b']')) {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                if !matches!(bytes.get(at.wrapping_sub(1)), Some(b'{' | b'[')) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut out, depth);
                }
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter => out.push(letter),
        }
    }
    out
}

/// Removes the spaces between the tokens of a text.
pub(crate) fn compact(text: &str) -> String {
    let mut tokens = Tokens::default();
    let keep = |letter: &char| tokens.is_in_text(*letter) || !matches!(letter, ' ' | '\n' | '\r' | '\t');
    text.chars().filter(keep).collect()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Tells letters within texts from those between them.
#[derive(Default)]
struct Tokens {
    in_text: bool,
    is_escaped: bool,
}

impl Tokens {
    /// Returns `true` for a letter of a text, its quotation marks included.
    fn is_in_text(&mut self, letter: char) -> bool {
        if !self.in_text {
            self.in_text = letter == '"';
            return self.in_text;
        }
        match letter {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' => self.is_escaped = true,
            '"' => self.in_text = false,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_indented_text_has_the_same_tokens_and_one_member_on_each_line() {
        let text = r#"{"a":[],"b":{},"c":[1,-1.50e2,{"d \" : ,":"é\\"}],"e":null}"#;
        let indented = indent(text);
        assert_eq!(compact(&indented), text);
        assert_eq!(
            indented,
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    -1.50e2,\n    {\n      \"d \\\" : ,\": \"é\\\\\"\n    }\n  ],\n  \
             \"e\": null\n}"
        );
    }

    #[test]
    fn values_without_parts_stay_as_they_are() {
        for text in ["1", "\"a b\"", "[]", "{}", "null"] {
            assert_eq!((indent(text).as_str(), compact(text).as_str()), (text, text));
        }
    }
}
