//! A thousand concurrent first calls start a server once, and share a failure of the start (promise R14).

use std::{fs, num::NonZeroUsize, time::Duration};

use mcp_mock::{MockReply, MockServer, MockTool};
use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome, SourceState, SourceStatus, ToolError},
};

use crate::binary::{BINARY, Place};

/// Time after which anything counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
const MANY: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Makes a thousand concurrent first calls.
async fn call(plane: &Toolplane) -> Vec<Result<Outcome, ToolError>> {
    let requests = (0..MANY.get()).map(|n| {
        let request = CallRequest::new("server__echo");
        request.json(format!(r#"{{"n":{n}}}"#)).unwrap()
    });
    timeout(PATIENCE, plane.call_many(requests, MANY)).await.unwrap()
}

fn status(plane: &Toolplane) -> SourceStatus {
    plane.sources().pop().unwrap().1
}

/// Returns a server over stdio that records each start and each message. With `if_ready` it ends at once until a file
/// `ready` exists.
fn noting(if_ready: &str) -> (Place, Toolplane) {
    let place = Place::empty();
    place.write("scenario.yaml", "tools: {echo: {replies: [{text: there}]}}\n");
    let folder = place.path().display();
    let script = format!(
        "cd {folder}; echo start >> starts; {if_ready} tee -a sent | {BINARY} mock-server --stdio --scenario scenario.yaml"
    );
    let plane = Toolplane::from_yaml(format!(
        "servers: {{server: {{command: sh, args: ['-c', '{script}'], era: legacy}}}}"
    ));
    (place, plane.unwrap())
}

/// Returns how often a line with this text was recorded.
fn count(place: &Place, file: &str, text: &str) -> usize {
    let notes = fs::read_to_string(place.path().join(file)).unwrap_or_default();
    notes.lines().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn over_stdio() {
    let (place, plane) = noting("");
    assert_eq!(status(&plane).state, SourceState::NotStarted);
    for result in call(&plane).await {
        result.unwrap();
    }
    assert_eq!(count(&place, "starts", "start"), 1);
    assert_eq!(count(&place, "sent", r#""method":"initialize""#), 1);
    assert_eq!(count(&place, "sent", r#""method":"tools/list""#), 1);
    assert_eq!(count(&place, "sent", r#""method":"tools/call""#), MANY.get());
    let status = status(&plane);
    assert_eq!((status.state, status.n_attempts), (SourceState::Ready, 1));
    plane.shutdown().await;
}

#[tokio::test]
async fn over_http() {
    let server = MockServer::builder()
        .tool(MockTool::new("echo").reply(MockReply::text("there")))
        .build();
    let http = server.http().await.unwrap();
    let url = http.url();
    let plane = Toolplane::from_yaml(format!("servers: {{server: {{url: '{url}', era: legacy}}}}")).unwrap();
    for result in call(&plane).await {
        result.unwrap();
    }
    for method in ["initialize", "tools/list"] {
        assert_eq!(server.requests(method).len(), 1, "{method}");
    }
    assert_eq!(server.calls("echo").len(), MANY.get());
    plane.shutdown().await;
}

#[tokio::test]
async fn those_who_wait_for_a_start_that_fails_share_the_failure_and_a_later_call_starts_it_once() {
    let (place, plane) = noting("[ -e ready ] || exit 3;");
    for result in call(&plane).await {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert_eq!(count(&place, "starts", "start"), 1);
    let failed = status(&plane);
    let SourceState::Failed(reason) = &failed.state else {
        panic!("{failed:?}")
    };
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(failed.n_attempts, 1);
    place.write("ready", "");
    // It rests for a second or so, during which no call starts it.
    let rested = async {
        while status(&plane).retry_in.is_some() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, rested).await.unwrap();
    for result in call(&plane).await {
        result.unwrap();
    }
    assert_eq!(count(&place, "starts", "start"), 2);
    assert_eq!(count(&place, "sent", r#""method":"initialize""#), 1);
    let status = status(&plane);
    assert_eq!((status.state, status.n_attempts), (SourceState::Ready, 2));
    assert_eq!(
        status.last_error.as_ref(),
        Some(reason),
        "why it failed before is still known"
    );
    plane.shutdown().await;
}
