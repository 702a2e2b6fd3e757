use std::{fmt, str::FromStr};

use crate::{CatalogError, foreign::is_entry_name, foreign::shown};

/// Request for an entry: `NAME` or `NAME@VERSION`.
///
/// # Examples
/// ```
/// use tool_catalog::EntryRequest;
///
/// let request: EntryRequest = "io.github.ada/weather@1.0.2".parse()?;
/// assert_eq!((request.name.as_str(), request.version.as_deref()), ("io.github.ada/weather", Some("1.0.2")));
/// # Ok::<(), tool_catalog::CatalogError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryRequest {
    /// Name of the tool or server.
    pub name: String,
    /// Version; the newest if absent.
    pub version: Option<String>,
}

impl FromStr for EntryRequest {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (text, None),
        };
        if !is_entry_name(name) || version.as_deref() == Some("") {
            let problem = format!("`{}` is no entry of a catalog", shown(text));
            return Err(
                CatalogError::invalid("", problem).with_hint("write `NAME@VERSION`, such as `greet@1.0.0`")
            );
        }
        Ok(Self {
            name: name.to_owned(),
            version: version.filter(|version| version != "latest"),
        })
    }
}

impl fmt::Display for EntryRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}
