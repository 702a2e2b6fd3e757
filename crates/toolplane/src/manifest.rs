//! Manifests and configuration files, with the [sections](crate::sections) of all layers: see [`tool_manifest`].

pub use tool_manifest::*;

/// Loads files, directories and texts into one configuration: [`tool_manifest::load`] with the sections of all layers, and
/// with the files of tools that have code.
///
/// # Errors
/// As [`tool_manifest::load`].
///
/// # Examples
/// ```
/// use toolplane::manifest::{LoadOptions, Syntax, load};
/// use toolplane::runtime::RetrySettings;
///
/// let loaded = load(&LoadOptions::new().text("example.yaml", Syntax::Yaml, "defaults: {retry: {max_attempts: 2}}"))?;
/// let retry = loaded.configuration.defaults.overrides.get::<RetrySettings>();
/// assert_eq!(retry.map(|retry| retry.max_attempts), Some(2));
/// # Ok::<(), toolplane::manifest::Diagnostics>(())
/// ```
pub fn load(options: &LoadOptions) -> Result<Loaded, Diagnostics> {
    let options = options
        .clone()
        .kinds_with_files(crate::build::executors::KINDS_WITH_FILES);
    tool_manifest::load(&options, crate::sections())
}

/// Loads as [`load`] does, without the files of tools: those of a version in a store come with it.
///
/// # Errors
/// As [`tool_manifest::load`].
pub fn load_without_files(options: &LoadOptions) -> Result<Loaded, Diagnostics> {
    tool_manifest::load(options, crate::sections())
}

/// Returns `true` if any call may need somebody's approval, as far as is written in the configuration.
#[must_use]
pub fn may_need_approval(configuration: &Configuration) -> bool {
    let mut rules = configuration
        .overrides()
        .filter_map(|overrides| overrides.get::<tool_policy::ApprovalRule>());
    !configuration.policy.approval.required.is_empty()
        || rules.any(|rule| *rule == tool_policy::ApprovalRule::Required)
}
