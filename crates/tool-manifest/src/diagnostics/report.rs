use std::cell::RefCell;

use crate::{Diagnostic, Severity};

/// Maximum number of problems of a run: nobody reads more, and a hostile file could make millions.
const MAX_PROBLEMS: usize = 100;

/// Collects the problems of a run.
///
/// It is shared while values are read, hence the cell; one thread reads.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: RefCell<Vec<Diagnostic>>,
}

impl Report {
    pub(crate) fn push(&self, problem: Diagnostic) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        } else if problems.len() == MAX_PROBLEMS {
            problems.push(Diagnostic::error(format!(
                "there are more than {MAX_PROBLEMS} problems; the others are not shown"
            )));
        }
    }

    /// Returns `true` if no more problems are kept. Callers that make many ask first: finding a place in a long line
    /// takes time.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.borrow().len() > MAX_PROBLEMS
    }

    /// Sorts the problems after the first `n_earlier` by their lines.
    pub(crate) fn sort_from(&self, n_earlier: usize) {
        let mut problems = self.problems.borrow_mut();
        problems[n_earlier..].sort_by_key(|problem| {
            let place = problem.location.as_ref();
            place.map_or((usize::MAX, 0), |place| (place.line, place.column))
        });
    }

    pub(crate) fn n_problems(&self) -> usize {
        self.problems.borrow().len()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems
            .borrow()
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    pub(crate) fn into_problems(self) -> Vec<Diagnostic> {
        self.problems.into_inner()
    }
}
