//! Calls on real engines.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tool_core::{DispatchState, ErrorKind, Reply};
use tool_testkit::skip;
use tp_containers::{EngineKind, TestEngine};

use crate::{
    escapes,
    harness::{
        call, call_with_mark, descriptor, detail, failure, options, runtime, shell, text, tool_of, value,
    },
};

/// Starts an engine, or reports that this machine cannot.
pub(crate) fn start(kind: EngineKind) -> Option<TestEngine> {
    TestEngine::start(kind)
        .map_err(|reason| skip(reason.to_string()))
        .ok()
}

/// Writes a test with podman for each function, and one with Docker for all of them.
macro_rules! on_engines {
    ($($module:ident::$name:ident,)*) => {
        mod podman {
            use super::*;

            $(
                #[tokio::test]
                async fn $name() {
                    if let Some(engine) = start(EngineKind::Podman) {
                        $module::$name(&engine).await;
                    }
                }
            )*
        }

        #[tokio::test]
        async fn all_of_it_with_docker() {
            if let Some(engine) = start(EngineKind::Docker) {
                $(
                    $module::$name(&engine).await;
                )*
            }
        }
    };
}

on_engines! {
    calls::arguments_and_results,
    calls::ends,
    calls::images,
    calls::nobody_waits_any_more,
    calls::calls_at_the_same_time,
    calls::containers_of_gateways_that_are_gone,
    escapes::the_process_has_nothing_of_the_host,
    escapes::the_file_systems_are_read_only_or_small,
    escapes::the_network_is_off,
    escapes::memory_has_a_limit,
    escapes::processes_have_a_limit,
    escapes::output_has_a_limit,
    escapes::a_deadline_holds_whatever_ignores_it,
}

mod calls {
    use super::*;

