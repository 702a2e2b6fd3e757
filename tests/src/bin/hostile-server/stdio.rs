//! A server in its own process: lines, a pipe that can fill up, child processes, exits.

use std::{
    io::{self, BufRead as _, Write as _},
    process::{self, Command, Stdio},
    thread,
};

use crate::{
    Notes,
    act::{CHANGED, LOGGED, act},
    protocol::{Era, Message, Wire, answer, is_list_beside, unknown_method},
    sleep,
};

pub(crate) fn serve(era: Era, mode: &str, notes: &Notes) -> io::Result<()> {
    notes.note("start")?;
    if mode == "exits-at-once" {
        writeln!(io::stderr(), "no license found")?;
        end(3);
    }
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Message>(&line?) else {
            continue;
        };
        notes.note(message.note())?;
        if let (Some(id), Some(method)) = (&message.id, &message.method) {
            request(era, mode, (id.get(), method), &message, notes)?;
        }
    }
    if mode == "ignores-the-end" {
        sleep();
    }
    Ok(())
}

fn request(
    era: Era,
    mode: &str,
    (id, method): (&str, &str),
    message: &Message,
    notes: &Notes,
) -> io::Result<()> {
    if message.is_act() {
        return misbehave(era, mode, id, notes);
    }
    if mode == "never-opens" {
        sleep();
    }
    if mode == "beside-silence" && is_list_beside(method) {
        return Ok(());
    }
    if method == "subscriptions/listen" && era == Era::Modern {
        return Lines.say(Era::acknowledgement(id));
    }
    match era.result(mode, message) {
        Some(result) => Lines.say(answer(id, &result))?,
        None => return Lines.say(unknown_method(id)),
    }
    match (method, mode) {
        // Later messages stay in the pipe.
        ("tools/list", "deaf") => sleep(),
        ("tools/list", "never-quiet") => {
            thread::spawn(flood);
        }
        _ => {}
    }
    Ok(())
}

fn misbehave(era: Era, mode: &str, id: &str, notes: &Notes) -> io::Result<()> {
    match mode {
        "exits-mid-call" => {
            writeln!(io::stderr(), "out of cheese")?;
            end(7)
        }
        "exits-mid-answer" => {
            write(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"conte"#).as_bytes())?;
            end(0)
        }
        "leaves-a-child" => {
            Command::new(std::env::current_exe()?)
                .args(["sleeps", &notes.0])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
        }
        "floods-stderr" => {
            let block = "noise ".repeat(200) + "\n";
            for _ in 0..50_000 {
                io::stderr().write_all(block.as_bytes())?;
            }
        }
        _ => {}
    }
    act(&mut Lines, era, mode, id)
}

/// Sends change notifications without end, until the client closes the pipe.
fn flood() -> io::Result<()> {
    let block = format!("{CHANGED}\n{LOGGED}\n").repeat(100);
    loop {
        write(block.as_bytes())?;
    }
}

struct Lines;

impl Wire for Lines {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        write(bytes)
    }

    fn end(&mut self) -> io::Result<()> {
        write(b"\n")
    }

    fn say(&mut self, message: impl AsRef<[u8]>) -> io::Result<()> {
        write(&[message.as_ref(), b"\n"].concat())
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

#[expect(clippy::exit, reason = "a server that ends in the middle is what is tested")]
fn end(status: i32) -> ! {
    process::exit(status)
}
