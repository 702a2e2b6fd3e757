use std::{borrow::Cow, collections::BTreeMap, path::MAIN_SEPARATOR};

use tool_core::Template;

use crate::{clients::workspace::Surroundings, document::suggest};

/// Syntax of variables in the texts of a client's file. Translated texts are in the syntax of [`Template`].
#[derive(Debug, Clone)]
pub(crate) enum Variables {
    /// `${NAME}`, `${env:NAME}`, and the variables of editors such as `${workspaceFolder}` and `${input:ID}`: VS Code, Cursor and
    /// most others.
    Editor(EditorVariables),
    /// `$NAME` and `${NAME}` of Gemini CLI.
    Shell,
    /// `$NAME` and `${NAME}` of these names only, with their values in the syntax of [`Template`]: Goose.
    Named(BTreeMap<String, String>),
    /// `{env:NAME}` and `{file:PATH}` of OpenCode. Relative paths begin in this directory, and `~` is that home directory.
    Braces {
        /// Directory of the file.
        directory: String,
        /// Home directory of the user.
        home: Option<String>,
    },
    /// `${{ secrets.NAME }}` of Continue.
    DoubleBraces,
    /// None: Codex and Zed.
    None,
}

/// Values of the variables of editors.
#[derive(Debug, Clone, Default)]
pub(crate) struct EditorVariables {
    /// Absolute path of the workspace; `None` if the file belongs to no workspace.
    pub(crate) workspace: Option<String>,
    /// Default values of inputs, by their identifiers.
    pub(crate) inputs: BTreeMap<String, Option<String>>,
    /// `true` if `${NAME}` is literal, and only `${env:NAME}` names a variable: Cline and Roo Code.
    pub(crate) is_prefixed: bool,
    /// `true` if `${file:PATH}` is the content of a file: Windsurf.
    pub(crate) has_files: bool,
}

/// Variables that have a value in a running editor only.
const OF_RUNNING_EDITORS: [&str; 15] = [
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileDirnameBasename",
    "fileExtname",
    "fileWorkspaceFolder",
    "relativeFile",
    "relativeFileDirname",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "defaultBuildTask",
    "cwd",
];

impl Variables {
    /// Translates a text into the syntax of [`Template`].
    ///
    /// # Errors
    /// If a variable has no value here: the reason.
    pub(crate) fn translate<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, String> {
        let marker = if matches!(self, Self::Braces { .. }) {
            "{"
        } else {
            "$"
        };
        if !text.contains(marker) && !text.contains('$') {
            return Ok(Cow::Borrowed(text));
        }
        let translated = match self {
            Self::Editor(editor) => replace(text, "${", "}", |name| editor.value(name).map(Some), escape)?,
            Self::Shell => shell(text, |name| Some(format!("${{{name}}}"))),
            Self::Named(values) => shell(text, |name| values.get(name).cloned()),
            Self::Braces { directory, home } => replace(
                text,
                "{",
                "}",
                |name| Ok(braces(name, directory, home.as_deref())),
                escape,
            )?,
            Self::DoubleBraces => replace(text, "${{", "}}", double_braces, escape)?,
            Self::None => escape(text),
        };
        Ok(Cow::Owned(translated))
    }
}

impl EditorVariables {
    /// Returns the translation of `${name}`: a reference, or the text itself if it is none.
    fn value(&self, name: &str) -> Result<String, String> {
        let workspace = || {
            let workspace = self.workspace.as_deref();
            workspace.ok_or_else(|| {
                format!(
                    "`${{{name}}}` has no value: this file belongs to no workspace; write an absolute path"
                )
            })
        };
        Ok(match name {
            "workspaceFolder" | "workspaceRoot" => escape(workspace()?),
            "workspaceFolderBasename" => {
                let workspace = workspace()?;
                escape(workspace.rsplit(MAIN_SEPARATOR).next().unwrap_or_default())
            }
            "userHome" => "${HOME}".to_owned(),
            "pathSeparator" | "/" => MAIN_SEPARATOR.to_string(),
            _ => match name.split_once(':') {
                Some(("input", id)) => self.input(id)?,
                Some(("command" | "config" | "extensionInstallFolder" | "workspaceFolder", _)) => {
                    return Err(only_in_editor(name));
                }
                _ if OF_RUNNING_EDITORS.contains(&name) => return Err(only_in_editor(name)),
                Some(("file", _)) if self.has_files => format!("${{{name}}}"),
                Some(_) if name_of_reference(name).is_some_and(|prefixed| prefixed || !self.is_prefixed) => {
                    format!("${{{name}}}")
                }
                None if is_variable(name) && !self.is_prefixed => format!("${{{name}}}"),
                _ => escape(&format!("${{{name}}}")),
            },
        })
    }

