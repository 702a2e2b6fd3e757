//! Markup that hides text from people, or acts on the program that shows it.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Names of elements that address a model.
const ADDRESSING: &str =
    "important|system|sys|secret|hidden|instructions?|override|critical|assistant|admin|prompt";
/// Names of elements that act on a page. A description of an HTML tool may mention them, so they count only with content or
/// attributes.
const ACTING: &str = "script|iframe|object|embed|applet";
/// Names of further elements that load or send something.
const LOADING: &str = "link|meta|base|form|svg|style|img|math";

/// HTML comment, also one without an end, or Markdown comment: an unused link definition.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?s)<!--.*?(?:--!?>|\z)|<![A-Za-z\[][^>]*(?:>|\z)|(?m:^) {0,3}\[//\]: *#[^\n]*")
});

/// Opening tag of an element that addresses a model, acts, or has an invisible style; or a token of a chat template.
static OPENING: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r#"(?x)<\s*/?\s*(?i-u:{ADDRESSING})(?:[\s/][^<>]*)?(?:>|\z)
        |<\s*(?i-u:{ACTING})(?:\s[^<>]*=[^<>]*>|(?:\s[^<>]*)?>[^<]*<\s*/\s*(?i-u:{ACTING}))
        |<\s*(?i-u:[a-z][a-z0-9-]*)\s[^<>]*(?i-u:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0
            |opacity\s*:\s*0(?:\.0*)?[;"'\s]|\son[a-z]+\s*=)[^<>]*>?
        |<\s*(?i-u:[a-z][a-z0-9-]*)\s(?:[^<>]*\s)?(?i-u:hidden)(?:[\s=/][^<>]*)?>
        |<\|[^<>|]*\|>
        |<<\s*/?\s*(?i-u:sys)\s*>>
        |\[\s*/?\s*(?i-u:inst)\s*\]"#
    ))
});

/// Beginning of markup that [`defuse`] makes harmless.
static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"(?x)<(?:\s*/?\s*(?i-u:{ADDRESSING}|{ACTING}|{LOADING})(?-u:\b)|!--|!\[|\||<\s*/?\s*(?i-u:sys)|\s*(?i-u:[a-z][a-z0-9-]*)\s[^<>]*=)"
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is tested")
}

/// Returns the first comment in a text.
pub(crate) fn comment(text: &str) -> Option<&str> {
    Some(COMMENT.find(text)?.as_str())
}

/// Returns the first markup in a text that hides something or addresses a model.
pub(crate) fn hidden_markup(text: &str) -> Option<&str> {
    Some(OPENING.find(text)?.as_str())
}

/// Replaces `<` by `&lt;` where it begins a comment, or markup that acts or hides.
pub(crate) fn defuse(text: &str) -> Cow<'_, str> {
    ACTIVE.replace_all(text, |found: &regex::Captures<'_>| found[0].replace('<', "&lt;"))
}

/// Removes comments, and elements that hide something or address a model. An element is removed with its content, if its
/// end is found.
pub(crate) fn remove(text: &str) -> Cow<'_, str> {
    let mut rest = Cow::Borrowed(text);
    // Repeated, since a removal can join its neighbours to new markup.
    loop {
        let without_comments = COMMENT.replace_all(&rest, "");
        let shorter = match OPENING.find(&without_comments) {
            Some(opening) => {
                let after = &without_comments[opening.end()..];
                let end = element_end(opening.as_str(), after);
                format!("{}{}", &without_comments[..opening.start()], &after[end..])
            }
            None if without_comments.len() < rest.len() => without_comments.into_owned(),
            None => break,
        };
        rest = Cow::Owned(shorter);
    }
    rest
}

/// Returns the end of an element in the text after its opening tag: after its closing tag, or 0 if there is none.
fn element_end(opening: &str, after: &str) -> usize {
    let name: String = opening
        .trim_start_matches(['<', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    if name.is_empty() {
        return 0;
    }
    let lower = after.to_ascii_lowercase();
    let closing = format!("</{}", name.to_ascii_lowercase());
    let Some(start) = lower.find(&closing) else {
        return 0;
    };
    after[start..]
        .find('>')
        .map_or(after.len(), |end| start + end + 1)
}
