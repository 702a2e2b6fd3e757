//! Attacks on the host from a container, on real engines.

use std::{io, net::TcpListener};

use serde_json::json;
use tool_core::ErrorKind;
use tp_containers::TestEngine;

use crate::harness::{call, detail, failure, options, runtime, shell, text};

/// Runs a script without arguments.
async fn run(engine: &TestEngine, script: &str) -> String {
    let runtime = runtime(options(&engine.socket()));
    let text = text(call(&shell(engine.image(), script, json!({}), &runtime), json!({})).await);
    runtime.shutdown().await;
    text
}

pub(crate) async fn the_process_has_nothing_of_the_host(engine: &TestEngine) {
    let text = run(
        engine,
        "id -u; id -g; awk '/^(Cap|NoNewPrivs|Seccomp:)/ {print $1 $2}' /proc/self/status; ls -A /proc/self/fd | wc -l",
    )
    .await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["65534", "65534"]);
    let none = "0000000000000000";
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert!(lines.contains(&format!("{name}{none}").as_str()), "{text}");
    }
    assert!(
        lines.contains(&"NoNewPrivs:1") && lines.contains(&"Seccomp:2"),
        "{text}"
    );
    // Variables: the gateway's are not there, of which cargo sets some for a test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let variables = run(
        engine,
        "env | awk -F= '{print $1}'; cat /proc/1/environ 2>&1 | head -c 2000",
    )
    .await;
    assert!(!variables.contains("CARGO"), "{variables}");
    for name in variables
        .lines()
        .take_while(|line| !line.contains('\0') && !line.contains(' '))
    {
        let known = [
            "HOME",
            "HOSTNAME",
            "PATH",
            "PWD",
            "SHLVL",
            "TERM",
            "container",
            "OLDPWD",
            "_",
        ];
        assert!(known.contains(&name), "{variables}");
    }
    // Processes: only its own.
    let text = run(engine, "for p in /proc/[0-9]*; do cat $p/comm 2>/dev/null; done").await;
    for process in text.lines() {
        let known = ["sh", "cat", "podman-init", "docker-init", "catatonit", "tini"];
        assert!(known.contains(&process), "{text}");
    }
    // Devices and kernel.
    let script = "ls /dev/kmsg /dev/mem /dev/vda /dev/sda /dev/fuse /dev/net 2>/dev/null; \
                  echo 1 > /proc/sys/kernel/panic || echo refused; mount -t tmpfs x /tmp || echo refused; \
                  ls /var/run/docker.sock /run/podman /run/docker.sock 2>/dev/null; \
                  cat /proc/kcore >/dev/null 2>&1 | head -c 1; echo end";
    assert_eq!(
        run(engine, &format!("exec 2>/dev/null; {script}")).await,
        "refused\nrefused\nend"
    );
}

pub(crate) async fn the_file_systems_are_read_only_or_small(engine: &TestEngine) {
    let image = engine.import("volumes", &["VOLUME /data"]).unwrap();
    let runtime = runtime(options(&engine.socket()));
    let script = "exec 2>&1; for d in / /bin /etc /home; do touch $d/x && echo written $d; done; \
                  for d in /tmp /run /var/tmp /dev/shm /data; do \
                    awk -v d=$d '$2 == d {print $2, $3, $4}' /proc/mounts; \
                    cp /bin/busybox $d/b && $d/b true && echo ran $d; rm -f $d/b; \
                    head -c 3m /dev/zero > $d/f || true; stat -c 'size %s' $d/f; rm -f $d/f; \
                  done";
    let more = json!({"limits": {"disk": "2MiB", "memory": "64MiB"}});
    let text = text(call(&shell(&image, script, more, &runtime), json!({})).await);
    assert!(!text.contains("written") && !text.contains("ran /"), "{text}");
    for place in ["/tmp", "/run", "/var/tmp", "/dev/shm", "/data"] {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{place} tmpfs")));
        let line = line.unwrap_or_else(|| panic!("{place}: {text}"));
        for option in ["noexec", "nosuid", "nodev", "size=2048k"] {
            assert!(line.contains(option), "{line}");
        }
    }
    let sizes: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("size ")?.parse().ok())
        .collect();
    assert_eq!(sizes.len(), 5, "{text}");
    assert!(sizes.iter().all(|size| *size <= 2 << 20), "{text}");
    // The next call sees nothing of it.
    let script = "for d in /tmp /run /data; do ls -A $d; done";
    let again = call(
        &shell(
            &image,
            &format!("{script} | grep -v '^podman-init$'; cd /tmp; touch x"),
            json!({}),
            &runtime,
        ),
        json!({}),
    )
    .await;
    assert_eq!(
        again
            .map(|reply| reply.raw().as_str().to_owned())
            .unwrap_or_default(),
        r#""""#
    );
    runtime.shutdown().await;
    let volumes = engine.run(["volume", "ls", "--quiet"]).unwrap();
    assert!(volumes.stdout.is_empty(), "{volumes:?}");
}

