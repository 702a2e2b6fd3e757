use std::collections::BTreeMap;

use tool_core::{ErrorKind, PrepareError};

use crate::pointer;

/// Exit codes of failures that have a kind of their own (`sysexits.h`).
const USUAL_KINDS: [(i32, ErrorKind); 4] = [
    (64, ErrorKind::InvalidArguments),
    (65, ErrorKind::InvalidArguments),
    (69, ErrorKind::Unavailable),
    (75, ErrorKind::Unavailable),
];

/// Error kinds of the exit codes of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes(BTreeMap<i32, ErrorKind>);

impl ExitCodes {
    /// Reads the member `exit_codes` of a tool's settings: names of kinds by exit code.
    pub fn read(written: &BTreeMap<String, String>, problems: &mut Vec<PrepareError>) -> Self {
        let mut kinds = BTreeMap::new();
        for (code, kind) in written {
            let place = pointer("/exit_codes", code);
            let number = code.parse().ok().filter(|code| (1..=255).contains(code));
            match (number, ErrorKind::named(kind)) {
                (Some(number), Some(kind)) => drop(kinds.insert(number, kind)),
                (None, _) => {
                    let problem = PrepareError::at(place, format!("`{code}` is no exit code of a failure"));
                    problems.push(problem.with_hint("use 1 to 255"));
                }
                (_, None) => {
                    let names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
                    let problem = PrepareError::at(place, format!("unknown kind of error `{kind}`"));
                    problems.push(problem.with_hint(format!("there are {}", names.join(", "))));
                }
            }
        }
        Self(kinds)
    }

    /// Returns `true` if the settings name the kind of this exit code.
    #[must_use]
    pub fn has(&self, code: i32) -> bool {
        self.0.contains_key(&code)
    }

    /// Returns the kind of an exit code: that of the settings, else `invalid_arguments` for 64 and 65, `unavailable` for 69
    /// and 75, and `upstream_error` for the others.
    #[must_use]
    pub fn kind(&self, code: i32) -> ErrorKind {
        let usual = || USUAL_KINDS.into_iter().find(|(known, _)| *known == code);
        let known = self.0.get(&code).copied();
        let kind = known.or_else(|| usual().map(|(_, kind)| kind));
        kind.unwrap_or(ErrorKind::UpstreamError)
    }
}
