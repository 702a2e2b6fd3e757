//! First program of a sandbox that reaches hosts: it makes the listener of the proxy in the sandbox's network namespace.
//!
//! A socket belongs to the namespace in which it was made. Only root can have a thread enter a namespace, so a process in
//! the sandbox makes the listener, this process takes a copy of the descriptor, and the sandboxed one becomes the program
//! without it. The interpreter is one of those that a system has anyway.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener as StdListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

use crate::linux::descriptors::pipe as new_pipe;

/// Port of the proxy on the loopback address of the sandbox.
pub(super) const PORT: u16 = 3128;

const PERL: &str = r#"open(my $r, ">&=", shift) or die $!; open(my $g, "<&=", shift) or die $!;
socket(my $s, 2, 1, 6) or die $!; bind($s, pack("S n C4 x8", 2, 3128, 127, 0, 0, 1)) or die $!; listen($s, 64) or die $!;
syswrite($r, fileno($s)); close $r; sysread($g, my $x, 1) or die "no proxy"; close $g; close $s; exec { $ARGV[0] } @ARGV;"#;

const PYTHON: &str = r#"import os, socket, sys
s = socket.create_server(("127.0.0.1", 3128)); r, g = int(sys.argv[1]), int(sys.argv[2])
os.write(r, str(s.fileno()).encode()); os.close(r)
if not os.read(g, 1): sys.exit("no proxy")
os.close(g); s.close(); os.execv(sys.argv[3], sys.argv[3:])"#;

/// Returns the command line of an interpreter, up to the arguments of the program.
fn interpreter() -> Option<[&'static str; 3]> {
    [["/usr/bin/perl", "-e", PERL], ["/usr/bin/python3", "-Ic", PYTHON]]
        .into_iter()
        .find(|[program, ..]| Path::new(program).is_file())
}

/// Ends of the pipes to the first program.
#[derive(Debug)]
pub(super) struct Prelude {
    ready: OwnedFd,
    go: OwnedFd,
}

impl Prelude {
    /// Creates the pipes. Returns the command line as well, to which that of the program is added, and the descriptors
    /// that it inherits.
    pub(super) fn new() -> io::Result<(Self, Vec<String>, [OwnedFd; 2])> {
        let interpreter = interpreter()
            .ok_or_else(|| io::Error::other("access to hosts needs `/usr/bin/perl` or `/usr/bin/python3`"))?;
        let (ready, ready_writer) = new_pipe()?;
        let (go_reader, go) = new_pipe()?;
        let mut arguments = interpreter.map(str::to_owned).to_vec();
        arguments.extend([&ready_writer, &go_reader].map(|end| end.as_raw_fd().to_string()));
        Ok((Self { ready, go }, arguments, [ready_writer, go_reader]))
    }

    /// Takes the listener from the only child of the first process of the namespace, then starts the program.
    pub(super) async fn listener(self, init: Pid) -> io::Result<TcpListener> {
        let mut number = String::new();
        pipe::Receiver::from_owned_fd(self.ready)?
            .read_to_string(&mut number)
            .await?;
        let number: i32 = number
            .parse()
            .map_err(|_| io::Error::other("the sandbox has no listener for its proxy"))?;
        let init = init.as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{init}/task/{init}/children"))?;
        let child = children
            .split_whitespace()
            .next()
            .and_then(|child| child.parse().ok());
        let child = child.and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        let process = pidfd_open(child, PidfdFlags::empty())?;
        let listener = StdListener::from(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        fs::File::from(self.go).write_all(b"1")?;
        Ok(listener)
    }
}
