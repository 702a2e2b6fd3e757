//! Words of a command line, by the quoting rules of POSIX (Shell Command Language, section 2.2).

/// Characters that a shell interprets outside of quotes.
const OPERATORS: &str = "|&;<>()$`*?#~=%!{}[]";
/// Operators that are usual in words, where they have no meaning at this place.
const HARMLESS: &str = "=%#~!{}[]";

/// Splits a command line into words.
pub(super) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\0' => return Err("it has the character NUL".to_owned()),
            letter if letter.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_default();
                until_quote(&mut letters, quoted)?;
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                until_double_quote(&mut letters, quoted)?;
            }
            '\\' => {
                let next = letters.next();
                let next = next.ok_or_else(|| "it ends with a backslash".to_owned())?;
                word.get_or_insert_default().push(next);
            }
            letter if OPERATORS.contains(letter) && !HARMLESS.contains(letter) => {
                return Err(format!(
                    "no shell reads it, so `{letter}` has no meaning: put it in quotation marks, or the whole into a script"
                ));
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

fn until_quote(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    for letter in letters {
        match letter {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
    Err("a quotation mark `'` is not closed".to_owned())
}

fn until_double_quote(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok(()),
            '\\' => match letters.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            letter => word.push(letter),
        }
    }
    Err("a quotation mark `\"` is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_held_together_by_quotes() {
        for (text, expected) in [
            ("", &[][..]),
            ("  ", &[]),
            ("toolplane endpoint", &["toolplane", "endpoint"]),
            ("./a.sh  --x=1\t-y", &["./a.sh", "--x=1", "-y"]),
            (r#"'a b' "c d" e\ f"#, &["a b", "c d", "e f"]),
            (r#"a'b'"c"d ''"#, &["abcd", ""]),
            (r#""\"\\\n$x`" '$x|"#.trim_end_matches("'$x|"), &["\"\\\\n$x`"]),
            (r"'$x|y\'", &["$x|y\\"]),
            (r"\$HOME \|", &["$HOME", "|"]),
        ] {
            assert_eq!(
                words(text).as_deref(),
                Ok(expected
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>()
                    .as_slice()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_only_a_shell_understands_is_refused() {
        for text in [
            "a | b", "a; b", "a && b", "$HOME/x", "a > b", "`a`", "a *", "'a", "\"a", "a\\", "a\0b",
        ] {
            assert!(words(text).is_err(), "{text}");
        }
    }
}
