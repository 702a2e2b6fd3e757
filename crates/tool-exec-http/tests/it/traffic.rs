//! Counters of connections and of running requests.

use std::sync::Arc;

use serde_json::json;
use tokio::{net::TcpSocket, sync::Notify};

use crate::{
    server::{Answer, Server, ok},
    support::{Prepared, Values, descriptor, executor, prepare_by},
};

fn prepared(executor: &tool_exec_http::HttpExecutor, url: &str) -> Prepared {
    prepare_by(executor, descriptor(json!({ "url": url }))).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[tokio::test]
async fn connections_are_counted_once_however_often_they_are_used() {
    let server = Server::start(|_| Answer::Keep(ok("application/json", "1"))).await;
    let executor = executor(Values::new(&[]));
    let traffic = executor.traffic();
    let tool = prepared(&executor, &server.url("/"));
    assert_eq!((traffic.n_opened(), traffic.n_failed()), (0, 0));
    for _ in 0..3 {
        assert_eq!(tool.call(json!({})).await.text(), "1");
    }
    assert_eq!((traffic.n_opened(), traffic.n_failed()), (1, 0));
    assert_eq!(traffic.n_requests(), 3);
    // No one listens at this address, and no one else can, since it is bound.
    let silent = TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = silent.local_addr().unwrap();
    let nowhere = prepared(&executor, &format!("http://{address}/"));
    nowhere.call(json!({})).await.error();
    assert_eq!((traffic.n_opened(), traffic.n_failed()), (1, 1));
}

#[tokio::test]
async fn requests_are_counted_as_long_as_they_run_and_upstreams_as_long_as_they_have_tools() {
    let arrived = Arc::new(Notify::new());
    let tell = arrived.clone();
    let server = Server::start(move |_| {
        tell.notify_one();
        Answer::Hang(Vec::new())
    })
    .await;
    let executor = executor(Values::new(&[]));
    let traffic = executor.traffic();
    let running = || -> Vec<(String, u64)> {
        let running = traffic.n_running().into_iter();
        running.map(|(name, n)| (name.to_string(), n)).collect()
    };
    let of_host = server.url("");
    let tool = prepared(&executor, &server.url("/"));
    let templated = prepared(&executor, "https://{host}/");
    assert_eq!(running(), [(of_host.clone(), 0), ("other".to_owned(), 0)]);
    {
        let mut call = std::pin::pin!(tool.call(json!({})));
        tokio::select! {
            _ = &mut call => panic!("it never answers"),
            () = arrived.notified() => {}
        }
        assert_eq!(running(), [(of_host.clone(), 1), ("other".to_owned(), 0)]);
    }
    assert_eq!(
        running(),
        [(of_host, 0), ("other".to_owned(), 0)],
        "nobody waits for it"
    );
    drop((tool, templated));
    assert_eq!(running(), []);
}
