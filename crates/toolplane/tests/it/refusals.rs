//! What an upstream does not take: a caller's fault, for which nobody else pays.

use mcp_mock::{Misbehavior, MockHttp, MockReply, MockServer, MockTool, RpcError};
use toolplane::{
    CallRequest, Toolplane,
    core::ErrorKind,
    manifest::{LoadOptions, Syntax, load},
};

/// A tool that answers like this, may run twice, is tried again, guarded and has a fallback; and its server.
async fn plane(reply: MockReply) -> (MockServer, MockHttp, Toolplane) {
    let server = MockServer::builder()
        .tool(MockTool::new("look").reply(reply))
        .tool(MockTool::new("other"))
        .build();
    let http = server.http().await.expect("it listens");
    let yaml = format!(
        "servers: {{s: {{url: '{}', retry: {{max_attempts: 3, initial_delay: 1ms}}, breaker: {{}}}}}}\n\
         tools:\n  \
           instead: {{description: d, executor: {{kind: mcp, server: s, tool: other}}}}\n  \
           look:\n    \
             description: d\n    \
             idempotent: true\n    \
             on_failure: [{{fallback: instead}}]\n    \
             executor: {{kind: mcp, server: s, tool: look}}\n",
        http.url()
    );
    let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, &yaml)).expect("usable");
    let plane = Toolplane::builder().loaded(&loaded).build().expect("usable");
    (server, http, plane)
}

/// Makes twenty calls of a tool that may run twice, is tried again, guarded and has a fallback, and tells how they ended. The
/// calls must be as many at the server.
async fn twenty(refusal: MockReply) -> ErrorKind {
    let (server, _http, plane) = plane(refusal).await;
    let mut kinds = Vec::new();
    for _ in 0..20 {
        let refused = plane
            .call(CallRequest::new("look"))
            .await
            .expect_err("it is refused");
        kinds.push(refused.kind());
    }
    assert_eq!(server.calls("look").len(), 20, "each is made, and made once");
    assert_eq!(server.calls("other").len(), 0, "nothing is given in its place");
    plane
        .call(CallRequest::new("instead"))
        .await
        .expect("nothing is held back");
    assert_eq!(kinds, [kinds[0]; 20]);
    kinds[0]
}

#[tokio::test]
async fn what_a_server_says_of_a_request_opens_no_breaker_and_is_not_tried_again() {
    for (code, kind) in [
        (-32602, ErrorKind::InvalidArguments),
        (-32601, ErrorKind::NotFound),
        (-32002, ErrorKind::NotFound),
    ] {
        let refusal = MockReply::error(RpcError::new(code, "no"));
        assert_eq!(twenty(refusal).await, kind, "{code}");
    }
}

#[tokio::test]
async fn what_its_status_says_of_a_request_opens_no_breaker_and_is_not_tried_again() {
    for (status, kind) in [
        (400, ErrorKind::InvalidArguments),
        (422, ErrorKind::InvalidArguments),
    ] {
        let refusal = MockReply::usual().misbehave(Misbehavior::status(status));
        assert_eq!(twenty(refusal).await, kind, "{status}");
    }
    // What the code leaves open, the status says.
    let refusal = MockReply::usual().misbehave(Misbehavior::Status {
        status: 400,
        headers: Vec::new(),
        body: r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#.to_owned(),
    });
    assert_eq!(twenty(refusal).await, ErrorKind::InvalidArguments);
}

/// An endpoint that is gone is no fault of the call: what stands in for the tool is called, and still nothing is held back.
#[tokio::test]
async fn an_endpoint_that_is_gone_is_stood_in_for_and_opens_no_breaker() {
    let gone = MockReply::usual().misbehave(Misbehavior::status(404));
    let (server, _http, plane) = plane(gone).await;
    for _ in 0..20 {
        let given = plane.call(CallRequest::new("look")).await;
        given.expect("the other one answers");
    }
    assert_eq!(server.calls("look").len(), 20, "each is made, and made once");
    assert_eq!(server.calls("other").len(), 20);
}
