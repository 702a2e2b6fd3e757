//! Carries messages from a pipe to a stream of events, as a proxy between stdio and HTTP does: in chunks of any size, and
//! without changing a payload.
//!
//! ```text
//! cargo run -p mcp-wire --example relay
//! ```

use std::io::{self, Write as _};

use mcp_wire::{Line, LineDecoder, Message, RpcError, code, id_in_head, sse_event};
use raw_json::RawJson;

/// Input of a client: a call, a line that is not a message, and a line beyond the limit.
const INPUT: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add","arguments":{"n": 12345678901234567890123}}}
hello?
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"add","arguments":{"text":"a text that goes on and on, longer than this decoder was told to take"}}}
"#;

fn main() -> io::Result<()> {
    let mut decoder = LineDecoder::new(130);
    let mut out = io::stdout().lock();
    // Chunks as they come from a pipe.
    for chunk in INPUT.as_bytes().chunks(50) {
        decoder.buffer().extend_from_slice(chunk);
        while let Some(line) = decoder.next_line() {
            out.write_all(&sse_event(&answer(line), None, None))?;
        }
    }
    Ok(())
}

/// Answers a line with its own parameters, or with an error.
fn answer(line: Line) -> Vec<u8> {
    match line {
        Line::Complete(line) => match Message::from_client(line) {
            Ok(Message::Request(request)) => {
                let params = request.params.unwrap_or(RawJson::object());
                mcp_wire::result(&request.id, &params)
            }
            Ok(_) => mcp_wire::error(
                None,
                &RpcError::new(code::INVALID_REQUEST, "only requests are relayed here"),
            ),
            Err(error) => mcp_wire::error(error.answer_id(), &error.to_rpc_error()),
        },
        // Only its head was kept, which has the id of the request that failed.
        Line::Oversize { head } => {
            let id = id_in_head(&head).map(RawJson::from);
            let error = RpcError::new(code::INVALID_REQUEST, "the message is too large");
            mcp_wire::error(id.as_ref(), &error)
        }
    }
}
