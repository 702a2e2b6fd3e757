//! Echo server over stdio: one thread, which writes when there is nothing left to read.

use std::io::{BufRead, BufReader, BufWriter, Write, stdin, stdout};

use anyhow::Result;

use crate::echo::{Era, answer};

const BUFFER: usize = 256 * 1024;

/// Answers until the input ends.
pub fn serve() -> Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, stdin().lock());
    let mut output = BufWriter::with_capacity(BUFFER, stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(reply) = answer(&line, Era::Legacy) {
            output.write_all(reply.as_bytes())?;
            output.write_all(b"\n")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}
