//! An MCP server with scripted misbehavior. It has two tools: `act` misbehaves, `echo` answers with its arguments.
//!
//! ```text
//! toolplane-hostile-server stdio ERA MODE [NOTES]
//! toolplane-hostile-server http [NOTES]
//! ```
//!
//! Over HTTP one process plays every server: `/ERA/FORM/MODE` is one that answers in `FORM`, `json` or `events`. It
//! prints its address as the first line. The file `NOTES` records every start, every notification, every request but
//! `echo` and every answer of the client.

mod act;
mod http;
mod protocol;
mod stdio;

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    process, thread,
    time::Duration,
};

use self::protocol::Era;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().unwrap_or_default();
    match next().as_str() {
        "sleeps" => {
            Notes(next()).note(&format!("child {}", process::id()))?;
            sleep();
        }
        "http" => http::serve(&Notes(next())),
        _ => {
            let (era, mode) = (Era::parse(&next()), next());
            stdio::serve(era, &mode, &Notes(next()))
        }
    }
}

/// File that records events; none if its name is empty.
#[derive(Clone)]
struct Notes(String);

impl Notes {
    fn note(&self, what: &str) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        // One write, so that lines of several threads do not mix.
        let line = format!("{what}\n");
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(line.as_bytes())
    }
}

fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
