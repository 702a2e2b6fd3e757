//! The requests to an engine, and what follows from its answers.

use std::sync::Arc;

use serde_json::{Value, json};
use tool_core::{DispatchState, ErrorKind, Reply, Tool};
use tool_exec_container::{ContainerOptions, PullPolicy};

use crate::{
    fake::{FakeEngine, IMAGE, IMAGE_ID, Script},
    harness::{call, call_with_mark, descriptor, detail, failure, members, options, runtime, text, tool_of},
};

/// Tool on a fake engine.
fn tool(engine: &FakeEngine, more: Value) -> Arc<Tool> {
    tool_with(options(&engine.socket), more)
}

fn tool_with(options: ContainerOptions, more: Value) -> Arc<Tool> {
    let mut config = json!({"image": IMAGE, "command": ["sort", "-r"]});
    config.as_object_mut().unwrap().extend(members(more));
    tool_of(descriptor(config), &runtime(options))
}

/// The whole request: whoever adds an option to it has to look at this list.
#[tokio::test]
async fn a_container_is_made_of_these_options_and_no_others() {
    let mut engine = FakeEngine::start(Script::default());
    let more = json!({
        "args": ["--", "$x; id"],
        "workdir": "/work",
        "user": "1000",
        "init": false,
        "cpus": 0.5,
        "env": {"TOKEN": "Bearer ${secret:token}"},
        "limits": {"memory": "64MiB", "processes": 32, "open_files": 100, "disk": "1MiB", "cpu_time": "1500ms"},
    });
    let reply = call(&tool(&engine, more), json!({"a": "$(id)", "n": [1]})).await;
    let level = reply.as_ref().unwrap().meta().to_vec();
    assert_eq!(level[0].0, Reply::SANDBOX_KEY);
    assert_eq!(level[0].1.as_str(), r#"{"level":"container","network":"off"}"#);
    assert_eq!(text(reply), "done");
    let request = engine.next("POST /v1.41/containers/create").await;
    assert!(request.line.contains("?name=toolplane-"), "{request:?}");
    let mut body: Value = serde_json::from_slice(&request.body).unwrap();
    let labels = body["Labels"].take();
    assert_eq!(labels["dev.toolplane.tool"], "tool");
    assert_eq!(labels.as_object().unwrap().len(), 3, "{labels}");
    let files = "rw,noexec,nosuid,nodev,size=1048576,mode=1777";
    let memory = 64 << 20;
    assert_eq!(
        body,
        json!({
            "Image": IMAGE_ID,
            "Entrypoint": ["sort", "-r", "--", "$x; id"],
            "Cmd": [],
            "WorkingDir": "/work",
            "User": "1000:1000",
            "Env": ["TOKEN=Bearer s3cret-value", "a=$(id)", "n=[1]"],
            "Labels": null,
            "AttachStdin": true,
            "AttachStdout": true,
            "AttachStderr": true,
            "OpenStdin": true,
            "StdinOnce": true,
            "Tty": false,
            "NetworkDisabled": true,
            "Healthcheck": {"Test": ["NONE"]},
            "StopSignal": "SIGKILL",
            "StopTimeout": 0,
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": true,
                "Privileged": false,
                "CapDrop": ["ALL"],
                "CapAdd": [],
                "SecurityOpt": ["no-new-privileges"],
                "Memory": memory,
                "MemorySwap": memory,
                "PidsLimit": 32,
                "NanoCpus": 500_000_000,
                "Ulimits": [
                    {"Name": "nofile", "Soft": 100, "Hard": 100},
                    {"Name": "nproc", "Soft": 1024, "Hard": 1024},
                    {"Name": "cpu", "Soft": 2, "Hard": 3},
                    {"Name": "core", "Soft": 0, "Hard": 0},
                ],
                "Tmpfs": {"/tmp": files, "/run": files, "/var/tmp": files, "/dev/shm": files, "/data": files},
                "IpcMode": "private",
                "Init": false,
                "LogConfig": {"Type": "none", "Config": {}},
                "RestartPolicy": {"Name": "no"},
                "AutoRemove": false,
            },
        })
    );
    engine.next("/attach?").await;
    engine.next("DELETE /v1.41/containers/toolplane-").await;
}

