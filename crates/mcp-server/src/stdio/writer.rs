use std::io;

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Maximum size of a frame that is joined with others into one write, in bytes. Larger ones are written alone.
const JOINED: usize = 16 * 1024;

/// Sends a frame into the queue of a writer.
pub(super) async fn send(queue: &mpsc::Sender<Vec<u8>>, frame: Vec<u8>) {
    // A closed queue means that writing has failed, which ends the connection: nobody needs the frame.
    let _ = queue.send(frame).await;
}

/// Writes the frames of a queue, one per line, until all senders are gone.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    mut queue: mpsc::Receiver<Vec<u8>>,
    mut writer: W,
) -> io::Result<()> {
    let mut frames = Vec::new();
    let mut joined: Vec<u8> = Vec::new();
    while queue.recv_many(&mut frames, 64).await > 0 {
        for frame in frames.drain(..) {
            let line = mcp_wire::into_line(frame);
            if joined.len() + line.len() > JOINED {
                writer.write_all(&joined).await?;
                joined.clear();
            }
            if line.len() > JOINED {
                writer.write_all(&line).await?;
            } else {
                joined.extend_from_slice(&line);
            }
        }
        writer.write_all(&joined).await?;
        joined.clear();
        writer.flush().await?;
    }
    Ok(())
}
