//! What CI runs, and every developer: `cargo xtask`.
fn main() {}
