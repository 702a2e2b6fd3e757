//! Attacks over sockets.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::host::{Host, limits, nonce, text};
use super::{Attempt, Finding};

pub(super) async fn internet(host: &Host) -> Attempt {
    let failed = |error: std::io::Error| format!("no listener could be made: {error}");
    let tcp = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let udp = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    tcp.set_nonblocking(true).map_err(failed)?;
    udp.set_nonblocking(true).map_err(failed)?;
    let program = format!(
        r#"sub at {{ pack("S n C4 x8", 2, $_[0], 127, 0, 0, 1) }}
        print "tcp " if socket(T, 2, 1, 0) && connect(T, at({}));
        print "udp" if socket(U, 2, 2, 0) && send(U, "x", 0, at({}));"#,
        tcp.local_addr().map_err(failed)?.port(),
        udp.local_addr().map_err(failed)?.port(),
    );
    let output = host.perl(&program, limits()).await?;
    let arrived = usize::from(tcp.accept().is_ok()) + usize::from(udp.recv(&mut [0; 1]).is_ok());
    let is_held = arrived == 0 && !text(&output).contains("tcp");
    Ok(Finding::new(is_held, format!("{arrived} listeners were reached")))
}

pub(super) async fn families(host: &Host) -> Attempt {
    let program = r#"print "$$_[0] " for grep { socket(S, $$_[1], $$_[2], 0) }
        (["vsock", 40, 1], ["netlink", 16, 3], ["packet", 17, 3], ["alg", 38, 5], ["bluetooth", 31, 3]);"#;
    let output = host.perl(program, limits()).await?;
    let opened = text(&output);
    Ok(Finding::new(
        opened.is_empty(),
        format!("sockets that were opened: `{opened}`"),
    ))
}

pub(super) async fn unix(host: &Host) -> Attempt {
    let failed = |error: std::io::Error| format!("no listener could be made: {error}");
    let name = format!("tool-sandbox-{}", nonce());
    let path = host.folder().join("socket");
    let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
    let listeners = [
        UnixListener::bind_addr(&address).map_err(failed)?,
        UnixListener::bind(&path).map_err(failed)?,
    ];
    for listener in &listeners {
        listener.set_nonblocking(true).map_err(failed)?;
    }
    let program = format!(
        r#"for my $at (pack("S a*", 1, "\0{name}"), pack("S Z108", 1, "{}")) {{
            print "reached " if socket(S, 1, 1, 0) && connect(S, $at);
        }}"#,
        path.display()
    );
    host.perl(&program, limits()).await?;
    let arrived = listeners
        .iter()
        .filter(|listener| listener.accept().is_ok())
        .count();
    Ok(Finding::new(
        arrived == 0,
        format!("{arrived} of 2 listeners were reached"),
    ))
}
