use mcp_wire::Era;
use raw_json::{JsonKind, JsonLimits, RawJson};

use super::pages::members_of_modern_lists;

/// Answers to what a client asks for first: the instructions and the first page of the tools.
///
/// A gateway of many servers knows both only after it has read and checked all their lists. A program that can tell that nothing
/// has changed since its earlier run may keep the answers of that run ([`Gateway::first_answers`](crate::Gateway::first_answers))
/// and give them to the next gateway ([`GatewayOptions::first_answers`](crate::GatewayOptions#structfield.first_answers)). They
/// are given until the lists are known, to the same principal only, and nothing else is: calls, searches and other pages wait for
/// the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswers {
    /// Name of the principal that they are for.
    principal: String,
    instructions: Option<String>,
    /// First page of the tools in the form of the legacy era.
    page: RawJson,
}

impl FirstAnswers {
    pub(crate) fn new(principal: &str, instructions: Option<String>, page: RawJson) -> Self {
        Self {
            principal: principal.to_owned(),
            instructions,
            page,
        }
    }

    /// Returns the answers as JSON, to be kept.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let instructions = self.instructions.as_deref();
        let mut members = vec![("principal", RawJson::from(self.principal.as_str()))];
        members.extend(instructions.map(|text| ("instructions", RawJson::from(text))));
        members.push(("page", self.page.clone()));
        RawJson::from_members(&members)
    }

    /// Reads answers that were kept. Returns `None` if the text holds none.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        // A page is as deep as a definition in a list.
        let limits = JsonLimits::RELAY.with_depth(usize::MAX);
        let kept = RawJson::parse_within(text.to_owned(), limits).ok()?;
        let principal = kept.get("principal")?.string()?;
        let page = kept.get("page").filter(|page| page.kind() == JsonKind::Object)?;
        let instructions = match kept.get("instructions") {
            Some(text) => Some(text.string()?),
            None => None,
        };
        Some(Self {
            principal,
            instructions,
            page,
        })
    }

    pub(crate) fn principal(&self) -> &str {
        &self.principal
    }

    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Returns the page as clients of an era receive it.
    pub(crate) fn page(&self, era: Era) -> RawJson {
        match era {
            Era::Legacy => self.page.clone(),
            Era::Modern => self
                .page
                .with_members(&members_of_modern_lists())
                .expect("a page is an object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_were_written() {
        let page =
            RawJson::parse(r#"{"tools":[{"name":"a","n":1e2}],"nextCursor":"after.a"}"#).expect("JSON");
        for instructions in [None, Some("Ask \"first\".".to_owned())] {
            let answers = FirstAnswers::new("local", instructions, page.clone());
            let text = answers.to_json();
            assert_eq!(FirstAnswers::from_json(text.as_str()), Some(answers));
        }
    }

    #[test]
    fn other_texts_hold_no_answers() {
        for text in [
            "",
            "[]",
            r#"{"principal":"local"}"#,
            r#"{"principal":"local","page":[]}"#,
            r#"{"principal":1,"page":{}}"#,
            r#"{"principal":"local","instructions":1,"page":{}}"#,
            r#"{"principal":"local","page":{"tools":[]}"#,
        ] {
            assert_eq!(FirstAnswers::from_json(text), None, "{text}");
        }
    }

    #[test]
    fn a_page_has_the_members_of_its_era() {
        let page = RawJson::parse(r#"{"tools":[]}"#).expect("JSON");
        let answers = FirstAnswers::new("local", None, page);
        assert_eq!(answers.page(Era::Legacy).as_str(), r#"{"tools":[]}"#);
        assert_eq!(
            answers.page(Era::Modern).as_str(),
            r#"{"tools":[],"ttlMs":0,"cacheScope":"private"}"#
        );
    }
}
