use toolplane::{core::Descriptor, manifest::Loaded};

use super::Finding;

const NAME: &str = "containers";

/// Finds the engine that runs tools in containers.
pub(super) async fn containers(loaded: &Loaded) -> Finding {
    let is_container = |tool: &&Descriptor| tool.executor.kind == "docker";
    let tools = loaded.configuration.tools.iter().map(|tool| &**tool);
    let n_tools = tools.filter(is_container).count();
    let engine = match toolplane::container_engine(&loaded.configuration.defaults).await {
        Ok(engine) => engine,
        Err(_) if n_tools == 0 && !loaded.configuration.defaults.container.is_written() => {
            return Finding::ok(
                NAME,
                "no container engine answers, and no tool in a file needs one",
            );
        }
        Err(error) => {
            let fix = "start Docker, or `podman system service` with its socket; `socket` of `container` in `defaults` names another one";
            return Finding::fail(NAME, error.to_string(), fix);
        }
    };
    let root = if engine.is_rootless { ", without root" } else { "" };
    let message = format!(
        "{} {} at `{}`{root}, API {}",
        engine.name, engine.version, engine.socket, engine.api_version
    );
    match engine.unenforced.as_slice() {
        [] => Finding::ok(NAME, message),
        limits => {
            let limits = limits.join(", ");
            let message = format!("{message}; it does not enforce the limit of {limits}, and runs no tool");
            Finding::warn(
                NAME,
                message,
                "use an engine of root, or a machine with cgroups of version 2",
            )
        }
    }
}
