use tool_manifest::Diagnostics;

/// Why a toolplane could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is not usable: every problem that was found.
    #[error("the configuration is not usable")]
    Configuration(#[source] Diagnostics),
    /// Two sources of tools have this name, so neither could be told from the other.
    #[error("two sources of tools have the name `{0}`")]
    SourceTwice(String),
    /// The configuration wants something that was left out of this build.
    #[error("this build was made without {0}")]
    LeftOut(&'static str),
}

/// Why a server does not run or a tool cannot be used. It may name what is inside, such as a program's path, so it is told as a cause, which
/// the operator sees and a model does not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUsable(pub(crate) String);
