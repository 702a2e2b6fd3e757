//! Tests of the numbers of packages that crates may bring into a build.

use xtask::{PackageCount, check_counts};

const PAGE: &str = "# Packages\n\n<!-- begin packages -->\n| crate | features | before | packages |\n|---|---|---|---|\n\
    | `tool-a` | `default` | - | 10 |\n| `raw-json` | `default` | 33 | 28 |\n<!-- end packages -->\n";

fn count(package: &str, features: &str, n_packages: usize) -> PackageCount {
    PackageCount {
        package: package.to_owned(),
        features: features.to_owned(),
        n_packages,
        keeps_order: false,
    }
}

#[track_caller]
fn check(counts: &[PackageCount], expected: &[&str]) {
    let problems: Vec<String> = check_counts(PAGE, counts)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(
            problem.starts_with("docs/src/reference/packages.md: ") && problem.contains(expected),
            "{problem}"
        );
    }
}

#[test]
fn a_number_may_fall_and_not_rise() {
    check(
        &[count("tool-a", "default", 10), count("tool-a", "default", 9)],
        &[],
    );
    check(
        &[count("tool-a", "default", 11)],
        &["`tool-a` with the features `default` needs 11 packages, and 10 are recorded; leave out"],
    );
    // The number recorded at the beginning is never exceeded, whatever the page records.
    check(
        &[count("raw-json", "default", 34)],
        &["needs 34 packages, more than before the number was bounded"],
    );
}

#[test]
fn a_crate_without_a_number_is_refused() {
    check(
        &[count("tool-a", "none", 3)],
        &[
            "`tool-a` with the features `none` needs 3 packages, and no number is recorded: run `cargo xtask docs packages`",
        ],
    );
}

#[test]
fn a_library_leaves_the_order_of_maps_to_the_program() {
    let ordered = |package: &str, n| PackageCount {
        keeps_order: true,
        ..count(package, "default", n)
    };
    check(
        &[ordered("tool-a", 10)],
        &["`tool-a` turns on `preserve_order` of serde_json"],
    );
    let page = PAGE.replace("`tool-a`", "`toolplane-cli`");
    assert_eq!(check_counts(&page, &[ordered("toolplane-cli", 10)]), []);
}
