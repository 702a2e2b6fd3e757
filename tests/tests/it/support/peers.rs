use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
};

use tempfile::TempDir;
use tool_testkit::{PeerCommand, Peers, Skip};

use super::{process::Process, time::eventually};

/// Script that the server loads first: it fixes the time of day, and shortens the stages of its task from a second to a
/// moment.
const TIME: &str = "Date.prototype.toLocaleTimeString = () => '4:05:06 PM';
const wait = globalThis.setTimeout;
globalThis.setTimeout = (work, delay, ...rest) => wait(work, delay === 1000 ? 10 : delay, ...rest);
";

/// Finds a peer; a missing one is reported.
pub(crate) fn installed<T>(find: impl FnOnce(&Peers) -> Result<T, Skip>) -> Option<T> {
    match Peers::from_env().and_then(|peers| find(&peers)) {
        Ok(found) => Some(found),
        Err(skip) => {
            skip.report();
            None
        }
    }
}

/// Returns `server-everything` with results that do not depend on the time.
pub(crate) fn everything_at_no_time(transport: &str) -> Option<(PeerCommand, TempDir)> {
    let mut peer = installed(|peers| peers.everything(transport))?;
    let folder = tempfile::tempdir().unwrap();
    let time = folder.path().join("time.cjs");
    fs::write(&time, TIME).unwrap();
    peer.args.splice(..0, ["--require".into(), time.into()]);
    Some((peer, folder))
}

/// Starts a server that listens on `PORT`, a port that was free a moment ago.
pub(crate) fn listening_peer(command: &PeerCommand) -> (Process, SocketAddr) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut server = command.to_command();
        let mut process = Process::run(server.env("PORT", address.port().to_string()));
        let mut listens = false;
        eventually("the server listens, or its port was taken", || {
            listens = TcpStream::connect(address).is_ok();
            listens || process.has_ended()
        });
        if listens && !process.has_ended() {
            return (process, address);
        }
    }
}
