//! The files of clients: `toolplane connect` and `disconnect` write the gateway's entry, and `import mcp-json` reads their servers.

mod change;
mod connect;
mod disconnect;
mod import;
mod list;
pub(super) mod masked;
mod origin;

pub(crate) use self::{connect::run as connect, disconnect::run as disconnect, import::run as import};
