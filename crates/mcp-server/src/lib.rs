//! The serving side of MCP: stdio and Streamable HTTP in front of one service.
