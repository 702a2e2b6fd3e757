use serde_json::Value;

use crate::{ApiOperation, document::Document};

/// Methods that a path item has as keys, in lower case.
const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// Operation of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    /// Method, in lower case unless the document names it itself.
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) id: Option<&'a str>,
    pub(crate) item: &'a Value,
    pub(crate) value: &'a Value,
}

/// Operations of a document.
#[derive(Debug, Default)]
pub(crate) struct Listed<'a> {
    pub(crate) operations: Vec<Operation<'a>>,
    /// Paths that cannot be read, with the reason.
    pub(crate) unreadable: Vec<(ApiOperation, String)>,
}

impl<'a> Operation<'a> {
    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let tags = self.value.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn upper_method(&self) -> String {
        self.method.to_ascii_uppercase()
    }

    /// Returns the text of a member.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        let text = self.value.get(key)?.as_str()?.trim();
        Some(text).filter(|text| !text.is_empty())
    }

    pub(crate) fn described(&self) -> ApiOperation {
        ApiOperation {
            method: self.upper_method(),
            path: self.path.to_owned(),
            id: self.id.map(str::to_owned),
        }
    }
}

/// Returns the operations of a document, in its order.
pub(crate) fn operations(document: &Document) -> Listed<'_> {
    let mut listed = Listed::default();
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| !path.starts_with("x-"))
    {
        let unreadable = |method: &str, reason: String| {
            let (method, path) = (method.to_ascii_uppercase(), path.clone());
            (
                ApiOperation {
                    method,
                    path,
                    id: None,
                },
                reason,
            )
        };
        let item = match document.resolve(item) {
            Ok(item) if item.is_object() => item,
            Ok(_) => {
                listed
                    .unreadable
                    .push(unreadable("*", "the path item is not a map".to_owned()));
                continue;
            }
            Err(reason) => {
                listed
                    .unreadable
                    .push(unreadable("*", format!("the path item: {reason}")));
                continue;
            }
        };
        let members = item.as_object().into_iter().flatten();
        let more = item.get("additionalOperations").and_then(Value::as_object);
        let known = members.filter(|(key, _)| METHODS.contains(&key.as_str()));
        for (method, value) in known.chain(more.into_iter().flatten()) {
            if !value.is_object() {
                listed
                    .unreadable
                    .push(unreadable(method, "the operation is not a map".to_owned()));
                continue;
            }
            let id = value.get("operationId").and_then(Value::as_str);
            let id = id.map(str::trim).filter(|id| !id.is_empty());
            listed.operations.push(Operation {
                method,
                path,
                id,
                item,
                value,
            });
        }
    }
    listed
}
