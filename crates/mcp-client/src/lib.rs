//! An MCP client that relays bytes untouched: stdio and Streamable HTTP, lazy start, supervision, deadlines.
