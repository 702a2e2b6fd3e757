use tool_sandbox::SandboxLevel;

use super::Finding;
use crate::verbs::sandbox::{attacked, lost, parts, scopes};

const NAME: &str = "sandbox";

/// Attacks the sandbox of this machine.
pub(super) async fn sandbox() -> Finding {
    let report = match attacked(None).await {
        Ok(report) => report,
        Err(error) => {
            let (message, hint) = parts(&error);
            let message = format!("{message}; tools that need one are refused");
            return Finding::warn(NAME, message, hint.unwrap_or_default());
        }
    };
    let level = report.enforcement.level;
    let (n_tried, lost) = lost(&report);
    let mut finding = if !lost.is_empty() {
        let names: Vec<_> = lost
            .iter()
            .map(|row| format!("{} ({})", row.id, row.title))
            .collect();
        Finding::fail(
            NAME,
            format!("level `{level}` did not hold against {}", names.join(", ")),
            "`toolplane sandbox probe` shows the details",
        )
    } else if level == SandboxLevel::Bwrap {
        Finding::ok(NAME, format!("level `{level}` held against {n_tried} attacks"))
    } else {
        Finding::warn(
            NAME,
            format!("level `{level}` held against {n_tried} attacks; it has no namespaces"),
            "`toolplane sandbox probe --level bwrap` says what the stronger level lacks",
        )
    };
    finding.detail = Some(format!("limits hold for: {}", scopes(&report.enforcement)));
    finding
}
