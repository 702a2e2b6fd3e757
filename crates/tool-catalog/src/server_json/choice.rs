use crate::{CatalogError, CatalogErrorKind, foreign::shown};

/// Package or endpoint of a `server.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageChoice {
    /// Number, from 1.
    pub number: usize,
    /// Type of the package, such as `npm`, or `remote`.
    pub kind: String,
    /// Name of the package, or URL.
    pub label: String,
    /// Reason for which it cannot be used.
    pub problem: Option<String>,
}

/// Chooses by number or type; without one, the first that can be used.
pub(super) fn choose<'a>(
    name: &str,
    choices: &'a [PackageChoice],
    wanted: Option<&str>,
) -> Result<&'a PackageChoice, CatalogError> {
    let matches = |choice: &&PackageChoice| {
        wanted.is_none_or(|wanted| choice.kind == wanted || choice.number.to_string() == wanted)
    };
    let matching: Vec<&PackageChoice> = choices.iter().filter(matches).collect();
    if let Some(usable) = matching.iter().find(|choice| choice.problem.is_none()) {
        return Ok(usable);
    }
    let listed = |choice: &&PackageChoice| match &choice.problem {
        Some(problem) => format!("{} ({}): {problem}", choice.number, shown(&choice.kind)),
        None => format!("{} ({})", choice.number, shown(&choice.kind)),
    };
    let (kind, problem, all): (_, String, Vec<String>) = match (wanted, matching.is_empty()) {
        (Some(wanted), true) => {
            let problem = format!("it has no package `{}`", shown(wanted));
            (
                CatalogErrorKind::NotFound,
                problem,
                choices.iter().map(|choice| listed(&choice)).collect(),
            )
        }
        (_, true) => {
            let problem = "it has neither packages nor remote endpoints".to_owned();
            (CatalogErrorKind::Invalid, problem, Vec::new())
        }
        (_, false) => {
            let reasons: Vec<String> = matching.iter().map(listed).collect();
            let problem = format!("none of its packages can be used: {}", reasons.join("; "));
            (CatalogErrorKind::Invalid, problem, Vec::new())
        }
    };
    let failure = CatalogError::new(kind, name, problem);
    Err(match all.is_empty() {
        true => failure,
        false => failure.with_hint(format!("there are {}", all.join("; "))),
    })
}
