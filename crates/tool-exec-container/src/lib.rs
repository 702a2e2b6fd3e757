//! Executor of kind `docker`: containers as tools, with Docker or podman.
//!
//! A tool names an image by its digest and a command as a list of arguments, which no shell reads. Each call runs in a container
//! of its own, and its settings are a closed set: nothing of the host can be reached by them.
//!
//! # What a container gets
//! No network, a read-only root file system, no capabilities, no new privileges, user 65534, no host paths, devices or namespaces,
//! limits of memory, processes, processor and open files, and file systems in memory for `/tmp`, `/run`, `/var/tmp` and the volumes
//! of its image, none of which holds programs. Arguments are environment variables and, as a JSON object, standard input; nothing of
//! the gateway's environment is in it.
//!
//! # Containers whose gateway is gone
//! Every container has the labels `dev.toolplane.scope` and `dev.toolplane.gateway`. The second names a lock file, which the
//! operating system releases when its process ends, however that happens; the first names the directory of these files. Another
//! gateway with the same directory removes the containers whose lock it can take.

mod backend;
mod engine;
mod executor;
mod image;
mod options;
mod plan;
mod settings;

pub use self::{
    engine::{ContainerEngine, EngineError, EngineSockets},
    executor::{ContainerExecutor, ContainerRuntime},
    options::{ContainerOptions, PullPolicy},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
