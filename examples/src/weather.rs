//! An HTTP API for the programs that call one: `GET /v1/weather/{city}?days={days}`.

use std::{
    io::{BufRead, BufReader, Result, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const FORECAST: &str = r#"{"forecast": [{"temperature": 21.50}, {"temperature": 19}]}"#;

/// Starts the API. It prints every request with its credential, and refuses the first one with 503, as a service does that
/// has just been started.
///
/// # Errors
/// If no port is free.
pub fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        let mut is_first = true;
        for stream in listener.incoming().flatten() {
            // A client that leaves early is no failure.
            let _ = answer(&stream, &mut is_first);
        }
    });
    Ok(address)
}

fn answer(mut stream: &TcpStream, is_first: &mut bool) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next().transpose()? {
        let mut credential = String::new();
        for line in lines.by_ref() {
            match line?.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    value.clone_into(&mut credential);
                }
                Some(_) => {}
                None => break,
            }
        }
        print(&format!("{request}, {credential}"));
        if std::mem::take(is_first) {
            stream.write_all(REFUSAL.as_bytes())?;
        } else {
            write!(
                stream,
                "{HEAD}content-length: {}\r\n\r\n{FORECAST}",
                FORECAST.len()
            )?;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn print(line: &str) {
    println!("{line}");
}
