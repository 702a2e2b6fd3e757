use raw_json::{JsonError, JsonErrorKind, JsonKind, RawJson};

/// Error of arguments that do not fit the type that a tool reads them into: the path of the argument, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments: {}{problem}", prefix(.path))]
pub struct ArgumentsError {
    path: String,
    problem: String,
}

impl ArgumentsError {
    /// Locates an error of reading these arguments.
    pub(super) fn locate(arguments: &RawJson, error: &JsonError) -> Self {
        let problem = match error.kind() {
            JsonErrorKind::Shape(text) => without_place(text).to_owned(),
            other => other.to_string(),
        };
        Self {
            path: pointer(arguments, error.offset()),
            problem,
        }
    }

    /// Creates the error of an argument that is not there.
    pub(super) fn missing(name: &str) -> Self {
        Self {
            path: String::new(),
            problem: format!("missing field `{name}`"),
        }
    }

    /// Moves the error of an argument into the arguments that have it.
    pub(super) fn in_member(mut self, name: &str) -> Self {
        self.path.insert_str(0, &token(name));
        self
    }

    /// Returns the JSON Pointer of the argument, such as `/place/city`: empty if the arguments as a whole are meant, for
    /// example if one is missing.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the description of the problem, such as "missing field `city`".
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

fn prefix(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    format!("`{path}`: ")
}

/// Removes the line and the column from a message of `serde_json`: models and users do not see the text that they count.
fn without_place(text: &str) -> &str {
    text.rsplit_once(" at line ").map_or(text, |(message, _)| message)
}

/// Returns the JSON Pointer (RFC 6901) of the innermost value that `serde_json` was reading when it failed.
///
/// It reports the last byte that it had consumed: within the value, or right before it if the kind of value is wrong.
fn pointer(root: &RawJson, offset: usize) -> String {
    let mut path = String::new();
    let mut value = root.clone();
    while let Some((key, inner)) = child_at(root, &value, offset) {
        path.push_str(&token(&key));
        let is_before = offset < start_in(root, &inner);
        value = inner;
        if is_before {
            break;
        }
    }
    path
}

/// Writes a reference token of a JSON Pointer.
fn token(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns the member or item of a value that ends behind the offset.
fn child_at(root: &RawJson, value: &RawJson, offset: usize) -> Option<(String, RawJson)> {
    let ends_behind = |inner: &RawJson| start_in(root, inner) + inner.len() > offset;
    match value.kind() {
        JsonKind::Object => {
            let mut members = value.members();
            let found = members.find(|(_, inner)| ends_behind(inner));
            found.map(|(key, inner)| (key.into_owned(), inner))
        }
        JsonKind::Array => {
            let mut items = value.items().enumerate();
            let found = items.find(|(_, inner)| ends_behind(inner));
            found.map(|(index, inner)| (index.to_string(), inner))
        }
        _ => None,
    }
}

/// Returns the offset of a part in the text that it is a slice of.
fn start_in(root: &RawJson, part: &RawJson) -> usize {
    (part.as_str().as_ptr() as usize).saturating_sub(root.as_str().as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read into")]
    struct Trip {
        city: String,
        days: u8,
        #[serde(default)]
        stops: Vec<Stop>,
        #[serde(default)]
        extra: HashMap<String, bool>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read into")]
    struct Stop {
        name: String,
        at: (u8, u8),
    }

    fn check(arguments: &str, expected: &str) {
        let arguments = RawJson::parse(arguments.to_owned()).expect("it is JSON");
        let error = arguments.to::<Trip>().expect_err("it does not fit");
        let error = ArgumentsError::locate(&arguments, &error);
        assert_eq!(error.to_string(), format!("invalid arguments: {expected}"));
    }

    #[test]
    fn a_mismatch_names_its_field() {
        let cases = [
            (
                r#"{"city":"Riga","days":"two"}"#,
                r#"`/days`: invalid type: string "two", expected u8"#,
            ),
            (
                r#"{"city": {"name": "Riga"}, "days": 2}"#,
                "`/city`: invalid type: map, expected a string",
            ),
            (
                "{\n  \"city\": \"Riga\",\n  \"days\": 300\n}",
                "`/days`: invalid value: integer `300`, expected u8",
            ),
            (r#"{"city":"Riga"}"#, "missing field `days`"),
            (
                r#"{"city":"Riga","days":1,"stops":[{"name":"a","at":[1,2]},{"name":"b","at":[1,null]}]}"#,
                "`/stops/1/at/1`: invalid type: null, expected u8",
            ),
            (
                r#"{"city":"Riga","days":1,"stops":[{"name":"a","at":[1,2]},{"at":[1,2]}]}"#,
                "`/stops/1`: missing field `name`",
            ),
            (
                r#"{"extra":{"a/b":true,"c~":1},"city":"Riga","days":1}"#,
                "`/extra/c~0`: invalid type: integer `1`, expected a boolean",
            ),
            (
                r#"{"city":"Riga","dys":1}"#,
                "`/dys`: unknown field `dys`, expected one of `city`, `days`, `stops`, `extra`",
            ),
            ("[1]", "`/0`: invalid type: integer `1`, expected a string"),
        ];
        for (arguments, expected) in cases {
            check(arguments, expected);
        }
    }
}
