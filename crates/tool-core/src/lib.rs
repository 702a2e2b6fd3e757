//! The words and contracts of toolplane: tools, calls, replies, errors, layers and ports.
