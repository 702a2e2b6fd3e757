//! Implementation of `cargo xtask`, as a library so that its checks also run as tests.

mod api;
mod bench;
mod build;
mod checks;
mod conformance;
mod demo;
mod docs;
mod packages;
mod peers;
mod sim;
mod soak;
mod support;
mod test;

pub use api::api;
pub use bench::{bench, cache_eval, search_eval};
pub use build::release::release;
pub use checks::ci::{CiOptions, ci};
pub use checks::deny::deny;
pub use checks::examples::examples;
pub use checks::form::{Form, measure_form};
pub use checks::layers::{check_edges, check_layers, check_order, check_purity};
pub use checks::packages::{PackageCount, check_counts};
pub use checks::source::SourceFile;
pub use checks::tidy::{check_tidy, tidy_file};
pub use conformance::conformance;
pub use demo::{DemoOptions, demo};
pub use docs::docs;
pub use packages::{package, release_check};
pub use peers::{DocPart, install_peers};
pub use sim::{SimOptions, sim};
pub use soak::soak;
pub use support::console::{Violation, refuse, say};
pub use support::members::{CargoTarget, Dependency, DependencyKind, Package, WorkspaceMembers};
pub use support::repository::Repository;
pub use test::{TestOptions, test};
