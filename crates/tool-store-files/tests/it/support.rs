//! Stores and changes of the tests.

use std::{collections::BTreeMap, path::Path, time::Duration};

use raw_json::RawJson;
use semver::Version;
use tool_registry::{
    LatestChange, NewVersion, StoreOperation, StoredVersion, ToolFile, VersionHead, VersionState,
};
use tool_store_files::{FileStore, FileStoreOptions};

pub(crate) fn options(directory: &Path) -> FileStoreOptions {
    FileStoreOptions::new(directory)
        .with_poll_interval(Duration::from_millis(2))
        .with_scan_interval(Duration::from_millis(4))
}

pub(crate) fn open(directory: &Path) -> FileStore {
    FileStore::new(options(directory))
}

pub(crate) fn version(number: &str) -> Version {
    number.parse().expect("a version")
}

/// Content with a file.
pub(crate) fn stored(tool: &str, number: &str, state: VersionState, manifest: &str) -> StoredVersion {
    let manifest = RawJson::parse(manifest.to_owned()).expect("JSON");
    let files = BTreeMap::from([(
        "lib/main.py".to_owned(),
        ToolFile::new(format!("print('{number}')\n")),
    )]);
    let new = NewVersion::new(tool, version(number), manifest.clone()).with_files(files.clone());
    let at = std::time::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
    let head = VersionHead::new(version(number), new.digest(), state, at, "ada".into());
    StoredVersion::new(head, manifest, files)
}

pub(crate) fn put(tool: &str, number: &str, state: VersionState) -> StoreOperation {
    StoreOperation::Put(Box::new(stored(
        tool,
        number,
        state,
        r#"{"description":"Greets."}"#,
    )))
}

pub(crate) fn latest(number: &str) -> StoreOperation {
    let at = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    StoreOperation::SetLatest(LatestChange::new(Some(version(number)), at, "ada".into()))
}

/// Operations that publish a first version.
pub(crate) fn first(tool: &str, number: &str) -> Vec<StoreOperation> {
    vec![
        StoreOperation::Create { owner: "ada".into() },
        put(tool, number, VersionState::Published),
        latest(number),
    ]
}
