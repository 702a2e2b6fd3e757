//! Wording of a request: the words that tell what is requested.

use std::{borrow::Cow, collections::HashMap};

use super::{
    tokens::{Token, tokens},
    words::{Preposition, Role, phrase, role},
};

/// Words of a text that tell what is requested, in their order.
///
/// Vectors alone cannot tell "from Oslo to Rome" from "from Rome to Oslo", or "above 5" from "below 5": their cosine is higher than
/// that of most paraphrases. Therefore two texts must have the same words as well, apart from those that say nothing about the
/// request, from synonyms of a fixed list and from plurals. The lists are English. Texts in other languages have fewer words that may
/// differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wording {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// Singular of a word, or a value as it is written.
    text: Box<str>,
    /// `true` for numbers, names, quotations and other values.
    is_value: bool,
    preposition: Option<Preposition>,
    /// Joins it to the word before.
    joint: Option<Joint>,
    /// `true` if a sentence or a request begins in front of it.
    begins: bool,
}

/// Joins two members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Comma,
    And,
}

/// Builder of a [`Wording`].
struct Reader {
    words: Vec<Word>,
    preposition: Option<Preposition>,
    joint: Option<Joint>,
    begins: bool,
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
            joint: None,
            begins: true,
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
                Token::Comma => reader.joint = Some(Joint::Comma),
                Token::End => reader.begins = true,
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
        // Nothing is known of a text without such words.
        if ours.is_empty() || ours.len() != theirs.len() {
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
            && joints_agree(&ours[middle.end..], &theirs[middle.end..])
            && self.values_agree(other)
            && self.numbers() == other.numbers()
            && self.prepositions_agree(other)
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

    /// Returns `true` if no preposition has moved from one word to another.
    fn prepositions_agree(&self, other: &Self) -> bool {
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

/// Returns `true` if the first of the words that follow a moved part is joined in both texts or in none.
fn joints_agree(ours: &[Word], theirs: &[Word]) -> bool {
    let joint = |words: &[Word]| words.first().and_then(|word| word.joint);
    joint(ours) == joint(theirs)
}

/// Returns `true` if two neighbouring parts of the first words are exchanged in the second ones: a rotation. The parts must be of
/// one sentence and no members of a list, unless they are single words that a list joins.
fn has_moved(ours: &[Word], theirs: &[Word]) -> bool {
    if let ([_, ours], [_, theirs]) = (ours, theirs) {
        return ours.joint.is_some() && theirs.joint.is_some();
    }
    let is_one_part = |words: &[Word]| {
        let is_joined = words.iter().any(|word| word.joint == Some(Joint::And));
        !is_joined && !words.iter().skip(1).any(|word| word.begins)
    };
    let texts = |words: &[Word]| -> Vec<Box<str>> { words.iter().map(|word| word.text.clone()).collect() };
    let (mut rotated, target) = (texts(ours), texts(theirs));
    is_one_part(ours)
        && is_one_part(theirs)
        && (1..rotated.len()).any(|_| {
            rotated.rotate_left(1);
            rotated == target
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
            Some(Role::Request) => self.request(),
            Some(Role::Opening) if !self.follows_word => self.request(),
            Some(Role::Noun(_)) if !self.follows_word => self.skip(),
            Some(Role::Preposition(preposition)) => {
                self.skip();
                self.preposition = Some(preposition);
            }
            Some(Role::And) => {
                self.skip();
                self.joint = Some(Joint::And);
            }
            Some(Role::Meaning(meaning) | Role::Noun(meaning)) => {
                let is_number = meaning.bytes().all(|byte| byte.is_ascii_digit());
                self.push(meaning, is_name || is_number);
            }
            Some(Role::Opening) | None if is_name => self.push(word, true),
            Some(Role::Opening) | None => self.push(&singular(word), false),
        }
    }

    fn request(&mut self) {
        self.skip();
        self.begins = true;
    }

    fn skip(&mut self) {
        self.preposition = None;
        self.follows_word = false;
    }

    fn push(&mut self, text: &str, is_value: bool) {
        self.words.push(Word {
            text: text.into(),
            is_value,
            preposition: self.preposition.take(),
            joint: self.joint.take(),
            begins: std::mem::take(&mut self.begins),
        });
        self.follows_word = true;
    }
}
