//! Comma-separated values.

use std::borrow::Cow;

use super::text;

/// Returns rows below a header as comma-separated values (RFC 4180). Each row takes one line: hidden characters and line breaks of
/// untrusted text are escaped.
pub(crate) fn csv(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut written = String::new();
    let mut write = |cells: Vec<Cow<'_, str>>| {
        for (index, cell) in cells.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            written.push_str(comma);
            written.push_str(&quoted(cell));
        }
        written.push_str("\r\n");
    };
    write(header.iter().map(|name| Cow::Borrowed(*name)).collect());
    for row in rows {
        write(row.iter().map(|cell| text::line(cell)).collect());
    }
    written
}

/// Quotes a value if it has a character that separates values.
fn quoted(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")).into(),
        false => cell.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_read_by_another_implementation(
            rows in prop::collection::vec(prop::collection::vec("[a-z,\"\r\n é\u{202e}]{0,6}", 3), 0..6),
        ) {
            let written = csv(&["a", "b", "c"], rows.iter().cloned());
            let mut reader = csv::Reader::from_reader(written.as_bytes());
            prop_assert_eq!(reader.headers().expect("a header"), vec!["a", "b", "c"]);
            let read: Vec<Vec<String>> = reader
                .records()
                .map(|record| record.expect("a row").iter().map(str::to_owned).collect())
                .collect();
            let lines = |row: &Vec<String>| row.iter().map(|cell| text::line(cell).into_owned()).collect();
            let expected: Vec<Vec<String>> = rows.iter().map(lines).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
