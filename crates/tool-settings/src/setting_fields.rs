//! Members of a map of executor settings, read one by one.

use std::{num::NonZeroU32, time::Duration};

use serde::Deserialize;
use tool_core::{
    PrepareError,
    serde_json::{Map, Value},
};

use crate::{Period, pointer, suggest};

/// Reader of the members of a map of executor settings. Whatever is not read is reported as unknown.
///
/// # Examples
/// ```
/// use tool_core::serde_json::json;
/// use tool_settings::SettingFields;
///
/// let (settings, mut problems) = (json!({"window": 5, "widnow": 6}), Vec::new());
/// let mut fields = SettingFields::of(&settings, "", &mut problems);
/// assert_eq!(fields.count("window", 100, &mut problems), Some(5));
/// fields.finish(&mut problems);
/// assert_eq!(problems[0].pointer, "/widnow");
/// ```
#[derive(Debug)]
pub struct SettingFields<'a> {
    /// JSON Pointer of the map.
    at: String,
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    read: Vec<&'a str>,
}

/// A value and its JSON Pointer.
pub type PlacedValue<'a> = (String, &'a Value);

impl<'a> SettingFields<'a> {
    /// Reads a map. Anything else is reported, and has no members.
    pub fn of(value: &'a Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
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
    pub fn get(&mut self, names: &[&'static str]) -> Option<PlacedValue<'a>> {
        self.known.extend(names.first());
        let (key, value) = names.iter().find_map(|name| self.members?.get_key_value(*name))?;
        self.read.push(key);
        (!value.is_null()).then(|| (pointer(&self.at, key), value))
    }

    /// Returns a member that is a text.
    pub fn text(
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
    pub fn flag(&mut self, name: &'static str, problems: &mut Vec<PrepareError>) -> bool {
        self.parsed(name, "`true` or `false`", problems)
            .unwrap_or_default()
    }

    /// Returns a member that is a whole number of at least 1 and at most `most`.
    pub fn count(&mut self, name: &'static str, most: u32, problems: &mut Vec<PrepareError>) -> Option<u32> {
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
    pub fn period(&mut self, name: &'static str, problems: &mut Vec<PrepareError>) -> Option<Duration> {
        let (at, value) = self.get(&[name])?;
        if !value.is_string() {
            let problem = format!("expected a time such as `30s`, found {}", kind_of(value));
            problems.push(PrepareError::at(at, problem));
            return None;
        }
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
    pub fn parsed<T: Deserialize<'a>>(
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
    pub fn finish(self, problems: &mut Vec<PrepareError>) {
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
#[must_use]
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