    /// Returns the reference to the secret that stands for an input.
    fn input(&self, id: &str) -> Result<String, String> {
        let reference = match self.inputs.get(id) {
            Some(Some(default)) if !default.contains('}') => format!("${{secret:{id}:-{default}}}"),
            _ => format!("${{secret:{id}:?is asked for by the editor; give it below `secrets`}}"),
        };
        match Template::parse(&reference) {
            Ok(_) => Ok(reference),
            Err(_) => Err(format!(
                "the input `{}` has no counterpart: its identifier is no name of a secret",
                suggest::shown(id)
            )),
        }
    }
}

/// Recognizes `env:NAME` and `NAME`, with or without `:-DEFAULT`: returns `true` for the first. Everything else, such as the sources of
/// secrets in our own files, is literal for clients.
fn name_of_reference(name: &str) -> Option<bool> {
    let bare = name.split_once(":-").map_or(name, |(bare, _)| bare);
    match bare.strip_prefix("env:") {
        Some(variable) => is_variable(variable).then_some(true),
        None => is_variable(bare).then_some(false),
    }
}

fn only_in_editor(name: &str) -> String {
    format!(
        "`${{{}}}` has a value in a running editor only",
        suggest::shown(name)
    )
}

/// Writes a text so that a template takes it literally.
pub(crate) fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// Replaces each `open NAME close`. `value` returns `None` for what stays as it is; `between` writes everything else.
fn replace(
    text: &str,
    open: &str,
    close: &str,
    mut value: impl FnMut(&str) -> Result<Option<String>, String>,
    between: impl Fn(&str) -> String,
) -> Result<String, String> {
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    // The end of what stays as it is, in `rest`.
    let mut kept = 0;
    while let Some(start) = rest[kept..].find(open).map(|start| kept + start) {
        let inside = &rest[start + open.len()..];
        let Some(length) = inside.find(close) else { break };
        let end = start + open.len() + length + close.len();
        match value(&inside[..length])? {
            Some(value) => {
                translated.push_str(&between(&rest[..start]));
                translated.push_str(&value);
                rest = &rest[end..];
                kept = 0;
            }
            None => kept = start + open.len(),
        }
    }
    translated.push_str(&between(rest));
    Ok(translated)
}

/// Replaces `$NAME` and `${NAME}` for the names that have a value. All else is literal.
fn shell(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        translated.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let (name, after) = match rest.strip_prefix('{') {
            Some(inside) => match inside.split_once('}') {
                Some((name, after)) => (name.trim(), after),
                None => ("", rest),
            },
            None => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
            }
        };
        let (bare, default) = match name.split_once(":-") {
            Some((bare, default)) => (bare, Some(default)),
            None => (name, None),
        };
        let found = is_variable(bare).then(|| value(bare)).flatten();
        match (found, default) {
            (Some(found), None) => translated.push_str(&found),
            (Some(_), Some(default)) => translated.push_str(&format!("${{{bare}:-{default}}}")),
            (None, _) => {
                translated.push_str("$$");
                continue;
            }
        }
        rest = after;
    }
    translated.push_str(rest);
    translated
}

/// Returns `true` for a name of an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn braces(name: &str, directory: &str, home: Option<&str>) -> Option<String> {
    match name.split_once(':')? {
        ("env", name) if is_variable(name.trim()) => Some(format!("${{{}}}", name.trim())),
        ("file", path) => {
            let path = path.trim();
            let path = match (path.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => format!("{home}/{rest}"),
                _ if path.starts_with('/') || directory.is_empty() => path.to_owned(),
                _ => format!("{directory}/{}", path.trim_start_matches("./")),
            };
            Some(format!("${{file:{path}}}"))
        }
        _ => None,
    }
}

fn double_braces(name: &str) -> Result<Option<String>, String> {
    match name.trim().split_once('.') {
        Some(("secrets" | "env", name)) if is_variable(name) => Ok(Some(format!("${{{name}}}"))),
        _ => Err(format!(
            "`${{{{{}}}}}` has a value in the client only",
            suggest::shown(name)
        )),
    }
}

/// Returns the name in a `$NAME` without braces that looks like a variable, if there is one.
pub(crate) fn bare_variable(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        rest = &rest[start + 1..];
        if let Some(escaped) = rest.strip_prefix('$') {
            rest = escaped;
            continue;
        }
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.len() > 2 && name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Some(name);
        }
    }
    None
}

/// Creates the variables of editors for the files of a workspace.
pub(crate) fn editor(workspace: Option<&std::path::Path>) -> EditorVariables {
    EditorVariables {
        workspace: workspace.map(|path| path.to_string_lossy().into_owned()),
        ..EditorVariables::default()
    }
}

