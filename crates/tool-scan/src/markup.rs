//! Markup that hides text from people or acts on whoever shows it.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Names of elements that address a model.
const ADDRESSING: &str =
    "important|system|sys|secret|hidden|instructions?|override|critical|assistant|admin|prompt";
/// Names of elements that act on a page. A description of an HTML tool may name them, so that they count with content
/// or attributes alone.
const ACTING: &str = "script|iframe|object|embed|applet";
/// Names of further elements that load or send something.
const LOADING: &str = "link|meta|base|form|svg|style|img|math";

/// An HTML comment, one that never ends, or a Markdown comment: a link definition that nothing links to.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?s)<!--.*?(?:--!?>|\z)|<![A-Za-z\[][^>]*(?:>|\z)|(?m:^) {0,3}\[//\]: *#[^\n]*")
});

/// The opening of an element that addresses a model, acts, or is styled so that nobody sees it, or a token of a chat
/// template.
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

/// The beginning of what [`defused`] makes harmless.
static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(
        r"(?x)<(?:\s*/?\s*(?i-u:{ADDRESSING}|{ACTING}|{LOADING})(?-u:\b)|!--|!\[|\||<\s*/?\s*(?i-u:sys)|\s*(?i-u:[a-z][a-z0-9-]*)\s[^<>]*=)"
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is tested")
}

/// The first comment in a text.
pub(crate) fn comment(text: &str) -> Option<&str> {
    Some(COMMENT.find(text)?.as_str())
}

/// The first markup in a text that hides something or addresses a model.
pub(crate) fn hidden_markup(text: &str) -> Option<&str> {
    Some(OPENING.find(text)?.as_str())
}

/// The text with `<` as `&lt;` where it begins a comment or markup that acts or hides.
pub(crate) fn defused(text: &str) -> Cow<'_, str> {
    ACTIVE.replace_all(text, |found: &regex::Captures<'_>| found[0].replace('<', "&lt;"))
}

/// The text without comments and without elements that hide something or address a model. An element goes with what
/// it holds, as far as its end is found.
pub(crate) fn without(text: &str) -> Cow<'_, str> {
    let mut rest = Cow::Borrowed(text);
    // What is left can be joined to another one.
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

/// Where the element that opens so ends in what follows: behind its closing tag, or at once if there is none.
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
