//! Checks that links between our pages lead to an existing file and heading, and that the code which pages include exists.

use std::path::Path;

use crate::support::console::Violation;
use crate::support::repository::{Repository, normal};

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let pages = repository.files().iter().filter(|file| {
        file.extension().is_some_and(|extension| extension == "md") && !super::is_fixture(file)
    });
    pages.flat_map(|page| check_page(repository, page)).collect()
}

fn check_page(repository: &Repository, page: &Path) -> Vec<Violation> {
    let Some(text) = repository.text(page) else {
        return Vec::new();
    };
    let links = links(&text).into_iter().filter_map(|(line, target)| {
        let message = broken(repository, page, &target)?;
        Some(Violation::on_line(page, line, message))
    });
    let includes = includes(&text).filter_map(|(line, target)| {
        let message = unincluded(repository, page, target)?;
        Some(Violation::on_line(page, line, message))
    });
    links.chain(includes).collect()
}

/// Finds `{{#include target}}`, which mdBook replaces by code: <https://rust-lang.github.io/mdBook/format/mdbook.html>. It
/// leaves an empty block where the target is missing.
fn includes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let target = line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")?;
        Some((index + 1, target.trim()))
    })
}

/// Returns the problem of an include: a missing file, or a file without the anchor.
fn unincluded(repository: &Repository, page: &Path, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once(':').unwrap_or((target, ""));
    let Some(text) = normal(&page.parent()?.join(file)).and_then(|path| repository.text(&path)) else {
        return Some(format!("the page includes `{file}`, which is missing"));
    };
    let has = |mark: &str| {
        text.lines()
            .any(|line| line.trim_end().ends_with(&format!("{mark}: {anchor}")))
    };
    let is_there = anchor.is_empty() || has("ANCHOR") && has("ANCHOR_END");
    (!is_there).then(|| {
        format!("the page includes the anchor `{anchor}`, which `{file}` does not have from begin to end")
    })
}

fn broken(repository: &Repository, page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.to_path_buf()
    } else {
        match normal(&page.parent()?.join(file)) {
            Some(path) => path,
            None => return Some(format!("the link `{target}` leads out of the repository")),
        }
    };
    if !repository.root().join(&path).exists() {
        return Some(format!(
            "the link `{target}` leads to nothing: `{}` is missing",
            path.display()
        ));
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    if is_page && !heading.is_empty() && !headings(&repository.text(&path)?).any(|slug| slug == heading) {
        return Some(format!(
            "the link `{target}` leads to a heading that `{}` has not",
            path.display()
        ));
    }
    None
}

/// Finds `[text](target)` and `[name]: target` outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, content) in prose(text) {
        let plain = without_code_spans(content);
        for (offset, _) in plain.match_indices("](") {
            let target = plain[offset + 2..].split([')', ' ']).next().unwrap_or_default();
            links.push((line, target.trim_matches(['<', '>']).to_owned()));
        }
        if let Some((name, target)) = plain.split_once("]: ")
            && name.starts_with('[')
            && !name.starts_with("[^")
        {
            links.push((
                line,
                target.split_whitespace().next().unwrap_or_default().to_owned(),
            ));
        }
    }
    links.retain(|(_, target)| !target.is_empty());
    links
}

/// Returns the anchors of a page's headings, in the form that Markdown renderers generate.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
}

/// Returns the lines outside of fenced code, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let marker = ["```", "~~~"]
            .into_iter()
            .find(|marker| line.trim_start().starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => return Some((index + 1, line)),
            _ => {}
        }
        None
    })
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}
