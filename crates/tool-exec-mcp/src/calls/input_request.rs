use mcp_wire::method;
use raw_json::{JsonKind, RawJson};
use tool_core::InputRequest;

/// Maximum number of input requests in one round: each may be shown to a person.
const MAX_INPUT_REQUESTS: usize = 64;
/// Methods of input requests that a client can answer.
const CLIENT_METHODS: [&str; 3] = [
    method::ELICITATION_CREATE,
    method::SAMPLING_CREATE_MESSAGE,
    method::ROOTS_LIST,
];

/// Returns the input requests of a result, or the rule that they break.
pub(crate) fn input_request(result: &RawJson) -> Result<InputRequest, &'static str> {
    let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
    if requests.is_none() && state.is_none() {
        return Err("an input request that asks for nothing");
    }
    let requests = requests.unwrap_or(RawJson::object());
    if requests.kind() != JsonKind::Object {
        return Err("input requests that are not an object");
    }
    for (number, (_, question)) in requests.members().enumerate() {
        if number == MAX_INPUT_REQUESTS {
            return Err("more than 64 input requests at once");
        }
        let method = question.get("method").and_then(|method| method.string());
        if !method.is_some_and(|method| CLIENT_METHODS.contains(&&*method)) {
            return Err("an input request of a kind that no client answers");
        }
    }
    Ok(InputRequest::new(requests).with_state(state))
}
