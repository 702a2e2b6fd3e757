use std::collections::HashMap;

use raw_json::{JsonKind, RawJson};
use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};

/// JSONPath (RFC 9535) to the part of a response that is the result.
///
/// The path is evaluated on a parsed tree, and its matches are copied from the text, so that every number keeps its
/// digits.
#[derive(Debug, Clone)]
pub(crate) struct ResponsePath {
    path: JsonPath,
    /// `true` for a singular query (RFC 9535, section 2.3.5.1), which has one match at most.
    singular: bool,
    /// Maximum number of values in a response on which the path is evaluated.
    max_values: usize,
}

/// Error of evaluating a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathError {
    /// The response has too many values for a path of this cost.
    TooLarge,
}

const MAX_LENGTH: usize = 1024;
const MAX_NESTING: usize = 16;
/// Maximum number of `..`. One visits every value; a second one would visit all of them for each.
const MAX_DESCENTS: usize = 1;
/// Maximum number of selectors, since a list of them multiplies the matches.
const MAX_SELECTORS: usize = 16;
const MAX_VALUES: usize = 1_000_000;
/// Maximum number of values for costly paths: a pattern is compiled again for every value, and a filter from `$` walks the
/// response for every value.
const MAX_VALUES_COSTLY: usize = 10_000;

impl ResponsePath {
    /// Parses a path. Refuses paths whose time could grow faster than the response.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let shape = PathCost::estimate(text);
        if text.len() > MAX_LENGTH || shape.nesting > MAX_NESTING {
            return Err(format!(
                "must not be longer than {MAX_LENGTH} bytes or nested deeper than {MAX_NESTING} levels"
            ));
        }
        if shape.descents > MAX_DESCENTS {
            return Err(format!(
                "must not have more than {MAX_DESCENTS} `..`, which takes too long"
            ));
        }
        if shape.selectors > MAX_SELECTORS {
            return Err(format!(
                "must not list more than {MAX_SELECTORS} selectors, which takes too long"
            ));
        }
        let path = JsonPath::parse(text).map_err(|error| {
            let hint = if text.starts_with('$') {
                ""
            } else {
                "; it begins with `$`"
            };
            format!(
                "is not a JSONPath: {} at character {}{hint}",
                error.message(),
                error.position() + 1
            )
        })?;
        Ok(Self {
            path,
            singular: shape.singular,
            max_values: if shape.costly {
                MAX_VALUES_COSTLY
            } else {
                MAX_VALUES
            },
        })
    }

    /// Returns the matches: the value or null for a singular query, a list otherwise.
    pub(crate) fn apply(&self, response: &RawJson, value: &Value) -> Result<RawJson, PathError> {
        if !self.singular && count(value, self.max_values) > self.max_values {
            return Err(PathError::TooLarge);
        }
        let found = self.path.query_located(value);
        let mut wanted = LocationTree::default();
        for (index, node) in found.iter().enumerate() {
            wanted.add(node.location().iter(), index);
        }
        let mut parts = vec![RawJson::null(); found.len()];
        cut(response, &wanted, &mut parts);
        if self.singular {
            return Ok(parts.into_iter().next().unwrap_or_else(RawJson::null));
        }
        Ok(RawJson::from_serialize(&parts).unwrap_or_else(|_| RawJson::null()))
    }
}

/// Estimated cost of a path, from its text without quoted parts.
#[derive(Debug, PartialEq, Eq)]
struct PathCost {
    singular: bool,
    nesting: usize,
    descents: usize,
    selectors: usize,
    costly: bool,
}

impl PathCost {
    fn estimate(text: &str) -> Self {
        let bare = without_quotes(text);
        let (mut open, mut nesting) = (0_usize, 0);
        for byte in bare.bytes() {
            match byte {
                b'[' | b'(' => open += 1,
                b']' | b')' => open = open.saturating_sub(1),
                b'!' => nesting += 1,
                _ => {}
            }
            nesting = nesting.max(open);
        }
        // Commas separate selectors and the arguments of functions; both count.
        let selectors = 1 << bare.matches(',').count().min(30);
        let inner_root = bare.rfind('$').is_some_and(|at| at > 0);
        Self {
            singular: !bare.contains(['*', '?', ':', ',']) && !bare.contains(".."),
            nesting,
            descents: bare.matches("..").count(),
            selectors,
            costly: inner_root || bare.contains("match") || bare.contains("search"),
        }
    }
}

