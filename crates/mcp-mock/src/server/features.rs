use raw_json::RawJson;

use crate::MockReply;

/// A tool of the mock server: its list entry and its replies.
///
/// Without a reply it answers with its arguments.
///
/// # Examples
///
/// ```
/// use mcp_mock::{MockReply, MockTool};
///
/// let flaky = MockTool::new("flaky")
///     .description("Fails once")
///     .reply(MockReply::failure("not yet"))
///     .reply(MockReply::text("there you are"));
/// ```
#[derive(Debug, Clone)]
pub struct MockTool(pub(crate) ListedFeature);

/// A prompt of the mock server.
///
/// Without a reply it answers with its arguments.
#[derive(Debug, Clone)]
pub struct MockPrompt {
    pub(crate) item: ListedFeature,
    pub(crate) completions: Vec<(String, Vec<String>)>,
}

/// A resource of the mock server, or a template of resources.
///
/// Without a reply its content is the URI.
#[derive(Debug, Clone)]
pub struct MockResource {
    pub(crate) item: ListedFeature,
    pub(crate) is_template: bool,
    pub(crate) completions: Vec<(String, Vec<String>)>,
}

/// A listed feature and its replies.
#[derive(Debug, Clone)]
pub(crate) struct ListedFeature {
    /// Name or URI.
    pub(crate) key: String,
    /// Entry in lists.
    pub(crate) listed: RawJson,
    pub(crate) replies: Vec<MockReply>,
}

impl ListedFeature {
    fn new(key: String, listed: &[(&str, RawJson)]) -> Self {
        Self {
            key,
            listed: RawJson::from_members(listed),
            replies: Vec::new(),
        }
    }

    fn set(&mut self, member: &str, value: RawJson) {
        self.listed = self
            .listed
            .with_members(&[(member, value)])
            .expect("what is listed is an object");
    }
}

impl MockTool {
    /// Creates a tool that takes any object.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let schema = RawJson::from_members(&[("type", RawJson::from("object"))]);
        let listed = [("name", RawJson::from(name.as_str())), ("inputSchema", schema)];
        Self(ListedFeature::new(name, &listed))
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        self.member("description", description.into())
    }

    /// Sets the input schema.
    #[must_use]
    pub fn input_schema(self, schema: RawJson) -> Self {
        self.member("inputSchema", schema)
    }

    /// Sets any member of the list entry, such as `annotations`.
    #[must_use]
    pub fn member(mut self, name: &str, value: RawJson) -> Self {
        self.0.set(name, value);
        self
    }

    /// Adds the reply to the next call; the last one is repeated.
    #[must_use]
    pub fn reply(mut self, reply: MockReply) -> Self {
        self.0.replies.push(reply);
        self
    }
}

impl MockPrompt {
    /// Creates a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let listed = [("name", RawJson::from(name.as_str()))];
        Self {
            item: ListedFeature::new(name, &listed),
            completions: Vec::new(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        self.member("description", description.into())
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(self, name: &str, required: bool) -> Self {
        let argument = RawJson::from_members(&[
            ("name", RawJson::from(name)),
            ("required", RawJson::from(required)),
        ]);
        let arguments = self.item.listed.get("arguments").unwrap_or_default();
        let arguments: Vec<RawJson> = arguments.items().chain([argument]).collect();
        let arguments = RawJson::from_serialize(&arguments).expect("JSON can be written");
        self.member("arguments", arguments)
    }

    /// Adds completion values for an argument: clients receive those that begin with the typed text.
    #[must_use]
    pub fn complete<V: Into<String>>(mut self, argument: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.completions.push((argument.to_owned(), values));
        self
    }

    /// Sets any member of the list entry.
    #[must_use]
    pub fn member(mut self, name: &str, value: RawJson) -> Self {
        self.item.set(name, value);
        self
    }

    /// Adds the reply to the next request; the last one is repeated.
    #[must_use]
    pub fn reply(mut self, reply: MockReply) -> Self {
        self.item.replies.push(reply);
        self
    }
}

impl MockResource {
    /// Creates a resource; its name is the URI unless [`member`](Self::member) sets another.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let listed = [
            ("uri", RawJson::from(uri.as_str())),
            ("name", RawJson::from(uri.as_str())),
        ];
        Self {
            item: ListedFeature::new(uri, &listed),
            is_template: false,
            completions: Vec::new(),
        }
    }

    /// Creates a resource template, such as `file:///{path}`: the parts in braces match anything, and placeholders of
    /// replies refer to them.
    #[must_use]
    pub fn template(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let listed = [
            ("uriTemplate", RawJson::from(uri.as_str())),
            ("name", RawJson::from(uri.as_str())),
        ];
        Self {
            item: ListedFeature::new(uri, &listed),
            is_template: true,
            completions: Vec::new(),
        }
    }

    /// Sets the media type of the content.
    #[must_use]
    pub fn mime_type(self, mime_type: &str) -> Self {
        self.member("mimeType", mime_type.into())
    }

    /// Adds completion values for a part of a template: clients receive those that begin with the typed text.
    #[must_use]
    pub fn complete<V: Into<String>>(mut self, part: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.completions.push((part.to_owned(), values));
        self
    }

    /// Sets any member of the list entry.
    #[must_use]
    pub fn member(mut self, name: &str, value: RawJson) -> Self {
        self.item.set(name, value);
        self
    }

    /// Adds the reply to the next read; the last one is repeated.
    #[must_use]
    pub fn reply(mut self, reply: MockReply) -> Self {
        self.item.replies.push(reply);
        self
    }
}
