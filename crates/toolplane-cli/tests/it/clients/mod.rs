//! `toolplane connect`, `disconnect` and `import mcp-json`, in a home of their own.

mod connect;
mod disconnect;
mod guards;
mod import;