#[tokio::test]
async fn arguments_are_the_standard_input_and_the_container_is_removed() {
    let mut engine = FakeEngine::start(Script::default());
    let tool = tool(&engine, json!({}));
    let (reply, mark) = call_with_mark(&tool, json!({"a": 1})).await;
    assert_eq!((text(reply), mark), ("done".to_owned(), DispatchState::Answered));
    let removed = engine.next("POST /v1.41/containers/create").await;
    let name = removed.line.split_once("?name=").unwrap().1;
    let name = name.split('&').next().unwrap().to_owned();
    let mut lines = Vec::new();
    let mut stdin = Vec::new();
    loop {
        let request = engine.next("").await;
        let line = request.line.replace(&name, "NAME");
        if line.contains("stdin=true") {
            stdin = request.body;
            continue;
        }
        lines.push(line.split('?').next().unwrap().to_owned());
        if line.starts_with("DELETE") {
            assert!(line.contains("force=true") && line.contains("v=true"), "{line}");
            break;
        }
    }
    assert_eq!(
        lines,
        [
            "POST /v1.41/containers/NAME/attach",
            "POST /v1.41/containers/NAME/start",
            "POST /v1.41/containers/NAME/wait",
            "DELETE /v1.41/containers/NAME",
        ]
    );
    assert_eq!(stdin, br#"{"a":1}"#);
    // The engine and the image are asked for once.
    text(call(&tool, json!({})).await);
    let again = engine.next("POST").await;
    assert!(again.line.contains("/containers/create"), "{again:?}");
}

#[tokio::test]
async fn an_image_that_is_missing_is_only_pulled_if_the_operator_says_so() {
    for (is_podman, program) in [(false, "docker"), (true, "podman")] {
        let script = Script {
            is_podman,
            has_image: false,
            ..Script::default()
        };
        let mut engine = FakeEngine::start(script);
        let (reply, mark) = call_with_mark(&tool(&engine, json!({})), json!({})).await;
        let error = failure(reply, ErrorKind::Unavailable);
        assert!(
            error
                .message()
                .ends_with(&format!("run `{program} pull {IMAGE}`")),
            "{error:?}"
        );
        assert!(!error.allows_retry(), "{error:?}");
        assert_eq!(mark, DispatchState::NotSent);
        assert!(engine.lines().iter().all(|line| line.starts_with("GET")));
    }
    let script = Script {
        has_image: false,
        ..Script::default()
    };
    let mut engine = FakeEngine::start(script.clone());
    let pulling = options(&engine.socket).with_pull(PullPolicy::Missing);
    assert_eq!(
        text(call(&tool_with(pulling, json!({})), json!({})).await),
        "done"
    );
    let pull = engine.next("POST /v1.41/images/create").await;
    let name = IMAGE.replace('/', "%2F").replace('@', "%40").replace(':', "%3A");
    assert!(pull.line.contains(&format!("fromImage={name}")), "{pull:?}");
    // Whoever publishes a tool does not decide what is downloaded.
    let mut engine = FakeEngine::start(script);
    let mut stored = descriptor(json!({"image": IMAGE}));
    stored.origin.is_stored = true;
    let pulling = runtime(options(&engine.socket).with_pull(PullPolicy::Missing));
    failure(
        call(&tool_of(stored, &pulling), json!({})).await,
        ErrorKind::Unavailable,
    );
    assert!(engine.lines().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn ends_of_containers_are_kinds_of_errors() {
    let ended = |exit_code, oom_killed, is_podman| Script {
        exit_code,
        oom_killed,
        is_podman,
        output: vec![
            (1, b"partial".to_vec()),
            (2, b"no s3cret: token=abcdefghij0123456789\n".to_vec()),
        ],
        ..Script::default()
    };
    for (script, kind, member, expected) in [
        (ended(3, false, false), ErrorKind::NotFound, "exit_code", "3"),
        (ended(1, false, false), ErrorKind::UpstreamError, "exit_code", "1"),
        (
            ended(65, false, false),
            ErrorKind::InvalidArguments,
            "exit_code",
            "65",
        ),
        (ended(137, false, false), ErrorKind::UpstreamError, "signal", "9"),
        (
            ended(137, true, false),
            ErrorKind::UpstreamError,
            "limit",
            r#""memory""#,
        ),
        (
            ended(1, true, false),
            ErrorKind::UpstreamError,
            "limit",
            r#""memory""#,
        ),
        (ended(152, false, false), ErrorKind::Timeout, "limit", r#""time""#),
        (
            ended(137, false, true),
            ErrorKind::UpstreamError,
            "limit",
            r#""memory""#,
        ),
    ] {
        let engine = FakeEngine::start(script);
        let tool = tool(&engine, json!({"exit_codes": {"3": "not_found"}}));
        let (reply, mark) = call_with_mark(&tool, json!({})).await;
        assert_eq!(mark == DispatchState::Answered, kind != ErrorKind::Timeout);
        let error = failure(reply, kind);
        assert_eq!(detail(&error, member), expected, "{error:?}");
        assert_eq!(detail(&error, "sandbox"), r#""container""#, "{error:?}");
        assert!(error.message().contains("it wrote:\nno s3cret"), "{error:?}");
        assert_eq!(error.allows_retry(), expected != r#""memory""#, "{error:?}");
    }
    let output = |bytes: &[u8]| Script {
        output: vec![(1, bytes.to_vec())],
        ..Script::default()
    };
    let engine = FakeEngine::start(output(b"{\"a\": 1.10}\n"));
    let reply = call(&tool(&engine, json!({"output": "json"})), json!({}))
        .await
        .unwrap();
    assert_eq!(
        reply.raw().as_str().trim(),
        r#"{"a": 1.10}"#,
        "with its own bytes"
    );
    let engine = FakeEngine::start(output(b"no JSON"));
    let error = failure(
        call(&tool(&engine, json!({"output": "json"})), json!({})).await,
        ErrorKind::Protocol,
    );
    assert!(
        error
            .message()
            .starts_with("what the container wrote to standard output is no JSON"),
        "{error:?}"
    );
    let engine = FakeEngine::start(output(b"\xff"));
    failure(
        call(&tool(&engine, json!({})), json!({})).await,
        ErrorKind::Protocol,
    );
}

#[tokio::test]
async fn an_engine_that_refuses_has_not_started_anything() {
    let refusal = (400, json!({"message": "exec: \"nope\": not found in $PATH"}));
    let mut engine = FakeEngine::start(Script {
        start: refusal.clone(),
        ..Script::default()
    });
    let error = failure(
        call(&tool(&engine, json!({})), json!({})).await,
        ErrorKind::Unavailable,
    );
    assert_eq!(
        error.message(),
        "the container engine could not start the container: exec: \"nope\": not found in $PATH"
    );
    assert!(!error.allows_retry());
    engine.next("DELETE /v1.41/containers/toolplane-").await;
    let engine = FakeEngine::start(Script {
        create: refusal,
        ..Script::default()
    });
    let (reply, mark) = call_with_mark(&tool(&engine, json!({})), json!({})).await;
    failure(reply, ErrorKind::Unavailable);
    assert_eq!(mark, DispatchState::NotSent);
}

/// Podman fails so at times; nothing has run then.
#[tokio::test]
async fn an_engine_that_cannot_attach_is_asked_again() {
    for (n_failed_attaches, works) in [(1, true), (2, true), (3, false)] {
        let mut engine = FakeEngine::start(Script {
            n_failed_attaches,
            ..Script::default()
        });
        let (reply, mark) = call_with_mark(&tool(&engine, json!({})), json!({})).await;
        assert_eq!(reply.is_ok(), works, "{reply:?}");
        if !works {
            let error = failure(reply, ErrorKind::Unavailable);
            let expected = "the container engine could not attach to the container: no such socket";
            assert_eq!(error.message(), expected);
            assert_eq!(mark, DispatchState::NotSent);
        }
        engine.next("DELETE /v1.41/containers/toolplane-").await;
    }
}

#[tokio::test]
async fn too_much_output_ends_the_container() {
    let flood = vec![
        (1, vec![b'x'; 3_000]),
        (2, vec![b'y'; 10]),
        (1, vec![b'x'; 3_000]),
    ];
    let mut engine = FakeEngine::start(Script {
        output: flood,
        hangs: true,
        ..Script::default()
    });
    let error = call(&tool(&engine, json!({"limits": {"output": "4096"}})), json!({})).await;
    let error = failure(error, ErrorKind::ResultTooLarge);
    assert!(
        error
            .message()
            .starts_with("the container wrote more than 4096 bytes"),
        "{error:?}"
    );
    engine.next("/kill?signal=SIGKILL").await;
    engine.next("DELETE").await;
}

#[tokio::test]
async fn a_container_at_its_deadline_is_killed_and_removed() {
    let mut engine = FakeEngine::start(Script {
        hangs: true,
        ..Script::default()
    });
    let tool = tool(&engine, json!({"limits": {"wall_time": "2s"}}));
    let (reply, mark) = call_with_mark(&tool, json!({})).await;
    let error = failure(reply, ErrorKind::Timeout);
    assert_eq!(detail(&error, "limit"), r#""time""#);
    assert_eq!(mark, DispatchState::Sent);
    let mut lines = engine.lines();
    lines.push(engine.next("DELETE").await.line);
    assert!(
        lines.iter().any(|line| line.contains("/kill?signal=SIGKILL")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_dropped_call_ends_its_container_wherever_it_was() {
    // While it runs.
    let mut engine = FakeEngine::start(Script {
        hangs: true,
        ..Script::default()
    });
    let running = tool_with(options(&engine.socket), json!({}));
    let call_of = |tool: Arc<Tool>| tokio::spawn(async move { call(&tool, json!({})).await.is_ok() });
    let running = call_of(running);
    engine.next("/start").await;
    running.abort();
    engine.next("/kill?signal=SIGKILL").await;
    engine.next("DELETE").await;
    // While it is made: the engine answers later.
    let mut engine = FakeEngine::start(Script::default());
    engine.may_create.send_replace(false);
    let running = call_of(tool_with(options(&engine.socket), json!({})));
    engine.next("POST /v1.41/containers/create").await;
    running.abort();
    let _ = running.await;
    engine.may_create.send_replace(true);
    let next = engine.next("").await;
    assert!(next.line.starts_with("DELETE"), "it never starts: {next:?}");
}

#[tokio::test]
async fn a_gateway_that_stops_waits_for_its_containers() {
    let mut engine = FakeEngine::start(Script {
        hangs: true,
        ..Script::default()
    });
    let runtime = runtime(options(&engine.socket));
    let tool = tool_of(descriptor(json!({"image": IMAGE})), &runtime);
    let running = tokio::spawn(async move { call(&tool, json!({})).await });
    engine.next("/start").await;
    runtime.shutdown().await;
    assert!(engine.lines().iter().any(|line| line.starts_with("DELETE")));
    let error = failure(running.await.unwrap(), ErrorKind::Unavailable);
    assert!(error.message().contains("the gateway stops"), "{error:?}");
}

#[tokio::test]
async fn limits_that_do_not_hold_are_an_error() {
    for (info, said) in [
        (
            json!({"MemoryLimit": false, "PidsLimit": true, "CpuCfsQuota": true}),
            "the limit of memory here",
        ),
        (
            json!({"MemoryLimit": true, "PidsLimit": true, "CpuCfsQuota": true, "CgroupVersion": "1", "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}),
            "the limit of memory, processes, processors here; without root",
        ),
    ] {
        let mut engine = FakeEngine::start(Script {
            info,
            ..Script::default()
        });
        let (reply, mark) = call_with_mark(&tool(&engine, json!({})), json!({})).await;
        let error = failure(reply, ErrorKind::Unavailable);
        assert!(error.message().contains(said), "{error:?}");
        assert!(!error.allows_retry());
        assert_eq!(mark, DispatchState::NotSent);
        assert!(engine.lines().iter().all(|line| line.starts_with("GET")));
    }
}

#[tokio::test]
async fn without_an_engine_the_message_says_where_it_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let tool = tool_with(options(&folder.path().join("none.sock")), json!({}));
    let (reply, mark) = call_with_mark(&tool, json!({})).await;
    let error = failure(reply, ErrorKind::Unavailable);
    let said = error.message();
    assert!(
        said.starts_with("no container engine can be reached: `")
            && said.contains(
                "none.sock`, which `socket` of `container` in `defaults` names: there is no socket"
            ),
        "{error:?}"
    );
    assert!(error.allows_retry(), "it may start later");
    assert_eq!(mark, DispatchState::NotSent);
    // A socket on which nothing answers as an engine does.
    let path = folder.path().join("silent.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    failure(
        call(&tool_with(options(&path), json!({})), json!({})).await,
        ErrorKind::Unavailable,
    );
}

#[tokio::test]
async fn the_engine_is_named() {
    let engine = FakeEngine::start(Script {
        is_podman: true,
        ..Script::default()
    });
    let found = runtime(options(&engine.socket)).engine().await.unwrap();
    assert_eq!((found.name, found.program()), ("podman", "podman"));
    assert_eq!(
        (found.version.as_str(), found.api_version.as_str()),
        ("9.9.9", "1.41")
    );
    assert!(found.unenforced.is_empty() && !found.is_rootless);
}

#[tokio::test]
async fn only_containers_of_gateways_that_are_gone_are_removed() {
    let locks = tempfile::tempdir().unwrap();
    std::fs::write(locks.path().join("scope"), "here").unwrap();
    let container = |id: &str, gateway: &str| json!({"Id": id, "Labels": {"dev.toolplane.scope": "here", "dev.toolplane.gateway": gateway}});
    let held = std::fs::File::create_new(locks.path().join("alive.lock")).unwrap();
    held.try_lock().unwrap();
    let containers = json!([
        container("c1", "alive"),
        container("c2", "killed"),
        container("c3", "unknown"),
        {"Id": "c4", "Labels": {}},
    ]);
    let mut engine = FakeEngine::start(Script {
        containers,
        ..Script::default()
    });
    let locked = || runtime(options(&engine.socket).with_lock_directory(Some(locks.path().to_owned())));
    // Without a gateway that is gone, no engine is asked.
    locked().remove_leftovers().await;
    let killed = locks.path().join("killed.lock");
    std::fs::write(&killed, "").unwrap();
    locked().remove_leftovers().await;
    let lines = engine.lines();
    let [.., listed, removed] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(
        lines.iter().filter(|line| line.contains("/version")).count(),
        2,
        "one connection: {lines:?}"
    );
    assert!(listed.contains("dev.toolplane.scope%3Dhere"), "{listed}");
    assert!(removed.starts_with("DELETE /v1.41/containers/c2?"), "{removed}");
    assert!(!killed.exists() && locks.path().join("alive.lock").exists());
}

/// A gateway whose connection was lost finds the engine again, which may be another one by then.
#[tokio::test]
async fn an_engine_that_was_restarted_is_found_again() {
    let first = FakeEngine::start(Script::default());
    let tool = tool(&first, json!({}));
    assert_eq!(text(call(&tool, json!({})).await), "done");
    first.stop();
    let (reply, mark) = call_with_mark(&tool, json!({})).await;
    let error = failure(reply, ErrorKind::Unavailable);
    assert!(error.allows_retry(), "{error:?}");
    assert_eq!(mark, DispatchState::NotSent);
    first.restart();
    assert_eq!(text(call(&tool, json!({})).await), "done");
}
