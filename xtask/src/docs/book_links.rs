//! Links of the built book: each leads to a page and a heading of the book, or to a file of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::support::console::Violation;
use crate::support::repository::{Repository, normal};

/// Book that mdBook has built.
pub(crate) struct BuiltBook<'a> {
    repository: &'a Repository,
    folder: PathBuf,
    /// Address of the repository, for links to files that are not in the book.
    address: String,
    /// Source of `index.html`, the first page of the summary.
    first: PathBuf,
    /// Pages by their path below `folder`.
    pages: BTreeMap<PathBuf, Page>,
}

struct Page {
    html: String,
    anchors: BTreeSet<String>,
}

/// Result of following a link.
enum Followed {
    /// Leads to a page or a file of the book, or out of it to another site.
    Good,
    /// Leads to a file of the repository, which has this address.
    Outside(String),
    /// Leads to nothing, for this reason.
    Broken(String),
}

impl<'a> BuiltBook<'a> {
    /// Reads the pages in `folder`. `settings` is the text of `book.toml`.
    pub(crate) fn open(repository: &'a Repository, folder: &Path, settings: &str) -> Result<Self> {
        let address = quoted(settings, "git-repository-url")
            .context("`docs/book.toml` has no `git-repository-url`")?
            .to_owned();
        let summary = repository.text("docs/src/SUMMARY.md").unwrap_or_default();
        let first = summary
            .split_once("](")
            .and_then(|(_, rest)| rest.split_once(')'))
            .map_or("README.md", |(page, _)| page);
        let mut book = Self {
            repository,
            folder: folder.to_path_buf(),
            address,
            first: PathBuf::from(first),
            pages: BTreeMap::new(),
        };
        book.read(Path::new(""))?;
        Ok(book)
    }

    pub(crate) fn n_pages(&self) -> usize {
        self.pages.len()
    }

    /// Writes the address of the repository into links to its files, and returns the links that lead to nothing.
    pub(crate) fn finish(&self) -> Result<Vec<Violation>> {
        let mut problems = Vec::new();
        for (path, page) in &self.pages {
            let mut html = String::new();
            let mut rest = page.html.as_str();
            while let Some((before, target, after)) = next_link(rest) {
                html += before;
                match self.follow(path, target) {
                    Followed::Good => html += target,
                    Followed::Outside(address) => html += &address,
                    Followed::Broken(reason) => {
                        html += target;
                        problems.push(Violation::in_file(self.source(path), reason));
                    }
                }
                rest = after;
            }
            html += rest;
            if html != page.html {
                let file = self.folder.join(path);
                fs::write(&file, html).with_context(|| format!("failed to write `{}`", file.display()))?;
            }
        }
        // The first page is there twice.
        problems.sort();
        problems.dedup();
        Ok(problems)
    }

    fn follow(&self, page: &Path, target: &str) -> Followed {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        if target.contains(':') || target.starts_with("//") {
            return Followed::Good;
        }
        let path = match file {
            "" => Some(page.to_path_buf()),
            file => normal(&page.parent().unwrap_or(Path::new("")).join(file)),
        };
        let in_book = path.filter(|path| self.folder.join(path).exists());
        let Some(path) = in_book else {
            return self.follow_outside(page, target, file);
        };
        match self.pages.get(&path) {
            Some(to) if !anchor.is_empty() && !to.anchors.contains(anchor) => Followed::Broken(format!(
                "the link `{target}` leads to a heading that `{}` has not in the book",
                path.display()
            )),
            _ => Followed::Good,
        }
    }

    /// Follows a link to a file that is not in the book, from the place of the page's source. mdBook has given the links
    /// to pages another ending.
    fn follow_outside(&self, page: &Path, target: &str, file: &str) -> Followed {
        let source = self.source(page);
        let folder = source.parent().unwrap_or(Path::new(""));
        let as_page = file.strip_suffix(".html").map(|stem| format!("{stem}.md"));
        let candidates = [Some(file.to_owned()), as_page];
        let found = candidates
            .into_iter()
            .flatten()
            .filter_map(|file| normal(&folder.join(file)))
            .find(|path| self.repository.root().join(path).exists());
        match found {
            Some(path) => {
                let kind = match self.repository.root().join(&path).is_dir() {
                    true => "tree",
                    false => "blob",
                };
                Followed::Outside(format!("{}/{kind}/main/{}", self.address, path.display()))
            }
            None => Followed::Broken(format!("the link `{target}` leads to nothing in the book")),
        }
    }

