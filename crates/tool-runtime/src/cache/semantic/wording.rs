//! Wording of a request: the words that tell what is requested.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::{
    tokens::{Token, tokens},
    words::{Preposition, Role, phrase, role},
};

/// Words of a text that tell what is requested, in their order.
///
/// Vectors alone cannot tell "from Oslo to Rome" from "from Rome to Oslo", or "above 5" from "below 5": their cosine is higher than
/// that of most paraphrases. Therefore two texts must have the same words as well, apart from those that say nothing about the
/// request, from synonyms of a fixed list and from endings. The list is English. Texts in other languages have fewer words that may
/// differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wording {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// Stem of a word, or a value as it is written.
    text: Box<str>,
    /// `true` for numbers, names, quotations and other values.
    is_value: bool,
    preposition: Option<Preposition>,
    /// `true` if `and` or a comma joins it to the word before.
    is_joined: bool,
    /// Request that begins in front of it; empty if only a sentence does.
    request: Option<&'static str>,
}

/// Builder of a [`Wording`].
struct Reader {
    words: Vec<Word>,
    preposition: Option<Preposition>,
    is_joined: bool,
    request: Option<&'static str>,
    /// `true` if the last word tells what is requested.
    follows_word: bool,
}

impl Wording {
    /// Reads the wording of a text.
    pub(super) fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let mut reader = Reader {
            words: Vec::new(),
            preposition: None,
            is_joined: false,
            request: Some(""),
            follows_word: false,
        };
        let mut rest = tokens.as_slice();
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                Token::Word { text, is_name } => {
                    let second = match after {
                        [Token::Word { text, .. }, ..] => Some(&**text),
                        _ => None,
                    };
                    match phrase(text, second) {
                        Some((words, n_replaced)) => {
                            rest = &after[n_replaced - 1..];
                            words.split_whitespace().for_each(|word| reader.word(word, false));
                        }
                        None => reader.word(text, *is_name),
                    }
                }
                Token::Value(text) => reader.push(text, true),
                Token::Comma => reader.is_joined = true,
                Token::End => reader.request = Some(""),
                Token::Other => {}
            }
        }
        Self { words: reader.words }
    }

    /// Returns the approximate size, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        let words = self.words.iter().map(|word| word.text.len());
        words.sum::<usize>() + size_of_val(&*self.words)
    }

    /// Returns `true` if the texts have the same words, and the order of the words tells no difference: one part of the text may have
    /// moved, but not the values among themselves, and not into the place of another word.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.words, &other.words);
        if ours.len() != theirs.len() {
            return false;
        }
        let is_same = |(ours, theirs): (&Word, &Word)| ours.text == theirs.text;
        let n_before = ours.iter().zip(theirs).take_while(|pair| is_same(*pair)).count();
        if n_before == ours.len() {
            return ours
                .iter()
                .zip(theirs)
                .all(|(ours, theirs)| ours.may_follow(theirs));
        }
        let reversed = ours.iter().rev().zip(theirs.iter().rev());
        let n_after = reversed.take_while(|pair| is_same(*pair)).count();
        let middle = n_before..ours.len() - n_after;
        has_moved(&ours[middle.clone()], &theirs[middle.clone()])
            && self.values_agree(other)
            && self.places_agree(other, middle)
    }

    /// Returns `true` if the values have the same order. A word that is a value in one of the texts counts in both.
    fn values_agree(&self, other: &Self) -> bool {
        let both = || self.words.iter().chain(&other.words);
        let is_value = |word: &&Word| both().any(|value| value.is_value && value.text == word.text);
        let values = |wording: &Self| -> Vec<Box<str>> {
            let values = wording.words.iter().filter(is_value);
            values.map(|word| word.text.clone()).collect()
        };
        values(self) == values(other)
    }

    /// Returns `true` if no preposition, number or request has moved from one word to another.
    fn places_agree(&self, other: &Self, middle: Range<usize>) -> bool {
        if self.numbers() != other.numbers() {
            return false;
        }
        let has_request = |wording: &Self| {
            let moved = wording.words[middle.clone()].iter();
            moved.skip(1).any(|word| word.request.is_some())
        };
        let within_one = !has_request(self) && !has_request(other);

        let mut theirs: HashMap<&str, Vec<&Word>> = HashMap::new();
        for word in other.words.iter().rev() {
            theirs.entry(&word.text).or_default().push(word);
        }
        let (mut has_gained, mut has_lost) = (false, false);
        for word in &self.words {
            let Some(counterpart) = theirs.get_mut(&*word.text).and_then(Vec::pop) else {
                return false;
            };
            match (word.preposition, counterpart.preposition) {
                (Some(ours), Some(theirs)) if ours != theirs => return false,
                (None, Some(_)) => has_gained = true,
                (Some(_), None) => has_lost = true,
                _ => {}
            }
            if !within_one && word.request != counterpart.request {
                return false;
            }
        }
        !(has_gained && has_lost)
    }

    /// Returns the numbers, each with the word after it.
    fn numbers(&self) -> Vec<(&str, Option<&str>)> {
        let words = self.words.iter().enumerate();
        let numbers = words.filter(|(_, word)| word.text.bytes().any(|byte| byte.is_ascii_digit()));
        numbers
            .map(|(place, word)| (&*word.text, self.words.get(place + 1).map(|next| &*next.text)))
            .collect()
    }
}