/// Creates the variables of OpenCode.
pub(crate) fn braces_of(directory: &std::path::Path, surroundings: &Surroundings) -> Variables {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Variables::Braces {
        directory: text(&surroundings.absolute(directory)),
        home: surroundings.home.as_deref().map(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &Variables, cases: &[(&str, Result<&str, &str>)]) {
        for (text, expected) in cases {
            let translated = variables.translate(text);
            match expected {
                Ok(expected) => assert_eq!(translated.as_deref(), Ok(*expected), "{text}"),
                Err(part) => {
                    let reason = translated.expect_err(text);
                    assert!(reason.contains(part), "{text}: {reason}");
                }
            }
        }
    }

    #[test]
    fn variables_of_editors() {
        let mut variables = editor(Some(std::path::Path::new("/src/a$b")));
        variables.inputs.insert("key".to_owned(), None);
        variables.inputs.insert("org".to_owned(), Some("acme".to_owned()));
        let cases = [
            ("plain", Ok("plain")),
            ("${workspaceFolder}/.env", Ok("/src/a$$b/.env")),
            ("${workspaceFolderBasename}", Ok("a$$b")),
            ("${userHome}${/}x${pathSeparator}y", Ok("${HOME}/x/y")),
            ("${env:A} ${B:-c} $$5", Ok("${env:A} ${B:-c} $$$$5")),
            ("${X%.*} $X ${}", Ok("$${X%.*} $$X $${}")),
            ("${secret:a}${file:/b}", Ok("$${secret:a}$${file:/b}")),
            ("${A:?b} ${A:+b} ${env:A:-b}", Ok("$${A:?b} $${A:+b} ${env:A:-b}")),
            ("${input:org}", Ok("${secret:org:-acme}")),
            (
                "Bearer ${input:key}",
                Ok("Bearer ${secret:key:?is asked for by the editor; give it below `secrets`}"),
            ),
            ("${input:no name}", Err("no name of a secret")),
            ("${file}", Err("running editor")),
            ("${command:a.b}", Err("running editor")),
            ("${workspaceFolder:api}", Err("running editor")),
            ("${unclosed", Ok("$${unclosed")),
        ];
        check(&Variables::Editor(variables.clone()), &cases);
        variables.is_prefixed = true;
        variables.has_files = true;
        let cases = [
            ("${env:A} ${A} ${userHome}", Ok("${env:A} $${A} ${HOME}")),
            ("${A:-b} ${file:/b}", Ok("$${A:-b} ${file:/b}")),
        ];
        check(&Variables::Editor(variables), &cases);
        let nowhere = Variables::Editor(EditorVariables::default());
        check(
            &nowhere,
            &[("${workspaceFolder}", Err("belongs to no workspace"))],
        );
    }

    #[test]
    fn variables_of_other_clients() {
        let cases = [
            ("$A_1-${B}", Ok("${A_1}-${B}")),
            ("${B:-x}", Ok("${B:-x}")),
            ("5$ $5 $$A", Ok("5$$ $$5 $$${A}")),
            ("${", Ok("$${")),
        ];
        check(&Variables::Shell, &cases);
        let values = [
            ("A".to_owned(), "${A}".to_owned()),
            ("B".to_owned(), "b".to_owned()),
        ];
        let cases = [("$A ${B} ${ B } $C", Ok("${A} b b $$C"))];
        check(&Variables::Named(values.into()), &cases);
        let braces = Variables::Braces {
            directory: "/cfg".to_owned(),
            home: Some("/users/ada".to_owned()),
        };
        let cases = [
            ("Bearer {env:A}", Ok("Bearer ${A}")),
            (
                "{file:./a.txt}{file:~/b}",
                Ok("${file:/cfg/a.txt}${file:/users/ada/b}"),
            ),
            ("{\"a\": {env:A}} $X", Ok("{\"a\": ${A}} $$X")),
        ];
        check(&braces, &cases);
        let cases = [
            ("a ${{ secrets.KEY }} $b", Ok("a ${KEY} $$b")),
            ("${{ inputs.KEY }}", Err("in the client only")),
        ];
        check(&Variables::DoubleBraces, &cases);
        check(&Variables::None, &[("${A}", Ok("$${A}"))]);
    }

    #[test]
    fn names_without_braces() {
        for (text, name) in [
            ("Bearer $API_TOKEN", Some("API_TOKEN")),
            ("${API_TOKEN}", None),
            ("$$API_TOKEN", None),
            ("pa$$word", None),
            ("costs $5", None),
        ] {
            assert_eq!(bare_variable(text), name, "{text}");
        }
    }
}
