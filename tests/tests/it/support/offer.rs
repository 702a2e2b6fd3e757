use std::collections::BTreeMap;

use super::compare::{members, object, text};

/// Capabilities of a client, and its answers. By default it cannot be asked.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// JSON text of its capabilities.
    pub(crate) capabilities: String,
    /// Returns the JSON text of the result for a method and parameters.
    pub(crate) answers: fn(&str, &str) -> Option<String>,
    /// Questions so far, in order: method and parameters.
    pub(crate) asked: Vec<(String, String)>,
}

impl Default for Offer {
    fn default() -> Self {
        Self::new("{}", |_, _| None)
    }
}

impl Offer {
    pub(crate) fn new(capabilities: impl Into<String>, answers: fn(&str, &str) -> Option<String>) -> Self {
        Self {
            capabilities: capabilities.into(),
            answers,
            asked: Vec::new(),
        }
    }

    /// Returns the message that answers a request.
    pub(crate) fn answer(&mut self, id: &str, method: &str, params: &str) -> String {
        let outcome = match self.result(method, params) {
            Some(result) => format!(r#""result":{result}"#),
            None => r#""error":{"code":-32601,"message":"not offered"}"#.to_owned(),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#)
    }

    /// Answers the questions of an incomplete result. Returns the additional members of the next request, or `None` for
    /// a final result.
    pub(crate) fn next_round(&mut self, result: &str) -> Option<BTreeMap<String, String>> {
        let mut result = members(result);
        if result
            .get("resultType")
            .is_none_or(|kind| text(kind) != "input_required")
        {
            return None;
        }
        let mut next = BTreeMap::new();
        if let Some(requests) = result.get("inputRequests") {
            let responses = members(requests).into_iter().map(|(key, request)| {
                let request = members(&request);
                let method = text(&request["method"]);
                let params = request.get("params").map_or("", String::as_str);
                let response = self.result(&method, params);
                let response = response.unwrap_or_else(|| panic!("asked what nobody offered: {request:?}"));
                (key, response)
            });
            next.insert("inputResponses".to_owned(), object(&responses.collect()));
        }
        next.extend(result.remove_entry("requestState"));
        Some(next)
    }

    fn result(&mut self, method: &str, params: &str) -> Option<String> {
        self.asked.push((method.to_owned(), params.to_owned()));
        (self.answers)(method, params)
    }
}
