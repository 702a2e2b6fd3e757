//! Modern requests in several rounds, with a state that is bound to its client, its request and its lifetime.

use mcp_server::{HttpServerOptions, Principal, StateKey, StateSeal};

use crate::support::{Head, META, STATE_LIFETIME, Served};

const DECLARED: &str = "Capabilities\":{\"roots\":{}}";

fn round(name: &str, rest: &str) -> String {
    let meta = META.replace("Capabilities\":{}", DECLARED);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{name}",{rest}{meta}}}}}"#)
}

fn head(name: &str) -> Head<'static> {
    Head::modern("prompts/get").with("Mcp-Name", name)
}

fn second(state: &str) -> String {
    format!(r#""inputResponses":{{"roots":{{"roots":[1e2]}},"more":1}},"requestState":"{state}","#)
}

/// Returns the state of a first round.
async fn state(served: &Served, head: &Head<'_>) -> String {
    let answer = served.once(head, &round("p", "")).await;
    let begin = r#""result":{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":""#;
    let (_, rest) = answer.body.split_once(begin).expect(&answer.body);
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_second_round_brings_what_the_first_asked_for() {
    let served = Served::start(HttpServerOptions::default()).await;
    let state = state(&served, &head("p")).await;
    let answer = served.once(&head("p"), &round("p", &second(&state))).await;
    assert_eq!(
        answer.body,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","roots":{"roots":[1e2]},"state":"a.state"}}"#
    );
    // A question without a valid answer is asked again.
    for odd in ["null", "[]", r#"{"roots":7}"#, r#"{"other":{}}"#] {
        let rest = format!(r#""inputResponses":{odd},"#);
        let answer = served.once(&head("p"), &round("p", &rest)).await;
        assert!(answer.body.contains("input_required"), "{odd}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_what_is_missing() {
    let served = Served::start(HttpServerOptions::default()).await;
    let body = round("p", "").replace(DECLARED, "Capabilities\":{}");
    let answer = served.once(&head("p"), &body).await;
    assert_eq!(answer.status, 400);
    let expected = r#""code":-32021,"message":"this needs the capability `roots`, which the client did not declare","data":{"requiredCapabilities":{"roots":{}}}"#;
    assert!(answer.body.contains(expected), "{}", answer.body);
    // The legacy era has no such rounds.
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#;
    assert!(served.once(&Head::post(), legacy).await.body.contains("-32603"));
}

#[tokio::test(start_paused = true)]
async fn a_state_is_good_for_one_client_one_request_and_some_time() {
    let served = Served::start(HttpServerOptions::default().identify(|parts| {
        let user = parts.headers.get("x-user").map(|user| user.to_str().unwrap());
        Ok(Principal::new(user.unwrap_or("alice")))
    }))
    .await;
    let state = state(&served, &head("p")).await;
    let mut changed = state.replace("a.state", "b.state");
    for (what, head, body) in [
        ("changed", head("p"), round("p", &second(&changed))),
        ("made up", head("p"), round("p", &second("ffffffff.00.a.state"))),
        ("no state", head("p"), round("p", &second(""))),
        ("other request", head("q"), round("q", &second(&state))),
        (
            "other client",
            head("p").with("X-User", "mabel"),
            round("p", &second(&state)),
        ),
    ] {
        let answer = served.once(&head, &body).await;
        assert!(
            answer.body.contains("`requestState` is invalid or has expired"),
            "{what}: {}",
            answer.body
        );
    }
    // Its expiry cannot be changed either.
    changed = format!("f{state}");
    let answer = served.once(&head("p"), &round("p", &second(&changed))).await;
    assert!(answer.body.contains("-32602"), "{}", answer.body);
    let answer = served.once(&head("p"), &round("p", &second(&state))).await;
    assert!(answer.body.contains("complete"), "{}", answer.body);
    tokio::time::advance(STATE_LIFETIME * 2).await;
    let answer = served.once(&head("p"), &round("p", &second(&state))).await;
    assert!(answer.body.contains("-32602"), "{}", answer.body);
}

#[test]
fn a_key_is_never_shown() {
    let key = StateKey::new([213; 32]);
    assert_eq!(format!("{key:?}"), "StateKey(..)");
    assert_ne!(key, StateKey::random().expect("randomness"));
}

/// Replicas, and a server after its restart, open the states that one of them has sealed.
#[tokio::test(start_paused = true)]
async fn servers_with_one_key_open_the_states_of_each_other_until_they_expire() {
    let start = |key: u8| {
        let seal = StateSeal::with_key(StateKey::new([key; 32]), STATE_LIFETIME);
        Served::start_sealed(HttpServerOptions::default(), seal)
    };
    let (one, other, stranger) = (start(1).await, start(1).await, start(2).await);
    let state = state(&one, &head("p")).await;
    let answer = other.once(&head("p"), &round("p", &second(&state))).await;
    assert!(answer.body.contains("complete"), "{}", answer.body);
    let answer = stranger.once(&head("p"), &round("p", &second(&state))).await;
    assert!(answer.body.contains("-32602"), "{}", answer.body);
    tokio::time::advance(STATE_LIFETIME * 2).await;
    let answer = other.once(&head("p"), &round("p", &second(&state))).await;
    assert!(answer.body.contains("-32602"), "{}", answer.body);
}
