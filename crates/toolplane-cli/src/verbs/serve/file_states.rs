//! States of files, by which a change is seen without reading them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// State of a file or directory. Two states are equal if nothing has changed, unless somebody sets times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    inode: u64,
    /// Time of the last modification, in seconds and nanoseconds since 1970.
    modified: (i64, i64),
    length: u64,
}

impl FileState {
    /// Returns the state of a file; `None` if it is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
        })
    }

    /// Returns the states of files, in their order.
    pub(super) fn of_all(paths: &[PathBuf]) -> Vec<Option<Self>> {
        paths.iter().map(|path| Self::of(path)).collect()
    }

    /// Returns `true` if every modification from this time on has another time of modification: the clocks of file systems are coarse.
    pub(super) fn is_settled(&self, since: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.modified;
        // Some file systems store seconds only, or every other one.
        let tick = if nanoseconds == 0 { COARSE_TICK } else { TICK };
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let latest = since.saturating_sub(tick);
        let latest = (latest.as_secs().cast_signed(), i64::from(latest.subsec_nanos()));
        (seconds, nanoseconds) < latest
    }
}

/// Longest time between two ticks of a kernel, with a margin, by which file systems tell the time.
const TICK: Duration = Duration::from_millis(50);
/// Longest time between two ticks of a file system that stores no fractions of a second.
const COARSE_TICK: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_is_settled_once_its_file_system_has_another_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f");
        let file = File::create(&path).expect("it is ours");
        let second = Duration::from_secs(1);
        let since = SystemTime::UNIX_EPOCH + 1_000_000 * second;
        let is_settled = |modified: SystemTime| {
            file.set_modified(modified).expect("it is ours");
            FileState::of(&path).expect("it is there").is_settled(since)
        };
        assert!(!is_settled(since + second));
        assert!(!is_settled(since - Duration::from_millis(9)));
        assert!(is_settled(since - second / 2));
        assert!(!is_settled(since - second), "the next one may have the same time");
        assert!(is_settled(since - 4 * second));
    }

    #[test]
    fn states_tell_changes_and_missing_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f");
        assert_eq!(FileState::of(&path), None);
        fs::write(&path, "a").expect("it is ours");
        let before = FileState::of_all(std::slice::from_ref(&path));
        assert_eq!(FileState::of_all(std::slice::from_ref(&path)), before);
        fs::write(&path, "ab").expect("it is ours");
        assert_ne!(FileState::of_all(&[path]), before);
    }
}
