//! One set of servers from several files.

use serde_json::{Map, Value};
use toolplane::raw_json::{RawJson, digest};

use super::collect::ReadFile;

/// Server with the decision about it.
#[derive(Debug)]
pub(super) struct Merged {
    /// Number of its file.
    pub(super) file: usize,
    /// Name in the file.
    pub(super) name: String,
    /// Settings in our own form.
    pub(super) settings: Value,
    pub(super) decision: Decision,
}

/// Decision about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is taken under this name.
    Take(String),
    /// Equal settings are taken already, under this name.
    Same(String),
    /// The configuration has the same server under this name.
    Present(String),
    /// It cannot be taken, for this reason.
    Refuse(String),
}

impl Merged {
    /// Returns the name and settings of a server that is taken.
    pub(super) fn taken(&self) -> Option<(String, Value)> {
        match &self.decision {
            Decision::Take(name) => Some((name.clone(), self.settings.clone())),
            _ => None,
        }
    }
}

/// Decides about all servers, in their order: equal settings are taken once, and other settings of a taken name get a name of their
/// own.
pub(super) fn merge(files: &[ReadFile], known: &Map<String, Value>) -> Vec<Merged> {
    let mut names: Vec<(String, [u8; 32], bool)> = known
        .iter()
        .map(|(name, settings)| (name.clone(), digest(&RawJson::from(settings)), true))
        .collect();
    let mut merged = Vec::new();
    for (number, file) in files.iter().enumerate() {
        for server in &file.servers {
            let decision = match &server.refusal {
                Some(reason) => Decision::Refuse(reason.clone()),
                None => {
                    let sum = digest(&RawJson::from(&server.settings));
                    match names.iter().find(|(_, known, _)| *known == sum) {
                        Some((name, _, true)) => Decision::Present(name.clone()),
                        Some((name, _, false)) => Decision::Same(name.clone()),
                        None => {
                            let name = free_name(&server.name, file, &names);
                            names.push((name.clone(), sum, false));
                            Decision::Take(name)
                        }
                    }
                }
            };
            merged.push(Merged {
                file: number,
                name: server.name.clone(),
                settings: server.settings.clone(),
                decision,
            });
        }
    }
    merged
}

/// Returns the name, or one with the client's name or a number behind it.
fn free_name(name: &str, file: &ReadFile, names: &[(String, [u8; 32], bool)]) -> String {
    let client = file.client.map(|client| format!("{name}-{}", client.name));
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = [name.to_owned()].into_iter().chain(client).chain(numbered);
    let is_free = |candidate: &String| names.iter().all(|(known, ..)| known != candidate);
    candidates.find(is_free).unwrap_or_else(|| name.to_owned())
}
