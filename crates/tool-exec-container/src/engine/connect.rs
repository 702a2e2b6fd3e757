use std::{path::Path, sync::Arc, time::Duration};

use bollard::{API_DEFAULT_VERSION, Docker, models::SystemInfoCgroupVersionEnum};
use http::Uri;
use tokio::{sync::Mutex, time::timeout};

use super::{EngineError, EngineSockets, error::chain};

/// Time within which an engine answers who it is.
const GREETING: Duration = Duration::from_secs(10);
/// Time limit of a request of the client, which is longer than any run: runs have limits of their own.
const REQUEST_SECONDS: u64 = 7 * 24 * 3_600;

/// Container engine that answers on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerEngine {
    /// Name: `Docker` or `podman`.
    pub name: &'static str,
    /// Version of the engine.
    pub version: String,
    /// Version of its API that is used.
    pub api_version: String,
    /// Path of its socket.
    pub socket: String,
    /// `true` if it runs without root.
    pub is_rootless: bool,
    /// Limits that it does not enforce here, such as `memory`.
    pub unenforced: Vec<&'static str>,
}

/// Connection to an engine.
pub(crate) struct Engine {
    pub(crate) docker: Docker,
    pub(crate) about: ContainerEngine,
}

/// The engine of this machine, found at its first use.
pub(crate) struct Engines {
    sockets: EngineSockets,
    known: Mutex<Option<Arc<Engine>>>,
}

impl ContainerEngine {
    /// Returns the name of its program.
    #[must_use]
    pub fn program(&self) -> &'static str {
        match self.is_podman() {
            true => "podman",
            false => "docker",
        }
    }

    pub(crate) fn is_podman(&self) -> bool {
        self.name == "podman"
    }

    /// Fails if a limit does not hold.
    pub(crate) fn check_limits(&self) -> Result<(), EngineError> {
        if self.unenforced.is_empty() {
            return Ok(());
        }
        let hint = match self.is_rootless {
            true => {
                "without root, an engine needs cgroups of version 2 for that: use an engine of root, or such a machine"
            }
            false => "enable these controllers of cgroups in the kernel",
        };
        Err(EngineError::Unlimited {
            engine: self.name.to_owned(),
            limits: self.unenforced.join(", "),
            hint: hint.to_owned(),
        })
    }
}

impl Engines {
    pub(crate) fn new(sockets: EngineSockets) -> Self {
        Self {
            sockets,
            known: Mutex::default(),
        }
    }

    /// Returns the engine, and whether it was found by this call.
    pub(crate) async fn get(&self) -> Result<(Arc<Engine>, bool), EngineError> {
        let mut known = self.known.lock().await;
        if let Some(engine) = &*known {
            return Ok((engine.clone(), false));
        }
        let engine = Arc::new(self.find().await?);
        *known = Some(engine.clone());
        Ok((engine, true))
    }

    /// Forgets an engine that does not answer: another one may be at its socket next time.
    pub(crate) async fn forget(&self, engine: &Arc<Engine>) {
        let mut known = self.known.lock().await;
        known.take_if(|known| Arc::ptr_eq(known, engine));
    }

    async fn find(&self) -> Result<Engine, EngineError> {
        let unreachable = |reason| Err(EngineError::Unreachable { reason });
        let named_by = self.sockets.named_by.map(|by| format!(", which {by} names"));
        let named_by = named_by.unwrap_or_default();
        if let Some(value) = &self.sockets.unusable {
            let shown = value.escape_debug();
            return unreachable(format!(
                "`{shown}`{named_by} is no socket of this machine; write it like `unix:///var/run/docker.sock`"
            ));
        }
        let mut reasons = Vec::new();
        for path in &self.sockets.paths {
            match greet(path).await {
                Ok(engine) => return Ok(engine),
                Err(reason) => reasons.push(format!("`{}`{named_by}: {reason}", path.display())),
            }
        }
        unreachable(format!(
            "{}; start Docker or podman's API service",
            reasons.join("; ")
        ))
    }
}

/// Connects to the engine at a socket.
async fn greet(path: &Path) -> Result<Engine, String> {
    if !path.exists() {
        return Err("there is no socket".to_owned());
    }
    let text = path.to_str().ok_or("the path is no UTF-8 text")?;
    let greeted = timeout(GREETING, async {
        let docker = Docker::connect_with_unix(text, REQUEST_SECONDS, API_DEFAULT_VERSION)?;
        let docker = docker.negotiate_version().await?;
        let prefix = format!("/v{}", docker.client_version());
        // The client leaves the version out of its requests, so that an engine would choose another one after an update.
        let docker = docker.with_request_modifier(move |mut request| {
            if let Some(uri) = versioned(request.uri(), &prefix) {
                *request.uri_mut() = uri;
            }
            request
        });
        let version = docker.version().await?;
        let info = docker.info().await?;
        Ok::<_, bollard::errors::Error>((docker, version, info))
    });
    let (docker, version, info) = match greeted.await {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(error)) => return Err(chain(&error)),
        Err(_) => return Err(format!("no answer within {} s", GREETING.as_secs())),
    };
    let mut components = version.components.into_iter().flatten();
    let is_podman = components.any(|component| component.name.to_ascii_lowercase().contains("podman"));
    let options = info.security_options.unwrap_or_default();
    let is_rootless = options.iter().any(|option| option.starts_with("name=rootless"));
    // An engine without root gets no controllers of version 1, and podman ignores the limits with a warning.
    let has_none = is_rootless && info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_1);
    let unenforced = [
        ("memory", info.memory_limit),
        ("processes", info.pids_limit),
        ("processors", info.cpu_cfs_quota),
    ];
    let unenforced = unenforced
        .into_iter()
        .filter(|(_, holds)| has_none || *holds == Some(false));
    let about = ContainerEngine {
        name: if is_podman { "podman" } else { "Docker" },
        version: version.version.unwrap_or_default(),
        api_version: docker.client_version().to_string(),
        socket: path.display().to_string(),
        is_rootless,
        unenforced: unenforced.map(|(limit, _)| limit).collect(),
    };
    Ok(Engine { docker, about })
}

/// Returns the place of a request with the version of the API.
fn versioned(uri: &Uri, prefix: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let path = parts.path_and_query?;
    parts.path_and_query = Some(format!("{prefix}{path}").parse().ok()?);
    Uri::from_parts(parts).ok()
}
