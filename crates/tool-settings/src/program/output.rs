use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;

/// Form of a result on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputFormat {
    /// Text.
    #[default]
    Text,
    /// JSON.
    Json,
}

impl OutputFormat {
    /// Returns the result that a program wrote: JSON with its own bytes, or a text without line breaks at its end.
    ///
    /// # Errors
    /// If the output does not have this form: the end of a message that begins with the program's name.
    pub fn read(self, stdout: &[u8]) -> Result<RawJson, String> {
        match self {
            Self::Json => RawJson::parse(stdout.to_vec())
                .map_err(|error| format!("wrote to standard output is no JSON: {error}")),
            Self::Text => match std::str::from_utf8(stdout) {
                Ok(text) => Ok(RawJson::from(text.trim_end_matches('\n'))),
                Err(_) => Err("wrote to standard output is no UTF-8 text".to_owned()),
            },
        }
    }
}
