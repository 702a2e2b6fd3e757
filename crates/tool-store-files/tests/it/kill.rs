//! Publications that are killed.

use std::sync::Arc;

use tool_registry::Store;
use tool_store_files::{FileStore, FileStoreOptions};
use tool_store_suite::{
    kill::KillSwitch,
    publications::{killed_publications, publish_in_role},
};

/// Largest number of steps after which a writer is killed: a publication has two dozen.
const MAX_STEPS: u64 = 100;

#[test]
fn killed_publisher() {
    publish_in_role(|path: &str, switch: KillSwitch| {
        let mut options = FileStoreOptions::new(path);
        options.on_step = Some(Arc::new(move || {
            switch.pass();
            Ok(())
        }));
        Arc::new(FileStore::new(options))
    });
}

/// Promise R22.
#[test]
fn a_killed_publication_is_visible_wholly_or_not_at_all() {
    let open = |path: &str| Arc::new(FileStore::new(FileStoreOptions::new(path))) as Arc<dyn Store>;
    let place = || {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store").to_str().expect("UTF-8").to_owned();
        (directory, path)
    };
    killed_publications("kill::killed_publisher", MAX_STEPS, place, open);
}
