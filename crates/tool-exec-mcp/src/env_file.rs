//! Files with environment variables, in the form of dotenv as editors read it: no references, unlike in a shell.

/// Returns the variables of a file, in their order. Lines that are none are left out.
///
/// A line is `NAME=value`, with or without `export` before it. A value in `'`, `"` or a backtick may have several lines; within `"`,
/// `\n` and `\r` stand for line breaks. Any other value ends at `#` or the end of its line, without spaces around it.
///
/// Source: the grammar of the package `dotenv` for Node.js, which VS Code and Node.js use as well.
pub(crate) fn parse(text: &str) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        match variable(rest) {
            Some((name, value, after)) => {
                variables.push((name.to_owned(), value));
                rest = after;
            }
            None => rest = after_line(rest),
        }
    }
    variables
}

/// Reads a variable. Returns its name, its value and the text after its line.
fn variable(text: &str) -> Option<(&str, String, &str)> {
    let line = text.trim_start();
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        _ => line,
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let end = line.find(|c| !is_part(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix('=')?;
    if name.is_empty() {
        return None;
    }
    let value = value.trim_start_matches([' ', '\t']);
    let quoted = value.chars().next().filter(|quote| "'\"`".contains(*quote));
    if let Some(quote) = quoted
        && let Some((inside, after)) = value[1..].split_once(quote)
    {
        let inside = match quote {
            '"' => inside.replace("\\n", "\n").replace("\\r", "\r"),
            _ => inside.to_owned(),
        };
        return Some((name, inside, after_line(after)));
    }
    let line = value.split(['\n', '\r']).next().unwrap_or_default();
    let written = line.split('#').next().unwrap_or_default();
    Some((name, written.trim().to_owned(), after_line(value)))
}

/// Returns the text after the first line.
fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        io::Write,
        process::{Command, Stdio},
    };

    use proptest::{
        prelude::*,
        strategy::{Strategy, ValueTree},
        test_runner::TestRunner,
    };
    use tool_core::serde_json;
    use tool_testkit::Peers;

    use super::*;

    #[test]
    fn the_forms_of_a_variable() {
        let text = "\
# A comment
A=1
export B = two words # and a comment
C='single $A \\n'
D=\"double\\nline\"  # a comment
E=`it's \"so\"`
F=\"two
lines\"
G=
no variable
H=pa$$word
I=\"open
J.k-l=last";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "single $A \\n"),
            ("D", "double\nline"),
            ("E", "it's \"so\""),
            ("F", "two\nlines"),
            ("G", ""),
            ("H", "pa$$word"),
            ("I", "\"open"),
            ("J.k-l", "last"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), expected);
        assert_eq!(parse("A=1\r\nB='2'\r\n").len(), 2);
        assert_eq!(parse(""), []);
    }

    /// Lines of a file, well formed ones and others.
    fn lines() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            "[a-z$ =:]{0,6}",
            "[a-z]{0,3} ?#[a-z]{0,3}",
            "'[a-z\"# \\n]{0,5}'",
            "\"[a-z'# ]{0,5}(\\\\n)?\"",
            "`[a-z'\"#]{0,5}`",
        ];
        let line = prop_oneof![
            4 => ("(export )?[A-Z_][A-Z0-9_]{0,3}", " ?= ?", value, "( #[a-z]{0,3})?")
                .prop_map(|(name, equals, value, comment)| match value.trim() {
                    // Without a value, Node.js keeps `export ` in the name, and behind spaces it takes the next line.
                    "" => format!("{}=", name.trim_start_matches("export ")),
                    _ => format!("{name}{equals}{value}{comment}"),
                }),
            1 => "#[a-z ='\"]{0,6}",
            1 => Just(String::new()),
        ];
        prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
    }

    /// Tests that files mean what they mean to Node.js.
    #[test]
    fn agrees_with_node() {
        let node = match Peers::from_env() {
            Ok(peers) => peers.node(),
            Err(skip) => return skip.report(),
        };
        let mut runner = TestRunner::deterministic();
        let files: Vec<String> = (0..400)
            .map(|_| lines().new_tree(&mut runner).unwrap().current())
            .collect();
        let script = "const files = JSON.parse(require('fs').readFileSync(0, 'utf8'));\
                      console.log(JSON.stringify(files.map(file => ({...require('util').parseEnv(file)}))));";
        let mut child = Command::new(node)
            .args(["-e", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = serde_json::to_vec(&files).unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        let output = child.wait_with_output().unwrap();
        let theirs: Vec<BTreeMap<String, String>> = serde_json::from_slice(&output.stdout).unwrap();
        for (file, theirs) in files.iter().zip(theirs) {
            let ours: BTreeMap<String, String> = parse(file).into_iter().collect();
            assert_eq!(ours, theirs, "{file:?}");
        }
    }
}
