//! Texts: how values are read from the command line and shown to people.

pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod yaml;

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use clap::builder::styling::{AnsiColor, Style};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const HEADER: Style = Style::new().bold();

/// How wide a table may be where nothing says how wide the terminal is.
const UNKNOWN_WIDTH: u16 = 120;

/// Reads a time such as `500ms`, `5s`, `1m` or `2h`; a plain number means seconds.
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
        Some(0) | None => Err("write a number and its unit, such as `500ms`, `5s` or `1m`".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// Reads an address to listen on, such as `127.0.0.1:7080`, `localhost:7080` or `:7080`.
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

/// A time as people read it.
pub(crate) fn time(time: Duration) -> String {
    match time.as_micros() {
        0..1_000 => format!("{} µs", time.as_micros()),
        1_000..10_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{} ms", time.as_millis()),
        1_000_000..10_000_000 if time.subsec_millis() > 0 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} s", time.as_secs()),
    }
}

/// How long ago something was, as people read it.
pub(crate) fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// A number of things.
pub(crate) fn count(n: usize, thing: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{n} {thing}{ending}")
}

/// The first sentence or line of a text, as a list shows it.
pub(crate) fn first_line(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.find(". ") {
        Some(end) => &line[..=end],
        None => line,
    }
}

/// How many columns stdout has; nothing if it is no terminal, whose reader cuts lines itself.
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

/// A text without what a terminal would take for commands: what a server wrote is shown, never obeyed.
pub(crate) fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    let harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(harmless) {
        return text.into();
    }
    let shown = text
        .chars()
        .filter(|c| *c != '\r')
        .map(|c| if harmless(c) { c } else { '\u{fffd}' });
    shown.collect::<String>().into()
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
        assert_eq!(printable("a\nb\tc"), "a\nb\tc");
        assert_eq!(printable("a\r\n\u{1b}[31mred\u{7}"), "a\n\u{fffd}[31mred\u{fffd}");
    }
}
