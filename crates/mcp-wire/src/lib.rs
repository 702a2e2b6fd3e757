//! JSON-RPC and MCP framing of both protocol eras, lossless and without I/O.
