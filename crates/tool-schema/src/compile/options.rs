use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Retrieve, ValidationOptions, json::Json};

/// Maximum size of a pattern's automaton, in bytes.
const PATTERN_SIZE: usize = 1 << 20;
/// Maximum number of backtracking steps of a pattern that needs look-around.
const BACKTRACKS: usize = 10_000;

/// Returns a JSON Pointer as a URI fragment (RFC 6901, section 6), as the validator library expects it.
pub(crate) fn fragment(pointer: &str) -> String {
    format!("#{pointer}")
}

/// Returns the options of every validator: nothing is fetched, and formats are annotations.
pub(crate) fn options<F: Json>(
    draft: Draft,
    backtracks: bool,
    options: ValidationOptions<'static, Arc<dyn Retrieve>, F>,
) -> ValidationOptions<'static, Arc<dyn Retrieve>, F> {
    let options = options.with_draft(draft).should_validate_formats(false).offline();
    if backtracks {
        let patterns = PatternOptions::fancy_regex();
        options.with_pattern_options(patterns.backtrack_limit(BACKTRACKS).size_limit(PATTERN_SIZE))
    } else {
        options.with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE))
    }
}
