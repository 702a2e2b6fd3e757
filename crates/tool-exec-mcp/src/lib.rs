//! Tools of MCP servers: discovered, renamed, called.
