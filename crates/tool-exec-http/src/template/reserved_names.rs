//! Names of parameters that the operator has set, which arguments must not set again.

use percent_encoding::percent_decode_str;
use tool_core::{ErrorKind, ToolError};

/// Maximum number of layers of percent-encoding that an upstream is assumed to decode.
const MAX_LAYERS: usize = 4;

/// Names of the parameters that the operator has set, as the most lenient upstream reads them. Prevents HTTP parameter
/// pollution (OWASP WSTG-INPV-04).
#[derive(Debug, Default)]
pub(crate) struct ReservedNames(Vec<String>);

impl ReservedNames {
    pub(crate) fn add(&mut self, name: &str) {
        self.0.extend(readings(name));
    }

    /// Refuses an argument that some upstream reads as a name that is set. The parameter would occur twice, and upstreams differ
    /// in which of the two counts.
    pub(crate) fn refuse(&self, argument: &str, sent_as: &str) -> Result<(), ToolError> {
        if !readings(sent_as).iter().any(|reading| self.0.contains(reading)) {
            return Ok(());
        }
        let message = format!(
            "the argument `{}` cannot be given: the tool sets the parameter of this name itself",
            argument.escape_debug()
        );
        Err(ToolError::new(ErrorKind::InvalidArguments, message))
    }
}

/// Returns the names as which a name may be read: decoded, in lower case, without brackets (`role[]`), and with the
/// characters replaced that PHP replaces. If it contains separators of a query, each part is such a name.
fn readings(name: &str) -> Vec<String> {
    let mut texts = vec![name.to_owned()];
    for _ in 0..MAX_LAYERS {
        let last = texts.last().map_or("", String::as_str);
        let decoded = percent_decode_str(last).decode_utf8_lossy().into_owned();
        if decoded == last {
            break;
        }
        texts.push(decoded);
    }
    let parts = texts.iter().flat_map(|text| text.split(['&', ';', '?', '#']));
    let names = parts.map(|part| {
        let name = part.split(['=', '\0']).next().unwrap_or(part);
        let name: String = name
            .trim_matches(|c: char| c == '+' || c.is_whitespace() || c.is_control())
            .to_uppercase()
            .to_lowercase()
            .chars()
            .filter(|c| {
                !c.is_control() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
            })
            .map(|c| if matches!(c, '+' | ' ' | '.') { '_' } else { c })
            .collect();
        match name.find('[').filter(|at| *at > 0) {
            Some(at) => name[..at].to_owned(),
            None => name,
        }
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_refused(argument: &str) -> bool {
        let mut fixed = ReservedNames::default();
        fixed.add("ro%6Ce");
        fixed.refuse(argument, argument).is_err()
    }

    #[test]
    fn a_name_that_is_set_is_refused_and_others_pass() {
        for argument in [
            "role",
            "ROLE",
            "ro%6ce",
            "ro%256ce",
            "role[]",
            "role[0]",
            " role",
            "role+",
            "role\0x",
            "x&role=admin",
        ] {
            assert!(is_refused(argument), "{argument:?}");
        }
        for argument in ["roles", "_role", "my_role", "x[role]", "rol", ""] {
            assert!(!is_refused(argument), "{argument:?}");
        }
    }

    proptest! {
        #[test]
        fn every_spelling_of_a_name_that_is_set_is_refused(choices in prop::collection::vec(0..5_u8, 4), end in 0..4_usize) {
            let letter = |(letter, choice): (char, &u8)| match choice {
                0 => letter.to_string(),
                1 => letter.to_uppercase().to_string(),
                2 => format!("%{:02x}", u32::from(letter)),
                3 => format!("%25{:02X}", u32::from(letter)),
                _ => format!("{letter}\u{200b}"),
            };
            let name: String = "role".chars().zip(&choices).map(letter).collect();
            prop_assert!(is_refused(&(name + ["", "[]", "%5b%5d", " "][end])));
        }
    }
}
