//! Instructions for models: those of the operator, and those of every server under a heading of its own.

use crate::Toolplane;

/// Maximum length of one server's instructions, in bytes.
const MAX_SERVER: usize = 4 * 1024;
/// Maximum length of all instructions, in bytes.
const MAX_ALL: usize = 16 * 1024;

impl Toolplane {
    /// Joins the operator's instructions with those of all known servers. Returns `None` if there are none.
    ///
    /// A server's text is not the operator's: it has a heading with the server's name, contains no configured secrets
    /// and control characters, and is cut at 4 KiB. The whole text is cut at 16 KiB. A server that was not started
    /// yet has no instructions, unless its configuration contains them.
    #[must_use]
    pub fn instructions(&self, own: Option<&str>) -> Option<String> {
        let sources = self.0.registry.sources();
        let sources = sources.iter().filter_map(|source| {
            let text = source.instructions()?;
            Some((
                source.name().to_owned(),
                self.0.redactor.hide_in_text(&text).into_owned(),
            ))
        });
        join(own, sources)
    }
}

fn join(own: Option<&str>, servers: impl Iterator<Item = (String, String)>) -> Option<String> {
    let mut all = own.map(str::trim).unwrap_or_default().to_owned();
    for (name, text) in servers {
        let text: String = text
            .chars()
            .filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t'))
            .collect();
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        all.push_str(&format!("# Instructions of the server `{name}`\n\n"));
        all.push_str(&cut(
            text,
            MAX_SERVER,
            &format!("the instructions of `{name}` are longer"),
        ));
    }
    let all = cut(&all, MAX_ALL, "there are more instructions");
    (!all.is_empty()).then_some(all)
}

/// Returns the beginning of a long text, cut at a character boundary, with a note about it within the limit.
fn cut(text: &str, most: usize, note: &str) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let note = format!("\n[cut: {note} than {most} bytes]");
    let end = text.floor_char_boundary(most.saturating_sub(note.len()));
    format!("{}{note}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(own: Option<&str>, servers: &[(&str, &str)]) -> Option<String> {
        let servers = servers
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        join(own, servers)
    }

    #[test]
    fn servers_have_a_heading_each_after_the_operators_words() {
        assert_eq!(joined(None, &[]), None);
        assert_eq!(joined(Some("  "), &[("a", " \n")]), None);
        assert_eq!(joined(Some("Ask first."), &[]).as_deref(), Some("Ask first."));
        assert_eq!(
            joined(
                Some("Ask first."),
                &[("a", "Be kind.\u{1b}[2J"), ("none", ""), ("b", "Be quick.\n")]
            )
            .as_deref(),
            Some(
                "Ask first.\n\n# Instructions of the server `a`\n\nBe kind.[2J\n\n\
                 # Instructions of the server `b`\n\nBe quick."
            )
        );
    }

    #[test]
    fn long_instructions_are_cut_at_a_character_and_say_so() {
        for letter in ["a", "é", "€", "🦀"] {
            for extra in 0..4 {
                let text = format!("{}{}", "x".repeat(extra), letter.repeat(3_000 * 4 / letter.len()));
                let servers = ["one", "two", "three", "four", "five"].map(|name| (name, text.as_str()));
                let one = joined(None, &servers[..1]).unwrap();
                assert!(
                    one.ends_with("[cut: the instructions of `one` are longer than 4096 bytes]"),
                    "{extra}"
                );
                assert!(one.len() <= MAX_SERVER + 60, "{}", one.len());
                let all = joined(None, &servers).unwrap();
                assert!(all.ends_with("[cut: there are more instructions than 16384 bytes]"));
                assert!(all.len() <= MAX_ALL && all.len() > MAX_ALL - 100, "{}", all.len());
            }
        }
    }
}