    /// Returns the source of a page, below the root of the repository. A page may be a link to a file elsewhere.
    fn source(&self, page: &Path) -> PathBuf {
        let written = page.with_extension("md");
        let root = self.repository.root();
        let pages = Path::new("docs/src");
        let is_first = page == Path::new("index.html") && !root.join(pages).join(&written).exists();
        let path = pages.join(if is_first { &self.first } else { &written });
        let real = fs::canonicalize(root.join(&path)).ok();
        let root = fs::canonicalize(root).ok();
        real.zip(root)
            .and_then(|(real, root)| Some(real.strip_prefix(root).ok()?.to_path_buf()))
            .unwrap_or(path)
    }

    fn read(&mut self, below: &Path) -> Result<()> {
        let folder = self.folder.join(below);
        let failed = || format!("failed to list `{}`", folder.display());
        for entry in fs::read_dir(&folder).with_context(failed)? {
            let path = below.join(entry.with_context(failed)?.file_name());
            let file = self.folder.join(&path);
            // The page of errors is served at any address, and the table of contents is a part of the others.
            let is_page = path.extension().is_some_and(|extension| extension == "html")
                && !["404.html", "toc.html"]
                    .iter()
                    .any(|name| path == Path::new(name));
            if file.is_dir() {
                self.read(&path)?;
            } else if is_page {
                let html = fs::read_to_string(&file)
                    .with_context(|| format!("failed to read `{}`", file.display()))?;
                let anchors = anchors(&html);
                self.pages.insert(path, Page { html, anchors });
            }
        }
        Ok(())
    }
}

/// Splits a page at its next link: the text up to its target, the target, and the rest.
fn next_link(html: &str) -> Option<(&str, &str, &str)> {
    const BEGIN: &str = "href=\"";
    let start = html.find(BEGIN)? + BEGIN.len();
    let end = start + html[start..].find('"')?;
    Some((&html[..start], &html[start..end], &html[end..]))
}

fn anchors(html: &str) -> BTreeSet<String> {
    let ids = html.split(" id=\"").skip(1);
    ids.filter_map(|rest| rest.split_once('"'))
        .map(|(id, _)| id.to_owned())
        .collect()
}

/// Returns the value of `key = "value"`.
fn quoted<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
    settings.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        value.trim().strip_prefix('"')?.strip_suffix('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_into_the_book_or_to_files_of_the_repository() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        let settings = "[output.html]\ngit-repository-url = \"https://example.com/a\"\n";
        write(
            "docs/src/SUMMARY.md",
            "[First](first.md)\n\n- [Second](deep/second.md)\n",
        );
        for file in [
            "docs/src/first.md",
            "docs/src/deep/second.md",
            "code.rs",
            "READ.md",
        ] {
            write(file, "");
        }
        let first = "<h1 id=\"one\"><a class=\"header\" href=\"#one\">One</a></h1>\
            <a href=\"deep/second.html#two\">good</a> <a href=\"https://example.com/#x\">away</a>\
            <a href=\"../../code.rs\">code</a> <a href=\"../../READ.html\">page</a> <a href=\"../../docs\">folder</a>";
        write("book/first.html", first);
        write("book/index.html", first);
        write(
            "book/deep/second.html",
            "<h2 id=\"two\">Two</h2><a href=\"../first.html#two\">heading</a><a href=\"gone.html\">gone</a>",
        );
        write("book/404.html", "<a href=\"nowhere.html\">skipped</a>");
        let repository = Repository::at(folder.path()).expect("a repository");
        let book = BuiltBook::open(&repository, &folder.path().join("book"), settings).expect("a book");
        assert_eq!(book.n_pages(), 3);

        let problems: Vec<_> = book
            .finish()
            .expect("it is written")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            problems,
            [
                "docs/src/deep/second.md: the link `../first.html#two` leads to a heading that `first.html` has not in the book",
                "docs/src/deep/second.md: the link `gone.html` leads to nothing in the book",
            ]
        );
        let expected = first
            .replace("../../code.rs", "https://example.com/a/blob/main/code.rs")
            .replace("../../READ.html", "https://example.com/a/blob/main/READ.md")
            .replace("../../docs", "https://example.com/a/tree/main/docs");
        for page in ["first.html", "index.html"] {
            let html = fs::read_to_string(folder.path().join("book").join(page)).expect("a page");
            assert_eq!(html, expected);
        }
    }
}
