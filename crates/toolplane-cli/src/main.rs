//! The command line of toolplane.
fn main() {}
