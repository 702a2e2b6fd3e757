//! Mock servers as files.

mod error;
mod file;
mod reply;
mod values;

pub use self::error::ScenarioError;
use crate::{MockServer, MockServerBuilder};

impl MockServer {
    /// Reads a server from a scenario, in YAML or JSON.
    ///
    /// ```
    /// use mcp_mock::MockServer;
    ///
    /// let server = MockServer::from_yaml(
    ///     r#"
    /// name: weather
    /// tools:
    ///   forecast:
    ///     input_schema: {type: object, properties: {city: {type: string}}}
    ///     replies:
    ///       - delay: 200ms
    ///         template: "Sunny in {{ city }}"
    ///       - failure: the station is down
    ///       - misbehave: [{garbage_before: npm warn deprecated}, {cut_after: 20}]
    /// on:
    ///   tools/list:
    ///     - before: [{delay: 1s}]
    /// "#,
    /// )?;
    /// # Ok::<(), mcp_mock::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no YAML, has a key that is not known, or a value that does not fit: the error says where.
    pub fn from_yaml(text: &str) -> Result<Self, ScenarioError> {
        Ok(MockServerBuilder::from_yaml(text)?.build())
    }
}

impl MockServerBuilder {
    /// Reads a scenario as [`MockServer::from_yaml`] does, to add to it.
    ///
    /// # Errors
    /// As [`MockServer::from_yaml`].
    pub fn from_yaml(text: &str) -> Result<Self, ScenarioError> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            with_snippet: false,
        };
        let file: file::File = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ScenarioError::new(&error, text))?;
        Ok(file.into())
    }
}