/// Removes quoted parts from the text.
fn without_quotes(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match quote {
            Some(_) if next == '\\' => {
                chars.next();
            }
            Some(open) if next == open => quote = None,
            Some(_) => {}
            None if matches!(next, '\'' | '"') => quote = Some(next),
            None => bare.push(next),
        }
    }
    bare
}

/// Counts the values of a tree, and stops just above `limit`.
fn count(value: &Value, limit: usize) -> usize {
    let mut left = vec![value];
    let mut counted = 0;
    while let Some(value) = left.pop() {
        counted += 1;
        if counted > limit {
            break;
        }
        match value {
            Value::Array(list) => left.extend(list),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    counted
}

/// Locations of all matches as a tree, so that one pass over the text copies all of them.
#[derive(Default)]
struct LocationTree<'a> {
    /// Indexes of the matches at this location.
    here: Vec<usize>,
    members: HashMap<&'a str, Self>,
    elements: HashMap<usize, Self>,
}

impl<'a> LocationTree<'a> {
    fn add(&mut self, location: impl Iterator<Item = &'a PathElement<'a>>, index: usize) {
        let mut place = self;
        for element in location {
            place = match element {
                PathElement::Name(name) => place.members.entry(name).or_default(),
                PathElement::Index(at) => place.elements.entry(*at).or_default(),
            };
        }
        place.here.push(index);
    }
}

/// Copies the matches from a value. Recursion is bounded by the depth of the text, which was checked.
fn cut(value: &RawJson, wanted: &LocationTree<'_>, parts: &mut [RawJson]) {
    for index in &wanted.here {
        parts[*index] = value.clone();
    }
    if !wanted.members.is_empty() {
        // The last one of several members with the same key counts, as in the parsed tree.
        for (key, member) in value.members() {
            if let Some(wanted) = wanted.members.get(&*key) {
                cut(&member, wanted, parts);
            }
        }
    }
    if !wanted.elements.is_empty() && value.kind() == JsonKind::Array {
        let elements: Vec<RawJson> = value.to().unwrap_or_default();
        for (index, wanted) in &wanted.elements {
            if let Some(element) = elements.get(*index) {
                cut(element, wanted, parts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;

    use super::{PathCost, ResponsePath};

    #[test]
    fn cuts_text() {
        let response = r#"{"n": 123456789012345678901234567890, "a": [{"b": 1e2, "c": "x"}, {"b": 0.10}, 3],
            "it's": {"k": [1.0]}, "a b": true}"#;
        let raw = RawJson::parse(response).unwrap();
        let value = raw.to().unwrap();
        for (path, expected) in [
            ("$.n", "123456789012345678901234567890"),
            ("$", raw.as_str()),
            ("$.a[0].b", "1e2"),
            ("$.a[-1]", "3"),
            ("$['a'][1]['b']", "0.10"),
            ("$[\"it's\"].k[0]", "1.0"),
            ("$['it\\'s'].k", "[1.0]"),
            ("$['a b']", "true"),
            ("$.nothing.here", "null"),
            ("$.a[*].b", "[1e2,0.10]"),
            ("$..b", "[1e2,0.10]"),
            ("$.a[0:2].b", "[1e2,0.10]"),
            ("$.a[?@.c == 'x'].b", "[1e2]"),
            ("$.a[?@.c == '..,*'].b", "[]"),
            ("$.a[0]['c','b']", "[\"x\",1e2]"),
            ("$.zzz[*]", "[]"),
        ] {
            let path = ResponsePath::parse(path).unwrap();
            assert_eq!(path.apply(&raw, &value).unwrap().as_str(), expected, "{path:?}");
        }
    }

    #[test]
    fn costly_paths_are_refused() {
        for path in [
            "$..*..*",
            "$..[?@..a]",
            "$[0,0,0][0,0,0][0,0,0]",
            "$['a','b','c','d','e','f']",
            &format!("$[?{}@.a{}]", "(".repeat(40), ")".repeat(40)),
            &format!("$[?{}@.a]", "!".repeat(40)),
            &format!("$.{}", "a".repeat(2000)),
            "a.b",
            "$.a[",
            "",
        ] {
            assert!(ResponsePath::parse(path).is_err(), "{path}");
        }
        assert!(PathCost::estimate("$[?match(@.a, 'x')]").costly);
        assert!(PathCost::estimate("$.a[?@.b == $.c]").costly);
        assert!(!PathCost::estimate("$.a[?@.b == '$match']").costly);
    }
}
