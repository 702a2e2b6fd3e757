use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Beginning of the line that states what was resolved.
const REQUIRES: &str = "# requires: ";
/// First line of a lock.
const TITLE: &str = "# Packages of a tool, locked by toolplane. Exactly these files are installed.";

/// Names, versions and hashes of all packages that a tool requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedRequirements {
    /// Requirements file for an installer: names, versions and hashes, and nothing else.
    text: String,
    packages: Vec<String>,
}

/// A package in a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedPackage {
    /// `name==version`, maybe with an environment marker.
    pub(super) requirement: String,
    /// SHA-256 of each wheel, in hexadecimal digits.
    pub(super) hashes: Vec<String>,
}

impl LockedRequirements {
    /// Reads a lock, which must belong to these requirements.
    ///
    /// # Errors
    /// If it does not, or if it has anything but names, versions and hashes.
    pub(crate) fn parse(lock: &[u8], requires: &[String]) -> Result<Self, String> {
        let text = std::str::from_utf8(lock).map_err(|_| "they are no UTF-8 text".to_owned())?;
        let stated = text.lines().find_map(|line| line.strip_prefix(REQUIRES));
        let stated: Option<Vec<String>> = stated.and_then(|stated| serde_json::from_str(stated).ok());
        match stated {
            Some(stated) if stated == requires => {}
            Some(stated) => return Err(format!("they were resolved for `{}`", stated.join(", "))),
            None => return Err("they do not state what they were resolved for".to_owned()),
        }
        Self::of(&packages(text)?)
    }

    pub(super) fn of(packages: &[LockedPackage]) -> Result<Self, String> {
        if packages.is_empty() {
            return Err("there are none".to_owned());
        }
        Ok(Self {
            text: lines(packages),
            packages: packages
                .iter()
                .map(|package| package.requirement.clone())
                .collect(),
        })
    }

    /// Returns the requirements file for an installer.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of packages.
    pub(crate) fn len(&self) -> usize {
        self.packages.len()
    }

    /// Returns the SHA-256 of names, versions and hashes.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

/// Returns the text of a lock.
pub(super) fn written(requires: &[String], packages: &[LockedPackage]) -> String {
    let stated = serde_json::json!(requires);
    format!("{TITLE}\n{REQUIRES}{stated}\n{}", lines(packages))
}

fn lines(packages: &[LockedPackage]) -> String {
    let mut text = String::new();
    for package in packages {
        text.push_str(&package.requirement);
        for hash in &package.hashes {
            let _ = write!(text, " \\\n    --hash=sha256:{hash}");
        }
        text.push('\n');
    }
    text
}

/// Reads the packages of a requirements file. Everything but `name==version` with hashes is refused: options, URLs, paths.
pub(super) fn packages(text: &str) -> Result<Vec<LockedPackage>, String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut packages: Vec<_> = lines.map(package).collect::<Result<_, _>>()?;
    packages.sort_by(|a, b| a.requirement.cmp(&b.requirement));
    Ok(packages)
}

fn package(line: &str) -> Result<LockedPackage, String> {
    let shown = line.chars().take(60).collect::<String>();
    let refuse = |reason: &str| Err(format!("`{}` {reason}", shown.escape_debug()));
    let Some((requirement, hashes)) = line.split_once("--hash=") else {
        return refuse("has no hash");
    };
    let requirement = requirement.trim();
    let (pinned, marker) = requirement.split_once(';').unwrap_or((requirement, ""));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-[],".contains(letter);
    let is_version = |letter: char| letter.is_ascii_alphanumeric() || ".+!-_".contains(letter);
    let is_marker = |letter: char| letter.is_ascii_alphanumeric() || " '\"<>=!()_.-,".contains(letter);
    let Some((name, version)) = pinned.trim().split_once("==") else {
        return refuse("does not name one version");
    };
    let starts = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let fits = starts && name.chars().all(is_name) && version.trim().chars().all(is_version);
    if !fits || version.trim().is_empty() || !marker.chars().all(is_marker) {
        return refuse("is no package with a version");
    }
    let hashes: Vec<String> = hashes
        .split_whitespace()
        .map(|hash| {
            let hash = hash.strip_prefix("--hash=").unwrap_or(hash);
            let hash = hash.strip_prefix("sha256:")?;
            let is_digest = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_digest.then(|| hash.to_ascii_lowercase())
        })
        .collect::<Option<_>>()
        .unwrap_or_default();
    if hashes.is_empty() {
        return refuse("has something else than SHA-256 hashes");
    }
    let mut hashes = hashes;
    hashes.sort_unstable();
    hashes.dedup();
    Ok(LockedPackage {
        requirement: requirement.to_owned(),
        hashes,
    })
}

/// Checks one entry of `requires`: a name with extras, versions and a marker. URLs, paths and options are refused.
pub(super) fn check_requirement(requirement: &str) -> Result<(), String> {
    let starts = requirement.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || " ._-[],<>=!~*+;'\"()".contains(letter);
    if starts && requirement.len() <= 200 && requirement.chars().all(is_allowed) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no requirement: write the name of a package, maybe with versions, such as `httpx>=0.28`",
        requirement.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::{LockedRequirements, check_requirement, packages, written};

    const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let text = format!(
            "# by uv\nidna==3.10 \\\n    --hash=sha256:{HASH} \\\n    --hash=sha256:{}\nanyio[x]==4.1 ; python_version < '3.12' \
             --hash=sha256:{HASH}\n",
            HASH.to_uppercase().replace('0', "1")
        );
        let packages = packages(&text).unwrap();
        assert_eq!(packages[0].requirement, "anyio[x]==4.1 ; python_version < '3.12'");
        assert_eq!(packages[1].hashes.len(), 2);
        let requires = ["httpx".to_owned()];
        let lock = written(&requires, &packages);
        let read = LockedRequirements::parse(lock.as_bytes(), &requires).unwrap();
        assert_eq!(read, LockedRequirements::of(&packages).unwrap());
        let drifted = LockedRequirements::parse(lock.as_bytes(), &["requests".to_owned()]).unwrap_err();
        assert!(drifted.contains("resolved for `httpx`"), "{drifted}");
    }

    #[test]
    fn everything_else_is_refused() {
        let hash = format!("--hash=sha256:{HASH}");
        for line in [
            format!("--index-url=http://127.0.0.1/ {hash}"),
            format!("-r other.txt {hash}"),
            format!("x @ http://127.0.0.1/x.whl {hash}"),
            format!("./x-1.0-py3-none-any.whl {hash}"),
            format!("x>=1 {hash}"),
            format!("x==1 {hash} --no-binary=x"),
            format!("x==1; import os {hash} --config-settings=a=b"),
            "x==1".to_owned(),
            "x==1 --hash=md5:abc".to_owned(),
        ] {
            assert!(packages(&line).is_err(), "{line}");
        }
        for good in ["httpx", "httpx>=0.28,<1", "a[b]==1.*; python_version>'3'"] {
            assert!(check_requirement(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-e .",
            "./x",
            "x @ file:///x",
            "git+https://x",
            "--index-url=x",
            "a\nb",
        ] {
            assert!(check_requirement(bad).is_err(), "{bad}");
        }
    }
}
