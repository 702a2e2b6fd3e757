//! Packages that code requires.

use serde_json::json;

use crate::harness::{descriptor, problems};

/// Lock of the package `tiny` with the hash of these 64 digits.
fn lock(requires: &str) -> String {
    format!(
        "# requires: {requires}\ntiny==1.0 \\\n    --hash=sha256:{}\n",
        "0123456789abcdef".repeat(4)
    )
}

#[test]
fn only_locked_packages_are_used() {
    let config = json!({"code": "import tiny", "requires": ["tiny"]});
    let with = |lock: String| {
        let mut descriptor = descriptor("python", config.clone());
        descriptor
            .files
            .insert("requirements.lock".to_owned(), lock.into());
        problems(&descriptor)
    };
    assert!(with(lock(r#"["tiny"]"#)).is_empty());
    for (text, expected) in [
        (lock(r#"["other"]"#), "resolved for `other`"),
        ("tiny==1.0\n".to_owned(), "do not state"),
        ("# requires: [\"tiny\"]\ntiny==1.0\n".to_owned(), "has no hash"),
        (
            format!("{}--index-url http://127.0.0.1/\n", lock(r#"["tiny"]"#)),
            "has no hash",
        ),
    ] {
        let problems = with(text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].message.contains(expected), "{problems:?}");
    }
}
