//! An HTTP API for the programs that call one: `GET /v1/weather/{city}?days={days}`. The first request is refused with
//! 503, as if the service had just started.

use std::{
    io::{BufRead, BufReader, Result, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
const FORECAST: &str = r#"{"forecast": [{"temperature": 21.50}, {"temperature": 19}]}"#;

/// Starts the API and prints every request with its key.
pub fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        let mut refusals = [REFUSAL.to_owned()].into_iter();
        for stream in listener.incoming().flatten() {
            // A client that leaves is none of its concern.
            let _ = answer(&stream, &mut refusals);
        }
    });
    Ok(address)
}

fn answer(mut stream: &TcpStream, refusals: &mut impl Iterator<Item = String>) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next().transpose()? {
        let mut key = String::new();
        for line in lines.by_ref() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if line.to_ascii_lowercase().starts_with("authorization:") {
                key = line["authorization:".len()..].trim().to_owned();
            }
        }
        println!("{request} ({key})");
        let forecast = || {
            let length = FORECAST.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{FORECAST}"
            )
        };
        let response = refusals.next().unwrap_or_else(forecast);
        stream.write_all(response.as_bytes())?;
    }
    Ok(())
}
