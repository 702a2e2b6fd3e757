//! The results as people read them.

use std::collections::BTreeMap;

use super::suite::{Checks, Run};

/// What is shown at the end of a run.
pub(super) fn summary(runs: &[Run]) -> String {
    let lines: Vec<_> = runs
        .iter()
        .map(|run| {
            let (passed, known) = (count(run, Run::has_passed), count(run, Run::is_expected_to_fail));
            format!(
                "conformance: {:<8} {} {passed:>3} of {:>3} scenarios{}",
                run.side.plural(),
                run.revision,
                run.required.len(),
                match known {
                    0 => String::new(),
                    _ => format!(", {known} of them may fail"),
                }
            )
        })
        .collect();
    lines.join("\n")
}

/// The part of the page: the sets, then their scenarios.
pub(super) fn tables(runs: &[Run]) -> String {
    let mut text =
        "| set | scenarios passed | checks passed | known to fail |\n|---|---|---|---|\n".to_owned();
    for run in runs {
        let expected = |scenario: &str| run.is_expected_to_fail(scenario);
        let counted: Vec<&String> = run
            .required
            .iter()
            .filter(|scenario| !expected(scenario))
            .collect();
        let passed = counted.iter().filter(|scenario| run.has_passed(scenario)).count();
        let checks = counted
            .iter()
            .filter_map(|scenario| run.results.get(*scenario))
            .fold(Checks::default(), |sum, checks| Checks {
                passed: sum.passed + checks.passed,
                failed: sum.failed + checks.failed,
            });
        text += &format!(
            "| {}, {} | {passed} of {} | {} of {} | {} |\n",
            run.side.plural(),
            run.revision,
            counted.len(),
            checks.passed,
            checks.passed + checks.failed,
            count(run, Run::is_expected_to_fail),
        );
    }
    text += "\n| scenario |";
    runs.iter()
        .for_each(|run| text += &format!(" {}, {} |", run.side.plural(), run.revision));
    text += &format!("\n|---|{}\n", "---|".repeat(runs.len()));
    for (scenario, cells) in by_scenario(runs) {
        text += &format!("| `{scenario}` | {} |\n", cells.join(" | "));
    }
    text
}

/// A row of cells for every scenario but those that are known to fail.
fn by_scenario(runs: &[Run]) -> BTreeMap<&str, Vec<String>> {
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for scenario in run
            .required
            .iter()
            .filter(|scenario| !run.is_expected_to_fail(scenario))
        {
            let checks = run.results.get(scenario).copied().unwrap_or_default();
            let row = rows
                .entry(scenario)
                .or_insert_with(|| vec![String::new(); runs.len()]);
            row[index] = format!("{} of {}", checks.passed, checks.passed + checks.failed);
        }
    }
    rows
}

fn count(run: &Run, is_counted: impl Fn(&Run, &str) -> bool) -> usize {
    run.required
        .iter()
        .filter(|scenario| is_counted(run, scenario))
        .count()
}
