//! Text analysis: words of names and sentences, stop words and stems.

mod analyzer;
mod tokens;

pub(crate) use self::analyzer::{Analyzer, QueryTerms};
pub use self::{analyzer::stem, tokens::tokens};
