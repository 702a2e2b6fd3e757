use std::{fmt, sync::Arc};

use tool_core::{Descriptor, PiiHandling};
use tool_manifest::Diagnostics;

/// Error of building a toolplane. Its text, and its `Debug` form, which `main` prints, are for people: every problem of a
/// configuration is shown with its line.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is not usable: every problem that was found.
    #[error("the configuration cannot be used\n\n{}", .0.render(false))]
    Configuration(Diagnostics),
    /// Two sources of tools have this name and could not be told apart.
    #[error("two sources of tools have the name `{0}`")]
    SourceTwice(String),
    /// A tool requires a protection that is not supported.
    #[error(
        "the tool `{tool}` asks for `pii_handling: {handling}`, and nothing does that: personal data would pass as they are"
    )]
    #[non_exhaustive]
    NoProtection {
        /// Tool.
        tool: String,
        /// Protection, `anonymize` or `encrypt`.
        handling: &'static str,
    },
    /// The configuration needs a feature that this build lacks.
    #[error(
        "this build of toolplane lacks the feature `{feature}`, needed by {}",
        .needed_by.join(", ")
    )]
    #[non_exhaustive]
    LeftOut {
        /// Feature of the crate `toolplane`.
        feature: &'static str,
        /// Parts of the configuration that need it, such as `` the server `files` ``.
        needed_by: Vec<String>,
    },
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

    /// Refuses a configuration of which these parts need a feature that this build lacks.
    pub(crate) fn of_feature(
        feature: &'static str,
        is_there: bool,
        needed_by: impl Iterator<Item = String>,
    ) -> Result<(), Self> {
        if is_there {
            return Ok(());
        }
        let needed_by: Vec<_> = needed_by.collect();
        if needed_by.is_empty() {
            return Ok(());
        }
        Err(Self::LeftOut { feature, needed_by })
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reason why a server does not run or a tool cannot be used. It may contain internal names, such as a program's
/// path, so it is the cause of an error, which the operator sees and a model does not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUsable(pub(crate) String);
