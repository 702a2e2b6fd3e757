//! Ancestors of this process.

use std::fs;

use rustix::process::getppid;

/// Maximum number of ancestors that are looked at.
const MAX: usize = 64;

/// Returns `true` if this process was started by the process with this id, or by one that it started.
pub(super) fn is_ancestor(process: &str) -> bool {
    let Ok(wanted) = process.parse::<i32>() else {
        return false;
    };
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    std::iter::successors(parent, |process| parent_of(*process))
        .take(MAX)
        .any(|process| process == wanted)
}

/// Returns the parent of another process; `None` where the system does not tell.
fn parent_of(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the process before the last `)` may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let parent = fields.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::is_ancestor;

    #[test]
    fn the_process_that_started_this_one() {
        let parent = std::os::unix::process::parent_id().to_string();
        assert!(is_ancestor(&parent));
        assert!(!is_ancestor(&std::process::id().to_string()));
        assert!(!is_ancestor("no number"));
    }
}
