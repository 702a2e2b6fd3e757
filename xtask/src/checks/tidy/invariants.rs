//! Checks the invariants of the architecture, crate by crate, by text search.

use std::path::Path;

use super::is_test_file;
use crate::checks::source::{SourceFile, words};
use crate::support::console::Violation;

/// Words of the transports, which the contract must not mention.
const TRANSPORT_WORDS: [&str; 8] = [
    "tokio", "http", "hyper", "reqwest", "axum", "jsonrpc", "mcp_wire", "rmcp",
];
/// Crates that may read the environment: user input is resolved in one place, and programs are started by their
/// owner.
const ENVIRONMENT_OWNERS: [&str; 3] = ["tool-manifest", "toolplane-cli", "mcp-client"];
/// Items of `std::env` that do not read environment variables.
const HARMLESS: [&str; 3] = ["consts", "temp_dir", "split_paths"];
/// Crates that may use the JSON-RPC envelope.
const ENVELOPE_OWNERS: [&str; 1] = ["toolplane-gateway"];
/// Crates that may write to a terminal.
const PRINTERS: [&str; 1] = ["toolplane-cli"];
/// Crates that are built for tests only.
const TEST_CRATES: [&str; 4] = ["tool-testkit", "tool-store-suite", "tp-postgres", "tp-containers"];
const PRINT_MACROS: [&str; 4] = ["println", "print", "eprintln", "eprint"];

pub(super) fn check(path: &Path, source: &SourceFile) -> Vec<Violation> {
    let Some(package) = product_crate(path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if package == "tool-core" {
        found.extend(transport_words(source));
    }
    if !ENVIRONMENT_OWNERS.contains(&package) {
        found.extend(environment(source));
    }
    if !package.starts_with("mcp-") && !ENVELOPE_OWNERS.contains(&package) {
        found.extend(envelope(source));
    }
    if !PRINTERS.contains(&package) {
        found.extend(prints(source));
    }
    found
        .into_iter()
        .filter(|(offset, _)| !source.is_test(*offset))
        .map(|(offset, message)| Violation::on_line(path, source.line(offset), message))
        .collect()
}

/// Returns the crate that a file is part of, or `None` if the file is built for tests only.
fn product_crate(path: &Path) -> Option<&str> {
    let package = path.strip_prefix("crates").ok()?.iter().next()?.to_str()?;
    (!TEST_CRATES.contains(&package) && !is_test_file(path)).then_some(package)
}

type Found = (usize, String);

fn transport_words(source: &SourceFile) -> Vec<Found> {
    TRANSPORT_WORDS
        .iter()
        .flat_map(|word| {
            words(source.code(), word).map(move |offset| (offset, format!("`tool-core` knows no `{word}`")))
        })
        .collect()
}

fn environment(source: &SourceFile) -> Vec<Found> {
    let code = source.code();
    words(code, "env")
        .filter_map(|offset| {
            let read = code[offset..].strip_prefix("env::")?;
            let is_std =
                code[..offset].ends_with("std::") || read.starts_with("var") || read.starts_with("set_");
            let is_harmless = HARMLESS.iter().any(|name| read.starts_with(name));
            (is_std && !is_harmless).then(|| {
                let owners = ENVIRONMENT_OWNERS.join("`, `");
                (offset, format!("the environment is read by `{owners}` only"))
            })
        })
        .collect()
}

fn envelope(source: &SourceFile) -> Vec<Found> {
    source
        .uncommented()
        .match_indices("jsonrpc")
        .map(|(offset, _)| (offset, "only `mcp-*` and the gateway know JSON-RPC".to_owned()))
        .collect()
}

fn prints(source: &SourceFile) -> Vec<Found> {
    let code = source.code();
    PRINT_MACROS
        .iter()
        .flat_map(|name| {
            words(code, name)
                .filter(|offset| code[offset + name.len()..].starts_with('!'))
                .map(move |offset| {
                    (
                        offset,
                        format!("`{name}!`: only the command line talks to the terminal"),
                    )
                })
        })
        .collect()
}
