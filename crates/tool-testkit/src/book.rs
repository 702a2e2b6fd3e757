//! Code blocks of the book's pages: tests run them, so that a page and its test cannot differ.

use std::fs;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// Page of the book.
///
/// # Examples
///
/// ```
/// use tool_testkit::BookPage;
///
/// let page = BookPage::read("tutorial.md");
/// assert!(page.blocks().iter().any(|block| block.language == "yaml"));
/// ```
#[derive(Clone, Debug)]
pub struct BookPage {
    name: String,
    blocks: Vec<CodeBlock>,
}

/// Fenced code block of a page.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CodeBlock {
    /// Heading that the block stands below, of any level.
    pub heading: String,
    /// First word after the fence, such as `yaml`; empty if there is none.
    pub language: String,
    /// Content.
    pub text: String,
}

impl BookPage {
    /// Reads a page by its path below `docs/src`, such as `tutorial.md`.
    ///
    /// # Panics
    /// When the page cannot be read.
    #[must_use]
    pub fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/src")
            .join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
        Self {
            name: name.to_owned(),
            blocks: blocks(&text),
        }
    }

    /// Returns all code blocks, in their order.
    #[must_use]
    pub fn blocks(&self) -> &[CodeBlock] {
        &self.blocks
    }

    /// Returns the code blocks of a language below a heading.
    ///
    /// # Panics
    /// When there is none: a test of no code would pass.
    #[must_use]
    pub fn below(&self, heading: &str, language: &str) -> Vec<&CodeBlock> {
        let blocks = self.blocks.iter();
        let found: Vec<_> = blocks
            .filter(|block| block.heading == heading && block.language == language)
            .collect();
        assert!(
            !found.is_empty(),
            "`{}` has no `{language}` below `{heading}`",
            self.name
        );
        found
    }
}

fn blocks(text: &str) -> Vec<CodeBlock> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut heading = String::new();
    let (mut is_heading, mut is_code) = (false, false);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                heading.clear();
                is_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => is_heading = false,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                is_code = true;
                let language = info.split([' ', ',']).next().unwrap_or_default();
                blocks.push(CodeBlock {
                    heading: heading.clone(),
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(text) | Event::Code(text) if is_heading => heading.push_str(&text),
            Event::Text(text) if is_code => {
                if let Some(block) = blocks.last_mut() {
                    block.text.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_have_their_heading_and_language() {
        let page =
            "# A `b` c\n\n```yaml,ignore\nx: 1\n```\n\n## D\n\n    indented\n\n```\n# no heading\n```\n";
        let found: Vec<_> = blocks(page)
            .into_iter()
            .map(|block| (block.heading, block.language, block.text))
            .collect();
        let block = |heading: &str, language: &str, text: &str| {
            (heading.to_owned(), language.to_owned(), text.to_owned())
        };
        assert_eq!(
            found,
            [block("A b c", "yaml", "x: 1\n"), block("D", "", "# no heading\n")]
        );
    }
}
