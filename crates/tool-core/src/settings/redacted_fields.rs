use std::sync::Arc;

use crate::Setting;

/// Names of the fields that are hidden in a tool's results, and in its arguments where they are logged.
///
/// Several crates share this setting: the redaction layer, observers and the previews of backends hide the same
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedactedFields(pub Arc<[String]>);

impl Setting for RedactedFields {}
