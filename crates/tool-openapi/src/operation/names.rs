use std::collections::{HashMap, HashSet};

use tool_core::outward_name;

use super::Operation;

/// Returns the name of each operation's tool, or the reason why it has none.
///
/// A name is the `operationId`, and otherwise method and path. Operations whose ids are the same, or become the same by the
/// rule for names, are all named by method and path. The whole document decides, so that a selection changes no name.
pub(crate) fn names(operations: &[Operation<'_>], prefix: &str) -> Vec<Result<String, String>> {
    let named = |text: &str| outward_name(&format!("{prefix}{text}"));
    let ids: Vec<Option<String>> = operations
        .iter()
        .map(|operation| operation.id.map(named))
        .collect();
    let mut n_uses: HashMap<&str, usize> = HashMap::new();
    for id in ids.iter().flatten() {
        *n_uses.entry(id).or_default() += 1;
    }
    let is_unique = |id: &&String| n_uses.get(id.as_str()) == Some(&1);
    let mut taken: HashSet<String> = ids.iter().flatten().filter(is_unique).cloned().collect();
    let mut names = Vec::with_capacity(operations.len());
    for (operation, id) in operations.iter().zip(&ids) {
        names.push(match id.as_ref().filter(is_unique) {
            Some(id) => Ok(id.clone()),
            None => {
                let name = named(&by_path(operation));
                if taken.insert(name.clone()) {
                    Ok(name)
                } else {
                    Err(format!("its name would be `{name}`, which another operation has"))
                }
            }
        });
    }
    names
}

/// Returns the name by method and path: `get_pets_petId` for `GET /pets/{petId}`.
fn by_path(operation: &Operation<'_>) -> String {
    let words = operation.path.split(|c: char| !c.is_alphanumeric() && c != '-');
    let words = words.filter(|word| !word.is_empty());
    let method = operation.method.to_ascii_lowercase();
    let parts: Vec<&str> = std::iter::once(method.as_str()).chain(words).collect();
    parts.join("_")
}