    pub(super) async fn arguments_and_results(engine: &TestEngine) {
        let runtime = runtime(options(&engine.socket()));
        let script = r#"printf '%s|%s|%s|%s\n' "$name" "$n" "${missing-unset}" "$TOKEN"; cat; echo log >&2"#;
        let env = json!({"env": {"TOKEN": "Bearer ${secret:token}"}});
        let tool = shell(engine.image(), script, env, &runtime);
        let arguments = json!({"name": "$(id); `id`\"'", "n": [1, 2.5], "missing": null});
        let (reply, mark) = call_with_mark(&tool, arguments.clone()).await;
        assert_eq!(mark, DispatchState::Answered);
        assert_eq!(
            reply.as_ref().unwrap().sandbox_level().as_deref(),
            Some("container")
        );
        let meta = reply.as_ref().unwrap().meta().to_vec();
        assert!(meta.iter().any(|(key, _)| *key == Reply::SANDBOX_KEY));
        let text = text(reply);
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first, "$(id); `id`\"'|[1,2.5]|unset|Bearer s3cret-value");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(rest).unwrap(),
            arguments
        );
        // A command is a list: no shell sees it.
        let config =
            json!({"image": engine.image(), "command": ["printf", "%s.", "$(id)", "a b"], "args": ["*", ""]});
        assert_eq!(
            value(call(&tool_of(descriptor(config), &runtime), json!({})).await),
            "$(id).a b.*.."
        );
        let tool = shell(engine.image(), "cat", json!({"output": "json"}), &runtime);
        assert_eq!(
            value(call(&tool, json!({"a": {"b": 1}})).await),
            json!({"a": {"b": 1}})
        );
        // Input that nobody reads is no error, and no output is lost.
        let long = json!({"text": "x".repeat(90_000)});
        let tool = shell(engine.image(), "echo one; echo ${#text}", json!({}), &runtime);
        for _ in 0..3 {
            assert_eq!(value(call(&tool, long.clone()).await), "one\n90000");
        }
        runtime.shutdown().await;
        assert!(engine.containers().is_empty(), "{:?}", engine.containers());
    }

    pub(super) async fn ends(engine: &TestEngine) {
        let runtime = runtime(options(&engine.socket()));
        let script = "echo partial; echo \"went wrong: $code\" >&2; exit $code";
        let tool = shell(
            engine.image(),
            script,
            json!({"exit_codes": {"3": "not_found"}}),
            &runtime,
        );
        for (code, kind) in [
            (1, ErrorKind::UpstreamError),
            (3, ErrorKind::NotFound),
            (65, ErrorKind::InvalidArguments),
        ] {
            let error = failure(call(&tool, json!({"code": code})).await, kind);
            assert_eq!(detail(&error, "exit_code"), code.to_string());
            assert!(
                error
                    .message()
                    .contains(&format!("it wrote:\nwent wrong: {code}")),
                "{error:?}"
            );
        }
        let tool = shell(engine.image(), "kill -TERM $$; sleep 9", json!({}), &runtime);
        let error = failure(call(&tool, json!({})).await, ErrorKind::UpstreamError);
        assert_eq!(detail(&error, "signal"), "15");
        // Without the first process, the engine itself says that there is no such program.
        let config = json!({"image": engine.image(), "command": ["/bin/none"], "init": false});
        let error = failure(
            call(&tool_of(descriptor(config), &runtime), json!({})).await,
            ErrorKind::Unavailable,
        );
        assert!(error.message().contains("no such file"), "{error:?}");
        runtime.shutdown().await;
        assert!(engine.containers().is_empty());
    }

    pub(super) async fn images(engine: &TestEngine) {
        let runtime = runtime(options(&engine.socket()));
        if let Some(image) = engine.image_by_digest() {
            assert_eq!(
                text(call(&shell(&image, "echo same", json!({}), &runtime), json!({})).await),
                "same"
            );
            // The tag does not count, and another digest is another image.
            let tagged = image.replace('@', ":none@");
            assert_eq!(
                text(call(&shell(&tagged, "echo same", json!({}), &runtime), json!({})).await),
                "same"
            );
        }
        let other = format!("sha256:{}", "0".repeat(64));
        let error = failure(
            call(&shell(&other, "echo", json!({}), &runtime), json!({})).await,
            ErrorKind::Unavailable,
        );
        assert!(error.message().contains("does not have the image"), "{error:?}");
        // The image's own program and user.
        let changes = [
            "ENTRYPOINT [\"echo\", \"own\"]",
            "CMD [\"usual\"]",
            "USER 0",
            "WORKDIR /tmp",
        ];
        let image = engine.import("own", &changes).unwrap();
        let own = |more: serde_json::Value| {
            let mut config = json!({"image": image});
            for (key, value) in more.as_object().unwrap() {
                config[key] = value.clone();
            }
            tool_of(descriptor(config), &runtime)
        };
        assert_eq!(text(call(&own(json!({})), json!({})).await), "own usual");
        assert_eq!(
            text(call(&own(json!({"args": ["given"]})), json!({})).await),
            "own given"
        );
        let command = own(json!({"command": ["sh", "-c", "id -u; pwd"], "user": "7"}));
        assert_eq!(text(call(&command, json!({})).await), "7\n/tmp");
        runtime.shutdown().await;
    }

    pub(super) async fn nobody_waits_any_more(engine: &TestEngine) {
        let runtime = runtime(options(&engine.socket()));
        let tool = shell(engine.image(), "sleep 500", json!({}), &runtime);
        let running = tokio::spawn({
            let tool = Arc::clone(&tool);
            async move { call(&tool, json!({})).await.is_ok() }
        });
        while running_containers(engine).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        running.abort();
        while !engine.containers().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // A gateway that stops waits for the removal.
        let running = tokio::spawn(async move { call(&tool, json!({})).await.is_ok() });
        while running_containers(engine).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        runtime.shutdown().await;
        assert!(engine.containers().is_empty());
        assert!(!running.await.unwrap());
    }

    pub(super) async fn containers_of_gateways_that_are_gone(engine: &TestEngine) {
        let locks = tempfile::tempdir().unwrap();
        let locked = || {
            let options = options(&engine.socket());
            runtime(options.with_lock_directory(Some(locks.path().to_owned())))
        };
        let own = locked();
        let tool = shell(engine.image(), "sleep 500", json!({}), &own);
        let running = tokio::spawn(async move { call(&tool, json!({})).await.is_ok() });
        while running_containers(engine).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let kept = engine.containers();
        // As a gateway left it that was killed.
        let scope = std::fs::read_to_string(locks.path().join("scope")).unwrap();
        std::fs::write(locks.path().join("killed.lock"), "").unwrap();
        let labels = [
            format!("dev.toolplane.scope={scope}"),
            "dev.toolplane.gateway=killed".to_owned(),
        ];
        let mut words = vec![
            "run",
            "--detach",
            "--network",
            "none",
            "--label",
            &labels[0],
            "--label",
            &labels[1],
        ];
        words.extend([engine.image(), "sleep", "500"]);
        let left = engine.run(words).unwrap();
        assert!(left.status.success(), "{left:?}");
        assert_eq!(engine.containers().len(), 2);
        locked().remove_leftovers().await;
        assert_eq!(engine.containers(), kept, "the one whose gateway is alive");
        own.shutdown().await;
        assert!(engine.containers().is_empty());
        assert!(!running.await.unwrap());
    }

    fn running_containers(engine: &TestEngine) -> String {
        let listed = engine.run(["ps", "--quiet"]).unwrap();
        String::from_utf8(listed.stdout).unwrap().trim().to_owned()
    }

    pub(super) async fn calls_at_the_same_time(engine: &TestEngine) {
        let runtime = runtime(options(&engine.socket()));
        let tool = shell(engine.image(), "echo $n", json!({}), &runtime);
        let calls = (0..12).map(|n| {
            let tool = &tool;
            async move { (n, text(call(tool, json!({"n": n})).await)) }
        });
        for (n, text) in join_all(calls).await {
            assert_eq!(text, n.to_string());
        }
        runtime.shutdown().await;
        assert!(engine.containers().is_empty());
    }
}
