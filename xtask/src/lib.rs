//! The work of `cargo xtask`, as a library so that its checks also run as tests.

mod bench;
mod build;
mod ci;
mod conformance;
mod console;
mod demo;
mod deny;
mod docs;
mod examples;
mod features;
mod layers;
mod members;
mod peers;
mod process;
mod release;
mod repository;
mod sim;
mod source;
mod test;
mod tidy;

pub use bench::bench;
pub use ci::{CiOptions, ci};
pub use conformance::conformance;
pub use console::{Violation, refuse, say};
pub use demo::{DemoOptions, demo};
pub use deny::deny;
pub use docs::docs;
pub use layers::{check_edges, check_layers, check_order, check_purity};
pub use members::{CargoTarget, Dependency, DependencyKind, Package, WorkspaceMembers};
pub use peers::{DocPart, install_peers};
pub use release::release;
pub use repository::Repository;
pub use sim::{SimOptions, sim};
pub use source::SourceFile;
pub use test::{TestOptions, test};
pub use tidy::{check_tidy, tidy_file};
