use tool_manifest::Diagnostics;

/// Why a toolplane could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is not usable: every problem that was found.
    #[error("the configuration is not usable")]
    Configuration(#[source] Diagnostics),
    /// A primitive could not be set up.
    #[error("the executor `{kind}` cannot be set up")]
    Executor {
        /// The executor's kind.
        kind: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
