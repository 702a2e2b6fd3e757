//! Members of a map of settings, read one by one.

use std::{num::NonZeroU32, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};
use tool_core::PrepareError;
use tool_settings::{Period, pointer, suggest};

/// Reader of a map's members. Whatever is not read is reported as unknown.
pub(super) struct Fields<'a> {
    /// JSON Pointer of the map.
    at: String,
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    read: Vec<&'a str>,
}

/// A value and its JSON Pointer.
pub(super) type Placed<'a> = (String, &'a Value);

impl<'a> Fields<'a> {
    /// Reads a map. Anything else is reported, and has no members.
    pub(super) fn of(value: &'a Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        let members = value.as_object();
        if members.is_none() {
            problems.push(PrepareError::at(
                at,
                format!("expected a map, found {}", kind_of(value)),
            ));
        }
        Self {
            at: at.to_owned(),
            members,
            known: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Returns the member with the first of these names that is there. The first name is the usual one. A null is no member.
    pub(super) fn get(&mut self, names: &[&'static str]) -> Option<Placed<'a>> {
        self.known.extend(names.first());
        let (key, value) = names.iter().find_map(|name| self.members?.get_key_value(*name))?;
        self.read.push(key);
        (!value.is_null()).then(|| (pointer(&self.at, key), value))
    }

    /// Returns a member that is a text.
    pub(super) fn text(
        &mut self,
        names: &[&'static str],
        problems: &mut Vec<PrepareError>,
    ) -> Option<(String, &'a str)> {
        let (at, value) = self.get(names)?;
        match value.as_str() {
            Some(text) => Some((at, text)),
            None => {
                problems.push(PrepareError::at(
                    at,
                    format!("expected a text, found {}", kind_of(value)),
                ));
                None
            }
        }
    }

    /// Returns a member that is `true` or `false`; `false` if it is absent.
    pub(super) fn flag(&mut self, name: &'static str, problems: &mut Vec<PrepareError>) -> bool {
        self.parsed(name, "`true` or `false`", problems)
            .unwrap_or_default()
    }

    /// Returns a member that is a whole number of at least 1 and at most `most`.
    pub(super) fn count(
        &mut self,
        name: &'static str,
        most: u32,
        problems: &mut Vec<PrepareError>,
    ) -> Option<u32> {
        let (at, value) = self.get(&[name])?;
        let count = NonZeroU32::deserialize(value).ok().map(NonZeroU32::get);
        let fits = count.filter(|count| *count <= most);
        if fits.is_none() {
            problems.push(PrepareError::at(
                at,
                format!("expected a whole number from 1 to {most}"),
            ));
        }
        fits
    }

    /// Returns a member that is a time with its unit, such as `30s`.
    pub(super) fn period(
        &mut self,
        name: &'static str,
        problems: &mut Vec<PrepareError>,
    ) -> Option<Duration> {
        let (at, value) = self.get(&[name])?;
        match Period::deserialize(value) {
            Ok(Period(period)) if !period.is_zero() => Some(period),
            Ok(_) => {
                problems.push(PrepareError::at(at, "must be longer than 0"));
                None
            }
            Err(error) => {
                let text = error.to_string();
                // The second line of the message is its hint.
                problems.push(match text.split_once('\n') {
                    Some((message, hint)) => PrepareError::at(at, message).with_hint(hint),
                    None => PrepareError::at(at, text),
                });
                None
            }
        }
    }

    /// Returns a member of a type that serde reads. `expected` describes it.
    pub(super) fn parsed<T: Deserialize<'a>>(
        &mut self,
        name: &'static str,
        expected: &str,
        problems: &mut Vec<PrepareError>,
    ) -> Option<T> {
        let (at, value) = self.get(&[name])?;
        match T::deserialize(value) {
            Ok(read) => Some(read),
            Err(_) => {
                problems.push(PrepareError::at(
                    at,
                    format!("expected {expected}, found {}", kind_of(value)),
                ));
                None
            }
        }
    }

    /// Reports the members that were not read.
    pub(super) fn finish(self, problems: &mut Vec<PrepareError>) {
        for key in self.members.into_iter().flat_map(Map::keys) {
            if self.read.contains(&key.as_str()) {
                continue;
            }
            let hint = match suggest::nearest(key, &self.known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", suggest::list(&self.known)),
            };
            let problem = PrepareError::at(
                pointer(&self.at, key),
                format!("unknown setting `{}`", suggest::shown(key)),
            );
            problems.push(problem.with_hint(hint));
        }
    }
}

/// Describes a value for messages, without its content.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
