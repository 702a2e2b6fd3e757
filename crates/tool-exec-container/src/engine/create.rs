use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};

use super::{gateways::Gateway, images::FoundImage};
use crate::plan::Plan;

/// Directories that programs expect to be writable. podman mounts them without a limit if nothing else is mounted there.
const WRITABLE: [&str; 4] = ["/dev/shm", "/run", "/tmp", "/var/tmp"];

/// Returns the request that makes the container of a call: a closed set of options, most of which no tool can change.
pub(crate) fn create_body(
    plan: &Plan,
    image: &FoundImage,
    variables: &[(String, String)],
    gateway: &Gateway,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.id.clone()),
        // Replaces both the program and the arguments of the image.
        entrypoint: plan.command.clone(),
        cmd: match &plan.command {
            Some(_) => Some(Vec::new()),
            None => plan.args.clone(),
        },
        working_dir: plan.workdir.clone(),
        user: Some(plan.user.clone()),
        env: Some(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        labels: Some(gateway.labels(&plan.tool)),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        network_disabled: Some(true),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        // A program that is to end has no say in it.
        stop_signal: Some("SIGKILL".to_owned()),
        stop_timeout: Some(0),
        host_config: Some(host_config(plan, image)),
        ..ContainerCreateBody::default()
    }
}

fn host_config(plan: &Plan, image: &FoundImage) -> HostConfig {
    let limits = &plan.limits;
    let memory = i64::try_from(limits.memory).unwrap_or(i64::MAX);
    // Whole seconds, as the kernel counts.
    let cpu_seconds = limits.cpu_time.as_secs() + u64::from(limits.cpu_time.subsec_nanos() > 0);
    HostConfig {
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(Vec::new()),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(memory),
        // Memory and swap together: no swap.
        memory_swap: Some(memory),
        // The first process is none of the tool.
        pids_limit: Some(i64::from(limits.processes) + i64::from(plan.has_init)),
        nano_cpus: Some(plan.nano_cpus),
        ulimits: Some(vec![
            ulimit("nofile", limits.open_files.into(), 0),
            // Processes of the same user in other containers count too: the limit of the container is the one of pids.
            ulimit("nproc", NPROC, 0),
            // The signal of the soft limit tells it from the end by another one, and the hard limit ends what ignores it.
            ulimit("cpu", cpu_seconds, 1),
            ulimit("core", 0, 0),
        ]),
        tmpfs: Some(writable(plan, image)),
        ipc_mode: Some("private".to_owned()),
        init: Some(plan.has_init),
        // What a program writes is only sent to this connection, and fills no disk.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: Some(HashMap::new()),
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(false),
        ..HostConfig::default()
    }
}

/// Limit of processes of a user on the machine.
const NPROC: u64 = 1_024;

/// Returns a limit of each process, whose hard limit is larger by this much.
fn ulimit(name: &str, limit: u64, more: i64) -> ResourcesUlimits {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(limit),
        hard: Some(limit.saturating_add(more)),
    }
}

/// Returns the file systems in memory: for temporary files, and instead of the volumes of the image, which would be directories of
/// the host without a limit.
fn writable(plan: &Plan, image: &FoundImage) -> HashMap<String, String> {
    let options = format!("rw,noexec,nosuid,nodev,size={},mode=1777", plan.limits.disk);
    let volumes = image.volumes.iter().map(String::as_str);
    WRITABLE
        .into_iter()
        .chain(volumes)
        .map(|path| (path.to_owned(), options.clone()))
        .collect()
}
