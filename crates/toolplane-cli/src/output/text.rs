//! Parsing of values from the command line, and formatting of values for people.

use std::{
    borrow::Cow,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use clap::builder::styling::{AnsiColor, Style};
use tool_scan::{escape_line, escape_lines};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const HEADER: Style = Style::new().bold();

/// Width of a table, in columns, if the width of the terminal is unknown.
const UNKNOWN_WIDTH: u16 = 120;

/// Parses a time such as `500ms`, `5s`, `1m` or `2h`; a plain number means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let amount = text[..at].parse::<u64>().ok();
    let time = amount
        .zip(unit)
        .and_then(|(amount, unit)| amount.checked_mul(unit));
    match time {
        Some(0) => Err("the time must be longer than 0".to_owned()),
        None => Err("write a number and its unit, such as `500ms`, `5s` or `1m`".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// Parses the lifetime of something that is stored, in units up to days.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    match toolplane::settings::Period::parse(text) {
        Some(period) if period.0 >= Duration::from_secs(1) => Ok(period.0),
        Some(_) => Err("the time must be at least one second".to_owned()),
        None => Err("write a number and a unit, such as `12h` or `30d`".to_owned()),
    }
}

/// Parses an address to listen on, such as `127.0.0.1:7080`, `localhost:7080` or `:7080`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
    let address = match port {
        Some(port) => port
            .parse()
            .ok()
            .map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| "write an address and a port, such as `127.0.0.1:7080`".to_owned())
}

/// Formats a time for people.
pub(crate) fn time(time: Duration) -> String {
    toolplane::core::format_duration(time).to_string()
}

/// Formats an age for people.
pub(crate) fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Formats a number of things.
pub(crate) fn count(n: usize, thing: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{n} {thing}{ending}")
}

/// Returns the first sentence or line of a text, for a list.
pub(crate) fn first_line(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.find(". ") {
        Some(end) => &line[..=end],
        None => line,
    }
}

/// Returns the number of columns of stdout. `None` if it is no terminal, so that lines are not cut.
pub(crate) fn terminal_width() -> Option<u16> {
    use std::io::IsTerminal;

    let stdout = std::io::stdout();
    stdout.is_terminal().then(|| {
        rustix::termios::tcgetwinsize(&stdout)
            .ok()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
            .unwrap_or(UNKNOWN_WIDTH)
    })
}

/// Escapes untrusted text for one line: hidden characters and line breaks become `\u{202e}`, `\n` and so on.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape_line(text)
}

/// Escapes untrusted text of several lines: hidden characters become `\u{202e}` and so on.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape_lines(text)
}

/// Escapes hidden characters of a text for a terminal, except color sequences. [`line`] and [`lines`] leave no such
/// sequence in untrusted text.
pub(crate) fn terminal(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return escape_lines(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(start);
        shown.push_str(&escape_lines(before));
        let parameters = sequence[2..]
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b';');
        let end = 2 + parameters.count();
        let is_color = sequence.as_bytes().get(end) == Some(&b'm');
        let (sequence, after) = sequence.split_at(if is_color { end + 1 } else { 2 });
        shown.push_str(&if is_color {
            Cow::Borrowed(sequence)
        } else {
            escape_lines(sequence)
        });
        rest = after;
    }
    shown.push_str(&escape_lines(rest));
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("5s", 5_000),
            ("5", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in [
            "",
            "0",
            "0s",
            "s",
            "-1s",
            "5 s",
            "5d",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_loopback_unless_they_say_otherwise() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            (":80", "127.0.0.1:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:80", "0.0.0.0:80"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for text in ["80", "localhost", "example.com:80", ":99999", ""] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn commands_to_the_terminal_are_not_passed_on() {
        assert_eq!(lines("a\nb\tc"), "a\nb\tc");
        assert_eq!(lines("a\r\n\u{1b}[31mred\u{7}"), "a\n\\u{1b}[31mred\\u{7}");
        assert_eq!(line("a\r\nb"), "a\\nb");
        let ours = "\u{1b}[1;31merror\u{1b}[0m: a\u{202e}\nb";
        assert_eq!(terminal(ours), "\u{1b}[1;31merror\u{1b}[0m: a\\u{202e}\nb");
        assert_eq!(
            terminal("\u{1b}[2J\u{1b}]8;;x\u{7}\u{1b}[m"),
            "\\u{1b}[2J\\u{1b}]8;;x\\u{7}\u{1b}[m"
        );
    }

    proptest::proptest! {
        /// No character of an untrusted text that hides, moves or commands reaches a terminal.
        #[test]
        fn no_foreign_text_reaches_a_terminal_raw(text in "(?s)[a-z\\x00-\\x1f\\x7f-\\u{9f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{feff}\u{e0000}-\u{e007f}\\[;m]{0,40}") {
            let is_plain = |c: char| c.is_ascii() && !c.is_ascii_control();
            proptest::prop_assert!(line(&text).chars().all(is_plain));
            proptest::prop_assert!(lines(&text).chars().all(|c| is_plain(c) || c == '\n' || c == '\t'));
            let is_ours = |c: char| is_plain(c) || matches!(c, '\n' | '\t' | '\x1b');
            proptest::prop_assert!(terminal(&text).chars().all(is_ours));
            let failure = crate::error::CliError::failed(text.clone()).with_source(&std::io::Error::other(format!("x{text}")));
            let failure = failure.with_hint(text.clone());
            proptest::prop_assert!(failure.render(false).chars().all(|c| is_plain(c) || c == '\n'));
            proptest::prop_assert!(failure.render(false).lines().count() <= 3);
            proptest::prop_assert!(failure.to_json().chars().all(is_plain));
            let table = crate::output::table::Table::new(false, None).header(["A"]).rows([[text.as_str()]]).to_string();
            proptest::prop_assert!(table.chars().all(|c| is_plain(c) || c == '\n'));
            proptest::prop_assert!(table.lines().count() <= 2);
            let value = raw_json::RawJson::from(serde_json::json!({ text.clone(): [text.clone()] }));
            let yaml = crate::output::yaml::yaml(&value);
            proptest::prop_assert!(yaml.chars().all(|c| is_plain(c) || c == '\n' || c == '\t'), "{yaml:?}");
        }
    }
}
