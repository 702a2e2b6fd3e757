use std::collections::VecDeque;

use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::Progress;

/// Keeps what a tool has reported last, for the state of its task.
#[derive(Default)]
pub(super) struct PartialReports(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    n: u64,
    pieces: VecDeque<RawJson>,
}

/// Maximum number of pieces that are kept.
const MAX_PIECES: usize = 16;
/// Maximum size of a piece, in bytes. A longer one is cut off.
const MAX_PIECE: usize = 4096;

impl Progress for PartialReports {
    fn report(&self, report: RawJson) {
        // The message is what the tool says; a report without one only counts.
        let piece = report.get("message").unwrap_or(report);
        let text = piece.string().unwrap_or_else(|| piece.as_str().to_owned());
        let text = &text[..text.floor_char_boundary(MAX_PIECE)];
        let mut kept = self.0.lock();
        kept.n += 1;
        kept.pieces.push_back(RawJson::from(text));
        if kept.pieces.len() > MAX_PIECES {
            kept.pieces.pop_front();
        }
    }
}

impl PartialReports {
    /// Returns the number of pieces that were reported, and the last of them.
    pub(super) fn kept(&self) -> (u64, Vec<RawJson>) {
        let kept = self.0.lock();
        (kept.n, kept.pieces.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;
    use serde_json::json;
    use tool_core::Progress;

    use super::{MAX_PIECE, MAX_PIECES, PartialReports};

    #[test]
    fn only_the_last_pieces_are_kept_and_none_is_long() {
        let reports = PartialReports::default();
        for n in 0..100 {
            reports.report(RawJson::from(
                json!({"progress": n, "message": format!("piece {n}")}),
            ));
        }
        reports.report(RawJson::from(json!({"message": "é".repeat(MAX_PIECE)})));
        reports.report(RawJson::from(json!({"progress": 7})));
        let (n, pieces) = reports.kept();
        assert_eq!((n, pieces.len()), (102, MAX_PIECES));
        assert_eq!(pieces[0].string().as_deref(), Some("piece 86"));
        assert_eq!(pieces[14].string().map(|piece| piece.len()), Some(MAX_PIECE));
        assert_eq!(pieces[15].string().as_deref(), Some(r#"{"progress":7}"#));
    }
}
