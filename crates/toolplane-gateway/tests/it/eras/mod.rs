//! Questions in the middle of a call, for clients of both eras.

mod legacy_rounds;
mod modern_rounds;
