//! The MCP gateway in front of a toolplane.
