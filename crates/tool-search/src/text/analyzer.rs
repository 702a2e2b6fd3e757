use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use foldhash::fast::RandomState;
use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::tokens::each_token;

/// Words that say nothing about the purpose of a tool, in alphabetical order.
const STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it",
    "its", "just", "like", "me", "my", "need", "of", "on", "or", "our", "please", "s", "should", "so",
    "some", "such", "t", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "us", "want", "was", "we", "were", "what", "when", "which", "who", "will", "with", "would", "you",
    "your",
];

/// Maximum number of distinct terms of a query. Further ones are ignored.
const MAX_QUERY_TERMS: usize = 128;

/// Stands for a stop word in the table of known words.
const STOP: u32 = u32::MAX;

/// Assigns numbers to terms: the stems of words.
pub(crate) struct Analyzer {
    stemmer: Stemmer,
    terms: HashMap<Arc<str>, u32, RandomState>,
    /// Terms by their number.
    by_number: Vec<Arc<str>>,
    /// Terms of words that were met before, so that each word is stemmed once. Empty after the index is built.
    words: HashMap<Box<str>, u32, RandomState>,
}

/// Terms of a query.
#[derive(Debug, Default)]
pub(crate) struct QueryTerms {
    /// Known terms.
    pub(crate) known: Vec<u32>,
    /// Stems that the index does not contain.
    pub(crate) unknown: Vec<String>,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            terms: HashMap::default(),
            by_number: Vec::new(),
            words: HashMap::default(),
        }
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyzer")
            .field("n_terms", &self.terms.len())
            .finish_non_exhaustive()
    }
}

impl Analyzer {
    pub(crate) fn n_terms(&self) -> usize {
        self.terms.len()
    }

    /// Passes the terms of a text to a function. `keeps_stop_words` for names, in which every word counts.
    pub(crate) fn each_term(&mut self, text: &str, keeps_stop_words: bool, mut receive: impl FnMut(u32)) {
        let Self {
            stemmer,
            terms,
            by_number,
            words,
        } = self;
        each_token(text, &mut |token| {
            let term = match words.get(token) {
                Some(term) => *term,
                None => {
                    let term = match is_stop_word(token) {
                        true => STOP,
                        false => number(terms, by_number, &stemmed(stemmer, token)),
                    };
                    words.insert(token.into(), term);
                    term
                }
            };
            if term != STOP {
                receive(term);
            } else if keeps_stop_words {
                receive(number(terms, by_number, token));
            }
        });
    }

    /// Returns the text of a term.
    pub(crate) fn term(&self, term: u32) -> &str {
        &self.by_number[term as usize]
    }

    /// Forgets the words, which only building needs.
    pub(crate) fn shrink(&mut self) {
        self.words = HashMap::default();
        self.terms.shrink_to_fit();
        self.by_number.shrink_to_fit();
    }

    /// Reads a query. A repeated word counts once: people repeat words for the sake of grammar. Stop words count only if there
    /// is nothing else.
    pub(crate) fn query(&self, text: &str) -> QueryTerms {
        let mut stems: Vec<String> = Vec::new();
        let add = |stem: &str, stems: &mut Vec<String>| {
            if stems.len() < MAX_QUERY_TERMS && stems.iter().all(|known| known != stem) {
                stems.push(stem.to_owned());
            }
        };
        each_token(text, &mut |token| {
            if !is_stop_word(token) {
                add(&stemmed(&self.stemmer, token), &mut stems);
            }
        });
        if stems.is_empty() {
            each_token(text, &mut |token| add(token, &mut stems));
        }
        let mut query = QueryTerms::default();
        for stem in stems {
            match self.terms.get(stem.as_str()) {
                Some(term) => query.known.push(*term),
                None => query.unknown.push(stem),
            }
        }
        query
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let strings: usize = self
            .by_number
            .iter()
            .map(|term| term.len() + 2 * size_of::<usize>())
            .sum();
        // One control byte for each slot, at a load of 7/8.
        let table = self.terms.capacity() * (size_of::<(Arc<str>, u32)>() + 1) * 8 / 7;
        table + self.by_number.capacity() * size_of::<Arc<str>>() + strings
    }
}

fn number(terms: &mut HashMap<Arc<str>, u32, RandomState>, by_number: &mut Vec<Arc<str>>, stem: &str) -> u32 {
    if let Some(term) = terms.get(stem) {
        return *term;
    }
    let term = u32::try_from(terms.len()).unwrap_or(STOP - 1);
    let stem: Arc<str> = stem.into();
    by_number.push(stem.clone());
    terms.insert(stem, term);
    term
}

fn is_stop_word(token: &str) -> bool {
    STOP_WORDS.binary_search(&token).is_ok()
}

fn stemmed<'a>(stemmer: &Stemmer, token: &'a str) -> Cow<'a, str> {
    // The algorithm is for English; it would cut other scripts at random.
    match token.len() > 2 && token.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => stemmer.stem(token),
        false => token.into(),
    }
}

/// Returns the stem of a lower-case word by the English Snowball algorithm (Porter2), or `None` for a stop word.
///
/// # Examples
/// ```
/// use tool_search::stem;
///
/// assert_eq!(stem("repositories").as_deref(), Some("repositori"));
/// assert_eq!(stem("the"), None);
/// ```
#[must_use]
pub fn stem(token: &str) -> Option<String> {
    (!is_stop_word(token)).then(|| stemmed(&Stemmer::create(Algorithm::English), token).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_in_order() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn a_query_of_stop_words_alone_is_a_query() {
        let mut analyzer = Analyzer::default();
        analyzer.each_term("what_is_this", true, |_| {});
        let query = analyzer.query("What is this?");
        assert_eq!(query.known.len(), 3);
        assert!(query.unknown.is_empty());
        assert_eq!(analyzer.query("what is weather").unknown, ["weather"]);
    }
}
