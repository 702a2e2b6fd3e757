//! Formats the results for people.

use std::collections::{BTreeMap, BTreeSet};

use super::suite::{Checks, Run};

/// Returns the summary that is printed at the end of a run.
pub(super) fn summary(runs: &[Run]) -> String {
    let lines: Vec<_> = runs
        .iter()
        .map(|run| {
            let (passed, known) = (count(run, Run::has_passed), count(run, Run::is_expected_to_fail));
            format!(
                "conformance: {:<62} {passed:>3} of {:>3} scenarios{}",
                run.name(),
                run.required.len(),
                match known {
                    0 if run.is_demanded() => String::new(),
                    0 => ", between the eras".to_owned(),
                    _ => format!(", {known} of them may fail"),
                }
            )
        })
        .collect();
    lines.join("\n")
}

/// Returns the generated part of the page: the sets, then their scenarios.
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
            "| {} | {passed} of {} | {} of {} | {} |\n",
            run.name(),
            counted.len(),
            checks.passed,
            checks.passed + checks.failed,
            count(run, Run::is_expected_to_fail),
        );
    }
    text += &between_eras(runs);
    text += &beyond(runs);
    let direct: Vec<&Run> = runs.iter().filter(|run| run.upstream.is_none()).collect();
    text += "\n| scenario |";
    direct
        .iter()
        .for_each(|run| text += &format!(" {} |", run.name()));
    text += &format!("\n|---|{}\n", "---|".repeat(direct.len()));
    for (scenario, cells) in by_scenario(&direct) {
        text += &format!("| `{scenario}` | {} |\n", cells.join(" | "));
    }
    text
}

/// Returns the scenarios that do not pass where the gateway translates between the eras.
fn between_eras(runs: &[Run]) -> String {
    let mixed = runs.iter().filter(|run| !run.is_demanded());
    let lines: Vec<_> = mixed
        .map(|run| {
            let failed: Vec<_> = run.failed().map(|scenario| format!("`{scenario}`")).collect();
            let failed = if failed.is_empty() {
                "nothing".to_owned()
            } else {
                failed.join(", ")
            };
            format!("- {}: {failed}", run.name())
        })
        .collect();
    match lines.as_slice() {
        [] => String::new(),
        lines => format!("\nNot passed between the eras:\n\n{}\n", lines.join("\n")),
    }
}

/// Returns the scenarios of the tasks extension, if they were run. No set requires them.
fn beyond(runs: &[Run]) -> String {
    let runs: Vec<&Run> = runs
        .iter()
        .filter(|run| run.results.keys().any(|scenario| is_beyond(scenario)))
        .collect();
    let scenarios: BTreeSet<&String> = runs
        .iter()
        .flat_map(|run| run.results.keys())
        .filter(|scenario| is_beyond(scenario))
        .collect();
    if scenarios.is_empty() {
        return String::new();
    }
    let mut text = "\nTasks, which no set demands:\n\n| scenario |".to_owned();
    runs.iter().for_each(|run| text += &format!(" {} |", run.name()));
    text += &format!("\n|---|{}\n", "---|".repeat(runs.len()));
    for scenario in scenarios {
        let cells: Vec<_> = runs
            .iter()
            .map(|run| run.results.get(scenario).copied().unwrap_or_default())
            .map(|checks| format!("{} of {}", checks.passed, checks.passed + checks.failed))
            .collect();
        text += &format!("| `{scenario}` | {} |\n", cells.join(" | "));
    }
    text
}

/// Returns `true` if a scenario is shown but never required.
pub(super) fn is_beyond(scenario: &str) -> bool {
    scenario.starts_with("tasks-")
}

/// Returns a row of cells for every scenario except known failures.
fn by_scenario<'a>(runs: &[&'a Run]) -> BTreeMap<&'a str, Vec<String>> {
    let mut rows: BTreeMap<&'a str, Vec<String>> = BTreeMap::new();
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
