use std::{
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use tool_core::{BoxFuture, DispatchState, ErrorKind};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions, Resolve};

use crate::{
    server::{Answer, Server, answer, ok},
    support::{Prepared, Values, descriptor, prepare, prepare_by},
};

const REFUSED: &str = "the upstream's address is not public, and the tool may reach public addresses only";

/// Resolver that returns these addresses one after the other, then always the last one.
struct Names(Vec<&'static [&'static str]>, AtomicUsize);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let turn = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
        let addresses = self.0[turn].iter().map(|text| text.parse().unwrap()).collect();
        let known = host != "unknown.example";
        Box::pin(async move {
            if known {
                Ok(addresses)
            } else {
                Err(io::Error::new(io::ErrorKind::NotFound, "no such host 10.9.8.7"))
            }
        })
    }
}

fn tool(url: &str, allowed: &[&str], private: bool, names: Vec<&'static [&'static str]>) -> Prepared {
    let options = HttpExecutorOptions::default()
        .with_allow_private_networks(allowed.iter().map(|text| text.parse().unwrap()))
        .with_resolver(Arc::new(Names(names, AtomicUsize::new(0))));
    let executor = HttpExecutor::new(options, Values::new(&[]));
    let config = json!({"url": url, "allow_private": private});
    prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[tokio::test]
async fn what_a_name_leads_to_is_checked() {
    let server = Server::json("1").await;
    let url = format!("http://api.example:{}/", server.address.port());
    for (allowed, private, names, fine) in [
        (&[][..], false, vec![&["127.0.0.1"][..]], false),
        (&[], true, vec![&["127.0.0.1"]], true),
        (&["127.0.0.0/8"], false, vec![&["127.0.0.1"]], true),
        (&["api.example"], false, vec![&["127.0.0.1"]], true),
        (&["*.example"], false, vec![&["127.0.0.1"]], true),
        (&["other.example"], false, vec![&["127.0.0.1"]], false),
        (&[], false, vec![&["::ffff:127.0.0.1"]], false),
        (&[], true, vec![&["169.254.169.254", "fe80::1", "0.0.0.0"]], false),
        // The client connects only to addresses that passed the check.
        (
            &["127.0.0.1"],
            false,
            vec![&["10.0.0.1", "169.254.169.254", "127.0.0.1"]],
            true,
        ),
        // There is one lookup, so a second answer has no effect.
        (&["127.0.0.1"], false, vec![&["127.0.0.1"], &["10.0.0.1"]], true),
    ] {
        let done = tool(&url, allowed, private, names.clone()).call(json!({})).await;
        if fine {
            assert_eq!(done.text(), "1", "{allowed:?} {names:?}");
        } else {
            assert_eq!(done.error().to_string(), REFUSED, "{allowed:?} {names:?}");
            assert_eq!(
                (done.kind(), done.dispatch),
                (ErrorKind::Denied, DispatchState::NotSent)
            );
        }
    }
}

#[tokio::test]
async fn literal_addresses_are_checked_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "0",
        "10.0.0.1",
        "１２７.0.0.1",
    ] {
        let executor = HttpExecutor::new(HttpExecutorOptions::default(), Values::new(&[("${HOST}", host)]));
        // A literal address is refused when the tool is prepared.
        let problems = prepare_by(&executor, descriptor(json!({"url": format!("http://{host}:1/")})));
        let Err(problems) = problems else { panic!("{host}") };
        assert_eq!(
            problems[0].message, "leads to an address that is not public",
            "{host}"
        );
        // An address from a value is refused in the call.
        let tool = prepare_by(&executor, descriptor(json!({"url": "http://${HOST}:1/"})));
        let done = tool
            .unwrap_or_else(|problems| panic!("{problems:?}"))
            .call(json!({}))
            .await;
        assert_eq!(done.error().to_string(), REFUSED, "{host}");
        assert_eq!(done.dispatch, DispatchState::NotSent);
    }
}

#[tokio::test]
async fn tools_with_other_reach_share_no_connection() {
    let server = Server::json("1").await;
    let options = HttpExecutorOptions::default()
        .with_resolver(Arc::new(Names(vec![&["127.0.0.1"]], AtomicUsize::new(0))));
    let executor = HttpExecutor::new(options, Values::new(&[]));
    let url = format!("http://api.example:{}/", server.address.port());
    let prepare = |private: bool| {
        let config = json!({"url": url, "allow_private": private});
        prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    assert_eq!(prepare(true).call(json!({})).await.text(), "1");
    assert_eq!(prepare(false).call(json!({})).await.error().to_string(), REFUSED);
}

#[tokio::test]
async fn an_unknown_name_is_unavailable() {
    let done = tool("http://unknown.example/", &[], false, vec![&[]])
        .call(json!({}))
        .await;
    let message = "the upstream cannot be reached: its host name cannot be resolved";
    assert_eq!(done.error().to_string(), message);
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Unavailable, DispatchState::NotSent)
    );
    let shown = format!("{:?}", done.error());
    assert!(
        !shown.contains("10.9.8.7") && !shown.contains("unknown.example"),
        "{shown}"
    );
}