pub(crate) async fn the_network_is_off(engine: &TestEngine) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "exec 2>/dev/null; awk 'NR > 2 {{print $1}}' /proc/net/dev; wget -q -T 2 -O - http://127.0.0.1:{port}/ || echo refused; \
         wget -q -T 2 -O - http://10.0.0.1/ || echo refused; ping -c 1 -W 1 127.0.0.1 >/dev/null || echo refused"
    );
    assert_eq!(run(engine, &script).await, "lo:\nrefused\nrefused\nrefused");
    let accepted = listener.accept();
    assert_eq!(
        accepted.map(|_| ()).unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
}

pub(crate) async fn memory_has_a_limit(engine: &TestEngine) {
    let runtime = runtime(options(&engine.socket()));
    let more = json!({"limits": {"memory": "32MiB"}});
    // The program itself, and one that it starts: what it says then is its own.
    let bomb = "BEGIN {s = \"x\"; while (1) s = s s}";
    let tool = shell(
        engine.image(),
        &format!("exec awk '{bomb}'"),
        more.clone(),
        &runtime,
    );
    let error = failure(call(&tool, json!({})).await, ErrorKind::UpstreamError);
    assert_eq!(detail(&error, "limit"), r#""memory""#);
    assert!(error.message().contains("more than the 32 MiB"), "{error:?}");
    assert!(!error.allows_retry());
    // Files in memory count too.
    let script = "cd /tmp; head -c 60m /dev/zero > a; stat -c %s a";
    let more = json!({"limits": {"memory": "32MiB", "disk": "1GiB"}});
    let reply = call(&shell(engine.image(), script, more, &runtime), json!({})).await;
    let is_held = reply.as_ref().map_or(true, |reply| {
        let size: u64 = reply.raw().as_str().trim_matches('"').parse().unwrap();
        size < 32 << 20
    });
    assert!(is_held, "{reply:?}");
    runtime.shutdown().await;
}

pub(crate) async fn processes_have_a_limit(engine: &TestEngine) {
    let runtime = runtime(options(&engine.socket()));
    let script = "i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; echo started";
    let more = json!({"limits": {"processes": 16}});
    let tool = shell(engine.image(), script, more, &runtime);
    let error = failure(call(&tool, json!({})).await, ErrorKind::UpstreamError);
    assert!(error.message().contains("can't fork"), "{error:?}");
    let least = shell(
        engine.image(),
        "echo alone",
        json!({"limits": {"processes": 1}}),
        &runtime,
    );
    assert_eq!(text(call(&least, json!({})).await), "alone");
    // What is left of it ends with the first process: the call does not wait for it.
    let tool = shell(
        engine.image(),
        "setsid sleep 500 & echo done",
        json!({}),
        &runtime,
    );
    assert_eq!(text(call(&tool, json!({})).await), "done");
    runtime.shutdown().await;
    assert!(engine.containers().is_empty());
}

pub(crate) async fn output_has_a_limit(engine: &TestEngine) {
    let runtime = runtime(options(&engine.socket()));
    for (script, kind) in [
        ("yes", ErrorKind::ResultTooLarge),
        ("yes >&2", ErrorKind::ResultTooLarge),
        ("cat /dev/zero", ErrorKind::ResultTooLarge),
        (
            "head -c 65536 /dev/zero | tr '\\0' x; exit 0",
            ErrorKind::Internal,
        ),
    ] {
        let more = json!({"limits": {"output": "65536"}});
        let reply = call(&shell(engine.image(), script, more, &runtime), json!({})).await;
        match kind {
            ErrorKind::Internal => assert_eq!(text(reply).len(), 65_536, "just as much as it may"),
            kind => assert_eq!(detail(&failure(reply, kind), "limit"), r#""output""#),
        }
    }
    runtime.shutdown().await;
    assert!(engine.containers().is_empty());
}

pub(crate) async fn a_deadline_holds_whatever_ignores_it(engine: &TestEngine) {
    let runtime = runtime(options(&engine.socket()));
    let script = "trap '' TERM INT HUP QUIT; (setsid sh -c 'trap \"\" TERM HUP; while :; do :; done' &) ; while :; do sleep 1; done";
    let more = json!({"limits": {"wall_time": "2s"}});
    let tool = shell(engine.image(), script, more, &runtime);
    let error = failure(call(&tool, json!({})).await, ErrorKind::Timeout);
    assert_eq!(detail(&error, "limit"), r#""time""#);
    runtime.shutdown().await;
    assert!(engine.containers().is_empty());
    // A process that burns its processor time is ended by the kernel.
    let runtime = crate::harness::runtime(options(&engine.socket()));
    let more = json!({"limits": {"cpu_time": "1s"}});
    let tool = shell(engine.image(), "while :; do :; done", more, &runtime);
    let error = failure(call(&tool, json!({})).await, ErrorKind::Timeout);
    assert_eq!(detail(&error, "limit"), r#""time""#);
    runtime.shutdown().await;
}
