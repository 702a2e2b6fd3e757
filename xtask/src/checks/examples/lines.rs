//! Length of programs, as a reader sees it.

/// Counts the lines of a program or of its data that are neither blank nor comments. Lints of the crate, such as
/// `#![expect(..)]`, are rules of a repository and no part of a program.
pub(super) fn count_lines(text: &str) -> usize {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .filter(|line| !["//", "#![", "# "].iter().any(|start| line.starts_with(start)))
        .count()
}

#[cfg(test)]
mod tests {
    use super::count_lines;

    #[test]
    fn only_code_counts() {
        let program = r#"
//! A program.

#![expect(clippy::print_stdout, reason = "it prints")]

#[tokio::main]
async fn main() {
    // ANCHOR: print
    println!("// not a comment"); // a comment

    // ANCHOR_END: print
}
"#;
        assert_eq!(count_lines(program), 4);
        assert_eq!(count_lines("# A comment.\ntools:\n  greet: {}\n"), 2);
    }
}