#[tokio::test]
async fn redirects() {
    let script = |other: u16| {
        move |request: &crate::server::Received| {
            let line = request.line().to_owned();
            let path = line.split(' ').nth(1).unwrap();
            let to =
                |status: &str, location: &str| Answer::Keep(answer(status, &[("location", location)], ""));
            match path.split('?').next().unwrap() {
                "/once" => to("302 Found", "/end#part"),
                "/307" => to("307 x", "end"),
                "/308" => to("308 x", "?/../end"),
                "/three" => to("301 x", "/two"),
                "/two" => to("301 x", "/one"),
                "/one" => to("301 x", "/end"),
                "/four" => to("301 x", "/three"),
                "/loop" => to("302 x", "/loop"),
                "/other-port" => to("302 x", &format!("http://127.0.0.1:{other}/end")),
                "/other-scheme" => to("302 x", "https://127.0.0.1/end"),
                "/internal" => to("302 x", "http://169.254.169.254/latest/"),
                "/file" => to("302 x", "file:///etc/passwd"),
                "/user" => to("302 x", "http://a:b@127.0.0.1/"),
                "/nowhere" => Answer::Keep(answer("302 x", &[], "")),
                _ => Answer::Keep(ok("application/json", "1")),
            }
        }
    };
    let other = Server::json("2").await;
    let server = Server::start(script(other.address.port())).await;
    for (method, path, expected, n_requests, last) in [
        ("GET", "/once", Ok("1"), 2, "GET /end"),
        ("POST", "/once", Ok("1"), 2, "GET /end"),
        ("POST", "/307", Ok("1"), 2, "POST /end"),
        ("GET", "/three", Ok("1"), 4, "GET /end"),
        (
            "GET",
            "/four",
            Err("the upstream redirects (301) too often"),
            4,
            "GET /one",
        ),
        (
            "GET",
            "/loop",
            Err("the upstream redirects (302) too often"),
            4,
            "GET /loop",
        ),
        (
            "GET",
            "/other-port",
            Err("the upstream redirects (302) to another place, which is not followed"),
            1,
            "GET /other-port",
        ),
        (
            "GET",
            "/other-scheme",
            Err("the upstream redirects (302) to another place, which is not followed"),
            1,
            "GET /other-scheme",
        ),
        (
            "GET",
            "/internal",
            Err("the upstream redirects (302) to another place, which is not followed"),
            1,
            "GET /internal",
        ),
        (
            "GET",
            "/file",
            Err("the upstream answered 302 Found"),
            1,
            "GET /file",
        ),
        (
            "GET",
            "/user",
            Err("the upstream answered 302 Found"),
            1,
            "GET /user",
        ),
        (
            "GET",
            "/nowhere",
            Err("the upstream answered 302 Found"),
            1,
            "GET /nowhere",
        ),
    ] {
        let before = server.requests().len();
        let config = json!({"url": server.url(path), "method": method, "headers": {"x-secret": "s"}});
        let arguments = if method == "POST" {
            json!({"a": 1})
        } else {
            json!({})
        };
        let done = prepare(config).call(arguments).await;
        let shown = done
            .result
            .as_ref()
            .map(ToString::to_string)
            .map_err(ToString::to_string);
        assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{path}");
        assert_eq!(server.requests().len() - before, n_requests, "{path}");
        let received = server.last();
        assert_eq!(received.line(), last);
        assert_eq!(received.header("x-secret").as_deref(), Some("s"));
        let body = if last.starts_with("POST") { "{\"a\":1}" } else { "" };
        assert_eq!(received.text(), body);
        assert_eq!(received.header("content-type").is_some(), !body.is_empty());
        if expected.is_err() {
            assert_eq!(done.kind(), ErrorKind::Protocol);
        }
    }
    let config = json!({"url": server.url("/once"), "redirects": "none"});
    let done = prepare(config).call(json!({})).await;
    assert_eq!(done.kind(), ErrorKind::Protocol);
    assert!(other.requests().is_empty());
}
