//! Catalogs of tools and servers to share.
//!
//! A catalog is a directory, or the same files behind a web server: an `index.json` ([`CatalogIndex`]) that lists bundles
//! with their digests, and one JSON document for each [`Bundle`]: a version of a tool, or the settings of a server. A bundle
//! that does not have the name, the version and the digest of its entry is refused. A [`CatalogKey`] checks the
//! signature over the exact bytes of a bundle. Documents `server.json` of the MCP registry are read as entries as well
//! ([`McpServerJson`]).
//!
//! Everything that a catalog holds is foreign: sizes, counts and depths are limited, paths stay inside the catalog, and text
//! that would be a `${…}` reference in a configuration is escaped unless the reference is meant.
//!
//! # Examples
//! ```
//! use tool_catalog::{Bundle, CatalogIndex};
//! use tool_registry::NewVersion;
//! use tool_core::RawJson;
//!
//! let manifest = RawJson::parse(
//!     r#"{"apiVersion":"toolplane.dev/v1","kind":"Tool","metadata":{"name":"greet"},"spec":{"description":"Greets.","executor":{"kind":"mock","result":"hello"}}}"#,
//! )?;
//! let bundle = Bundle::of_tool(&NewVersion::new("greet", "1.0.0".parse()?, manifest), "Greets.")?;
//! let mut index = CatalogIndex::default();
//! index.add(bundle.entry())?;
//!
//! let entry = index.find(&"greet@1.0.0".parse()?)?;
//! let read = Bundle::parse(&entry.place, bundle.to_text().as_bytes())?;
//! read.check(entry)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle;
mod directory;
mod error;
mod files;
mod foreign;
mod index;
mod needs;
mod request;
mod search;
mod server_json;
mod signature;

pub use tool_core;
pub use tool_registry;

pub use self::{
    bundle::{Bundle, BundleContent},
    directory::CatalogDirectory,
    error::{CatalogError, CatalogErrorKind},
    foreign::{MAX_BUNDLE_BYTES, MAX_INDEX_BYTES, MAX_SIGNATURE_BYTES, is_catalog_path},
    index::{CatalogEntry, CatalogIndex, EntryKind, EntrySignature, find_entry},
    needs::{CatalogNeeds, NeededSecret},
    request::EntryRequest,
    search::search,
    server_json::{McpServerJson, PackageChoice, ServerInput, ServerPlan},
    signature::{CatalogKey, SIGNATURE_ENDINGS, SignatureCheck, SignatureFile},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
