use tool_core::Pattern;

use crate::operation::Operation;

/// Options of an import. Without any, all operations are imported as the document describes them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Operations to import.
    pub filter: OperationFilter,
    /// URL of the server, instead of the servers of the document.
    pub server: Option<String>,
    /// Text that is put before the names of all tools and secrets, such as `github_`.
    pub prefix: String,
    /// Name of a security scheme that all operations use, instead of their security requirements.
    pub security: Option<String>,
    /// Permits loopback and private networks for the tools.
    pub allow_private: bool,
}

impl ImportOptions {
    /// Returns the options with which everything is imported.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects operations.
    #[must_use]
    pub fn with_filter(mut self, filter: OperationFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the URL of the server.
    #[must_use]
    pub fn with_server(mut self, url: impl Into<String>) -> Self {
        self.server = Some(url.into());
        self
    }

    /// Sets the prefix of all names.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the security scheme of all operations.
    #[must_use]
    pub fn with_security(mut self, scheme: impl Into<String>) -> Self {
        self.security = Some(scheme.into());
        self
    }

    /// Permits loopback and private networks.
    #[must_use]
    pub fn with_allow_private(mut self, allowed: bool) -> Self {
        self.allow_private = allowed;
        self
    }
}

/// Selection of operations. A list that is empty selects all; an operation must match an entry of each other list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationFilter {
    /// Tags.
    pub tags: Vec<String>,
    /// Patterns of paths with `*` for any text, such as `/pets/*`.
    pub paths: Vec<String>,
    /// Methods, in any case.
    pub methods: Vec<String>,
    /// Operation ids, or names of tools.
    pub operations: Vec<String>,
}

impl OperationFilter {
    /// Returns the filter that selects all operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects operations with this tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Selects operations whose path matches this pattern.
    #[must_use]
    pub fn with_path(mut self, pattern: impl Into<String>) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// Selects operations with this method.
    #[must_use]
    pub fn with_method(mut self, method: impl Into<String>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// Selects the operation with this id or this tool name.
    #[must_use]
    pub fn with_operation(mut self, name: impl Into<String>) -> Self {
        self.operations.push(name.into());
        self
    }

    pub(crate) fn selects(&self, operation: &Operation<'_>, name: &str) -> bool {
        let has_tag = |wanted: &String| operation.tags().any(|tag| tag == wanted);
        let has_path = |pattern: &String| Pattern::new(pattern.as_str()).matches(operation.path);
        let has_method = |method: &String| method.eq_ignore_ascii_case(operation.method);
        let is_named = |wanted: &String| wanted == name || operation.id == Some(wanted);
        let any =
            |list: &[String], matches: &dyn Fn(&String) -> bool| list.is_empty() || list.iter().any(matches);
        any(&self.tags, &has_tag)
            && any(&self.paths, &has_path)
            && any(&self.methods, &has_method)
            && any(&self.operations, &is_named)
    }

    /// Returns a warning for each entry that matches no operation.
    pub(crate) fn idle(&self, operations: &[(Operation<'_>, String)]) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut check = |what: &str, entries: &[String], one: fn(&str) -> Self| {
            for entry in entries {
                let filter = one(entry);
                if !operations
                    .iter()
                    .any(|(operation, name)| filter.selects(operation, name))
                {
                    warnings.push(format!("no operation has the {what} `{}`", entry.escape_debug()));
                }
            }
        };
        check("tag", &self.tags, |tag| Self::new().with_tag(tag));
        check("path", &self.paths, |path| Self::new().with_path(path));
        check("method", &self.methods, |method| Self::new().with_method(method));
        check("id or name", &self.operations, |name| {
            Self::new().with_operation(name)
        });
        warnings
    }
}
