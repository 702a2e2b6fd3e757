//! Container engines for tests: podman and Docker in a temporary folder, with an image made here.
//!
//! No existing engine, image or container is touched. Each engine has a socket, a folder and images of its own, and ends with the
//! process that started it, however that ends. The image has the programs of busybox and nothing else, and nothing is pulled. The
//! crate has no dependencies: `cargo xtask` uses it too.
//!
//! # Examples
//!
//! ```no_run
//! use tp_containers::{EngineKind, TestEngine};
//!
//! let engine = TestEngine::start(EngineKind::Podman).unwrap();
//! assert!(engine.image().starts_with("sha256:"));
//! ```

mod engine;
mod kind;
mod programs;

pub use self::engine::TestEngine;
pub use self::kind::{EngineKind, EngineUnavailable};
pub use self::programs::{DOCKER_PACKAGES, PODMAN_PACKAGES, docker_folder, is_installed};