impl Word {
    /// Returns `true` unless the words have prepositions that cannot replace each other.
    fn may_follow(&self, other: &Self) -> bool {
        match (self.preposition, other.preposition) {
            (Some(ours), Some(theirs)) => ours.may_replace(theirs),
            _ => true,
        }
    }
}

/// Returns `true` if two neighbouring parts of the first words are exchanged in the second ones: a rotation. Two single words may
/// be exchanged only if they are members of a list.
fn has_moved(ours: &[Word], theirs: &[Word]) -> bool {
    if let ([_, ours], [_, theirs]) = (ours, theirs)
        && !(ours.is_joined && theirs.is_joined)
    {
        return false;
    }
    let texts = |words: &[Word]| -> Vec<Box<str>> { words.iter().map(|word| word.text.clone()).collect() };
    let (mut ours, theirs) = (texts(ours), texts(theirs));
    (1..ours.len()).any(|_| {
        ours.rotate_left(1);
        ours == theirs
    })
}

/// Returns the singular of an English noun, by the S-stemmer of Harman, "How effective is suffixing?", JASIS 42 (1991). Other endings
/// stay: `followers` and `following` are not the same.
fn singular(word: &str) -> Cow<'_, str> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() < 4 || !word.is_ascii() {
        return word.into();
    }
    if ends(&["ies"]) && !ends(&["eies", "aies"]) {
        return format!("{}y", &word[..word.len() - 3]).into();
    }
    if ends(&["es"]) && !ends(&["aes", "ees", "oes"]) || ends(&["s"]) && !ends(&["us", "ss", "es"]) {
        return word[..word.len() - 1].into();
    }
    word.into()
}

impl Reader {
    /// Reads a word in lower case.
    fn word(&mut self, word: &str, is_name: bool) {
        let role = role(word).filter(|role| match role {
            Role::Meaning(_) => true,
            // `The Hague`, but `vitamin A`
            Role::Article => !is_name || word.len() > 1,
            // `in May`, `US`, `IT`
            _ => !is_name,
        });
        match role {
            Some(Role::Filler) => self.skip(),
            Some(Role::Article) => self.follows_word = false,
            Some(Role::Request(request)) => self.request(request),
            Some(Role::Opening(request)) if !self.follows_word => self.request(request),
            Some(Role::Noun(_)) if !self.follows_word => self.skip(),
            Some(Role::Preposition(preposition)) => {
                self.skip();
                self.preposition = Some(preposition);
            }
            Some(Role::And) => {
                self.skip();
                self.is_joined = true;
            }
            Some(Role::Meaning(meaning) | Role::Noun(meaning)) => {
                let is_number = meaning.bytes().all(|byte| byte.is_ascii_digit());
                self.push(meaning, is_name || is_number);
            }
            Some(Role::Opening(_)) | None => {
                let stem = singular(word);
                self.push(&stem, is_name);
            }
        }
    }

    fn request(&mut self, request: &'static str) {
        self.skip();
        self.request = Some(request);
    }

    fn skip(&mut self) {
        self.preposition = None;
        self.follows_word = false;
    }

    fn push(&mut self, text: &str, is_value: bool) {
        self.words.push(Word {
            text: text.into(),
            is_value,
            preposition: std::mem::take(&mut self.preposition),
            is_joined: std::mem::take(&mut self.is_joined),
            request: self.request.take(),
        });
        self.follows_word = true;
    }
}
