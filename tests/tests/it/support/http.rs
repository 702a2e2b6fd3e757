use std::{
    io::{self, BufRead, BufReader, Read, Write as _},
    net::{SocketAddr, TcpStream},
};

use super::time::LIMIT;

/// A response with its complete body.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A response whose body is still to be read, by its framing.
pub(crate) struct Incoming<R> {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: R,
    framing: Framing,
}

#[derive(Clone, Copy)]
enum Framing {
    /// Remaining bytes of the body, or of the current chunk.
    Length(usize),
    Chunk(usize),
    UntilTheEnd,
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|(key, _)| key == name);
    header.map(|(_, value)| value.as_str())
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

impl<R: BufRead> Incoming<R> {
    /// Reads the head.
    fn begin(mut reader: R) -> Self {
        let status = line(&mut reader).split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader);
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let framing = if header(&headers, "transfer-encoding") == Some("chunked") {
            Framing::Chunk(0)
        } else if status == 204 {
            // Without a body it needs no length.
            Framing::Length(0)
        } else if let Some(length) = header(&headers, "content-length") {
            Framing::Length(length.parse().unwrap())
        } else {
            Framing::UntilTheEnd
        };
        Self {
            status,
            headers,
            reader,
            framing,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Returns `true` if the body is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Reads the whole body.
    fn end(mut self) -> Response {
        let mut body = String::new();
        self.read_to_string(&mut body).unwrap();
        Response {
            status: self.status,
            headers: self.headers,
            body,
        }
    }
}

impl<R: BufRead> Read for Incoming<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = match &mut self.framing {
            Framing::UntilTheEnd => return self.reader.read(buffer),
            Framing::Length(0) => return Ok(0),
            Framing::Length(left) => left,
            Framing::Chunk(left) => {
                if *left == 0 {
                    let size = read_line(&mut self.reader)?;
                    *left = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
                    if *left == 0 {
                        assert_eq!(line(&mut self.reader), "", "a body has an end");
                        self.framing = Framing::Length(0);
                        return Ok(0);
                    }
                }
                left
            }
        };
        let most = buffer.len().min(*left);
        let length = self.reader.read(&mut buffer[..most])?;
        if length == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= length;
        if matches!(self.framing, Framing::Chunk(0)) {
            assert_eq!(line(&mut self.reader), "", "a chunk has an end");
        }
        Ok(length)
    }
}

/// Opens a connection with timeouts.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Sends a request and begins to read the response.
pub(crate) fn begin(address: SocketAddr, request: impl AsRef<[u8]>) -> Incoming<BufReader<TcpStream>> {
    let mut stream = connect(address);
    stream.write_all(request.as_ref()).unwrap();
    Incoming::begin(BufReader::new(stream))
}

/// Sends a request and reads the response by its framing: not every server closes the connection when asked to.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    begin(address, request).end()
}

/// Reads one response.
pub(crate) fn receive(reader: &mut impl BufRead) -> Response {
    Incoming::begin(reader).end()
}

fn line(reader: &mut impl BufRead) -> String {
    read_line(reader).unwrap()
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(line.to_owned())
}
