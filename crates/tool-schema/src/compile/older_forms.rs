use serde_json::{Map, Value};

use crate::budget::{BELOW, BELOW_LISTS, BELOW_MAPS, DEFINITIONS, IN_PLACE, IN_PLACE_LISTS, IN_PLACE_MAPS};

/// Bounds that draft 4 writes as a boolean next to the bound itself.
const BOUNDS: [(&str, &str); 2] = [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];

/// Rewrites forms of older drafts, which later ones refuse: a boolean `exclusiveMinimum`, and a list as `items`. Returns
/// `true` if there were any.
pub(crate) fn upgrade(schema: &mut Value) -> bool {
    let Value::Object(keywords) = schema else {
        return false;
    };
    let mut is_changed = false;
    for (exclusive, inclusive) in BOUNDS {
        is_changed |= upgrade_bound(keywords, exclusive, inclusive);
    }
    is_changed |= upgrade_items(keywords);
    for (keyword, value) in keywords.iter_mut() {
        let is_in = |known: &[&str]| known.contains(&keyword.as_str());
        match value {
            Value::Array(schemas) if is_in(&IN_PLACE_LISTS) || is_in(&BELOW_LISTS) => {
                for schema in schemas {
                    is_changed |= upgrade(schema);
                }
            }
            Value::Object(schemas) if is_in(&IN_PLACE_MAPS) || is_in(&BELOW_MAPS) || is_in(&DEFINITIONS) => {
                for schema in schemas.values_mut() {
                    is_changed |= upgrade(schema);
                }
            }
            schema if is_in(&IN_PLACE) || is_in(&BELOW) => is_changed |= upgrade(schema),
            _ => {}
        }
    }
    is_changed
}

fn upgrade_bound(keywords: &mut Map<String, Value>, exclusive: &str, inclusive: &str) -> bool {
    // Draft 4 allows the boolean only next to the bound.
    let (Some(Value::Bool(is_exclusive)), Some(bound)) = (keywords.get(exclusive), keywords.get(inclusive))
    else {
        return false;
    };
    let bound = Some(bound.clone()).filter(|_| *is_exclusive);
    // `remove` would change the order of the others if the program keeps the order of members.
    keywords.retain(|keyword, _| keyword != exclusive && (bound.is_none() || keyword != inclusive));
    if let Some(bound) = bound {
        keywords.insert(exclusive.to_owned(), bound);
    }
    true
}

/// Rewrites a list as `items`, which 2020-12 calls `prefixItems`, with the rest in `items`.
fn upgrade_items(keywords: &mut Map<String, Value>) -> bool {
    if !keywords.get("items").is_some_and(Value::is_array) {
        return false;
    }
    let mut upgraded = Map::new();
    for (keyword, value) in std::mem::take(keywords) {
        let keyword = match keyword.as_str() {
            "items" => "prefixItems".to_owned(),
            "additionalItems" => "items".to_owned(),
            _ => keyword,
        };
        upgraded.insert(keyword, value);
    }
    *keywords = upgraded;
    true
}
