//! Roles of English words in a request.

use std::{collections::HashMap, sync::LazyLock};

/// Role of a word in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Says nothing about what is requested.
    Filler,
    /// Like [`Role::Filler`], and stands between a preposition and its noun.
    Article,
    /// Requests what follows it: `find`.
    Request,
    /// Requests what follows it at the beginning of a phrase only: `show me`, but `TV show`.
    Opening,
    /// Stands for this word after another word, as in `contact details`. Otherwise a filler, as in `details of the flight`.
    Noun(&'static str),
    /// Relates the next word to others.
    Preposition(Preposition),
    /// Joins the members of a list: `and`.
    And,
    /// Stands for this word: a synonym, a number that is written out, or a tense.
    Meaning(&'static str),
}

const FILLERS: &str = "is are be been being i me we you it there please kindly thanks thank hi hello hey could would do does
    have has having let lets able possible what which if whether whose also just so very really actually such etc any some both
    ones using via located available relevant given based way ways respective
    respectively";

const REQUESTS: &str = "get gets getting got find finding give gives giving tell fetch retrieve obtain looking searching know want wants wanted
    assist checking trying try interested curious wondering wonder calculate compute determine recommend suggest";

const ARTICLES: &str = "a an the this that these those my our";

const NOUNS: &str = "information info details detail data";

const OPENINGS: &str =
    "list search check look help need needs needed show shows showing share provide provides providing";

/// Prepositions that may replace each other, in groups.
const PREPOSITIONS: [&str; 5] = [
    "of in on at during within",
    "of for on about regarding concerning",
    "to into for",
    "with",
    "as",
];

/// Words that mean the same, in groups. The first of each stands for all.
const SYNONYMS: &str = "picture image images photo photos photograph photographs pic pictures; cost price costs prices; create make generate
    produce creates makes generates creating making generating; movie film movies films; purchase buy; start begin starts begins
    starting beginning; book reserve; near nearby close; biggest largest; total overall; repository repo; quickest fastest;
    maximum max; minimum min; latest newest; now current currently present presently; name named called titled entitled;
    include includes including included incl;
    recommendation suggestion recommendations suggestions; technology tech; send sent; write written; percent percentage; was
    were did had; 1 one; 2 two; 3 three; 4 four; 5 five; 6 six; 7 seven; 8 eight; 9 nine; 10 ten; 11 eleven; 12 twelve";

/// Words that stand for several others.
const PHRASES: [(&str, &str); 53] = [
    ("what's", "what is"),
    ("where's", "where is"),
    ("how's", "how is"),
    ("who's", "who is"),
    ("when's", "when is"),
    ("i'm", "i"),
    ("i am", "i"),
    ("i'd like", "i want"),
    ("i'd", "i would"),
    ("i've", "i have"),
    ("i'll", "i would"),
    ("it's", "it is"),
    ("that's", "that is"),
    ("there's", "there is"),
    ("let's", "we"),
    ("you're", "you are"),
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("isn't", "is not"),
    ("aren't", "are not"),
    ("wasn't", "was not"),
    ("don't", "do not"),
    ("doesn't", "do not"),
    ("didn't", "did not"),
    ("without", "with not"),
    ("would like", "want"),
    ("would love", "want"),
    ("will you", "would you"),
    ("how many", "number"),
    // The words alone are a drink's, a month's and more.
    ("can you", "you"),
    ("can i", "i"),
    ("can we", "we"),
    ("can someone", "you"),
    ("may i", "i"),
    ("may we", "we"),
    ("might i", "i"),
    ("let us", "we"),
    ("tell us", "tell"),
    ("give us", "give"),
    ("show us", "show"),
    ("help us", "help"),
    ("right now", "now"),
    ("make sure", "ensure"),
    ("look up", "find"),
    ("find out", "find"),
    ("pull up", "find"),
    ("work out", "calculate"),
    ("kind of", "of"),
    ("kinds of", "of"),
    ("sort of", "of"),
    ("sorts of", "of"),
    ("so far", "so"),
];

/// Preposition in front of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preposition {
    word: &'static str,
    /// Prepositions with a bit in common may replace each other.
    groups: u8,
}

impl Preposition {
    /// Returns `true` if the prepositions may replace each other.
    pub(super) fn may_replace(self, other: Self) -> bool {
        self.groups & other.groups != 0
    }
}

/// Returns the role of a word in lower case. `None` if it is one of those that tell what is requested.
pub(super) fn role(word: &str) -> Option<Role> {
    static ROLES: LazyLock<HashMap<&'static str, Role>> = LazyLock::new(roles);
    ROLES.get(word).copied()
}

/// Returns the words that stand for the beginning of these, and the number of words that they replace.
pub(super) fn phrase(first: &str, second: Option<&str>) -> Option<(&'static str, usize)> {
    static PAIRS: LazyLock<HashMap<&'static str, &'static str>> =
        LazyLock::new(|| PHRASES.into_iter().collect());
    let pair = second.and_then(|second| PAIRS.get(format!("{first} {second}").as_str()));
    match pair {
        Some(words) => Some((words, 2)),
        None => PAIRS.get(first).map(|words| (*words, 1)),
    }
}

fn roles() -> HashMap<&'static str, Role> {
    let mut roles = HashMap::new();
    for (words, role) in [
        (FILLERS, Role::Filler),
        (ARTICLES, Role::Article),
        (REQUESTS, Role::Request),
        (OPENINGS, Role::Opening),
        (NOUNS, Role::Noun("information")),
    ] {
        roles.extend(words.split_whitespace().map(|word| (word, role)));
    }
    roles.insert("and", Role::And);
    for (index, words) in PREPOSITIONS.into_iter().enumerate() {
        for word in words.split_whitespace() {
            let role = roles
                .entry(word)
                .or_insert(Role::Preposition(Preposition { word, groups: 0 }));
            if let Role::Preposition(preposition) = role {
                preposition.groups |= 1 << index;
            }
        }
    }
    for group in SYNONYMS.split(';') {
        let mut words = group.split_whitespace();
        if let Some(first) = words.next() {
            roles.insert(first, Role::Meaning(first));
            roles.extend(words.map(|word| (word, Role::Meaning(first))));
        }
    }
    roles
}
