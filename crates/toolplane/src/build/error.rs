use std::sync::Arc;

use tool_core::{Descriptor, PiiHandling};
use tool_manifest::Diagnostics;

/// Error of building a toolplane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is not usable: every problem that was found.
    #[error("the configuration is not usable")]
    Configuration(#[source] Diagnostics),
    /// Two sources of tools have this name and could not be told apart.
    #[error("two sources of tools have the name `{0}`")]
    SourceTwice(String),
    /// A tool requires a protection that is not supported.
    #[error(
        "the tool `{tool}` asks for `pii_handling: {handling}`, and nothing does that: personal data would pass as they are"
    )]
    NoProtection {
        /// Tool.
        tool: String,
        /// Protection, `anonymize` or `encrypt`.
        handling: &'static str,
    },
    /// The configuration needs a part that this build lacks.
    #[error("this build was made without {0}")]
    LeftOut(&'static str),
}

impl BuildError {
    /// Refuses tools that require a protection that is not supported.
    pub(crate) fn of_protection<'a>(
        tools: impl IntoIterator<Item = &'a Arc<Descriptor>>,
    ) -> Result<(), Self> {
        for tool in tools {
            let handling = match tool.metadata.pii_handling {
                Some(PiiHandling::Anonymize) => "anonymize",
                Some(PiiHandling::Encrypt) => "encrypt",
                _ => continue,
            };
            let tool = tool.name.to_string();
            return Err(Self::NoProtection { tool, handling });
        }
        Ok(())
    }
}

/// Reason why a server does not run or a tool cannot be used. It may contain internal names, such as a program's
/// path, so it is the cause of an error, which the operator sees and a model does not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUsable(pub(crate) String);
