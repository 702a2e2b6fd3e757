//! Mock servers from files.

mod error;
mod file;
mod reply;
mod values;

pub use self::error::ScenarioError;
use crate::{MockServer, MockServerBuilder};

impl MockServer {
    /// Reads a server from a scenario, in YAML or JSON.
    ///
    /// # Examples
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
    /// If the text is no YAML, has an unknown key or an invalid value. The error has the position.
    pub fn from_yaml(text: &str) -> Result<Self, ScenarioError> {
        Ok(MockServerBuilder::from_yaml(text)?.build())
    }
}

impl MockServerBuilder {
    /// Reads a scenario like [`MockServer::from_yaml`], to extend it.
    ///
    /// # Errors
    /// See [`MockServer::from_yaml`].
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
