//! Values that a `server.json` asks for.

use std::collections::{BTreeMap, BTreeSet};

use tool_core::Template;

use super::{
    document::{Input, InputWithVariables},
    unusable,
};
use crate::{CatalogError, CatalogErrorKind, foreign::shown};

/// Value that a `server.json` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInput {
    /// Name by which the value is given.
    pub name: String,
    /// Reference that stands for it in the settings; `None` if it is left out.
    pub reference: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// `true` if it is a secret.
    pub is_secret: bool,
    /// The only values, if there are such.
    pub choices: Vec<String>,
}

/// Values that an operator gave, and the inputs that were met.
#[derive(Debug, Default)]
pub(super) struct Answers {
    given: BTreeMap<String, String>,
    known: BTreeSet<String>,
    asked: Vec<ServerInput>,
    optional: Vec<ServerInput>,
}

impl Answers {
    pub(super) fn new(given: BTreeMap<String, String>) -> Self {
        Self {
            given,
            ..Self::default()
        }
    }

    /// Returns the text of an input as a template, in which foreign text is escaped. `None` if it is left out.
    pub(super) fn text(
        &mut self,
        name: &str,
        input: &InputWithVariables,
    ) -> Result<Option<String>, CatalogError> {
        match &input.own.value {
            Some(value) => self.fill(value, &input.variables).map(Some),
            None => self.resolve(name, &input.own),
        }
    }

    /// Replaces `{name}` by the values of these variables. Other text stays, as the schema says.
    pub(super) fn fill(
        &mut self,
        text: &str,
        variables: &BTreeMap<String, Input>,
    ) -> Result<String, CatalogError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let after = &rest[start + 1..];
            let variable = after
                .find('}')
                .and_then(|end| variables.get_key_value(&after[..end]));
            let Some((name, input)) = variable else {
                filled.push_str(&escaped(&rest[..=start]));
                rest = after;
                continue;
            };
            filled.push_str(&escaped(&rest[..start]));
            let value = match &input.value {
                Some(value) => Some(escaped(value)),
                None => self.resolve(name, input)?,
            };
            // A part of a text cannot be left out: it is asked for although it is not marked as required.
            filled.push_str(&value.unwrap_or_else(|| self.ask(name, input)));
            rest = &after[name.len() + 1..];
        }
        filled.push_str(&escaped(rest));
        Ok(filled)
    }

    /// Returns the value that was given, the default, or a reference.
    fn resolve(&mut self, name: &str, input: &Input) -> Result<Option<String>, CatalogError> {
        self.known.insert(name.to_owned());
        if let Some(given) = self.given.get(name).cloned() {
            return self.given_value(name, input, given).map(Some);
        }
        if let Some(default) = input.default.as_ref().filter(|_| !input.is_secret) {
            return Ok(Some(escaped(default)));
        }
        if input.is_required {
            return Ok(Some(self.ask(name, input)));
        }
        let optional = describe(name, None, input);
        if !self.optional.contains(&optional) {
            self.optional.push(optional);
        }
        Ok(None)
    }

    fn given_value(&mut self, name: &str, input: &Input, given: String) -> Result<String, CatalogError> {
        let template = Template::parse(&given).map_err(|error| unusable(name, error.to_string()))?;
        let is_reference = template.references().next().is_some();
        if input.is_secret && !is_reference {
            return Err(
                unusable(name, "it is a secret, and would be stored as it is written").with_hint(format!(
                    "give a reference: `--set {name}='${{{}}}'`",
                    variable(name)
                )),
            );
        }
        if !input.choices.is_empty() && !is_reference && !input.choices.contains(&given) {
            let choices: Vec<&str> = input.choices.iter().map(String::as_str).collect();
            let problem = format!("`{}` is none of its values", shown(&given));
            return Err(unusable(name, problem)
                .with_hint(format!("there are {}", tool_settings::suggest::list(&choices))));
        }
        if input.is_secret {
            let asked = describe(name, Some(given.clone()), input);
            self.asked.push(asked);
        }
        Ok(given)
    }

    /// Asks for a value, and returns the reference that stands for it.
    fn ask(&mut self, name: &str, input: &Input) -> String {
        let reference = format!("${{{}}}", variable(name));
        self.optional.retain(|known| known.name != name);
        let asked = describe(name, Some(reference.clone()), input);
        if !self.asked.contains(&asked) {
            self.asked.push(asked);
        }
        reference
    }

    /// Checks that every value that was given belongs to an input.
    pub(super) fn check_used(&self, server: &str) -> Result<(), CatalogError> {
        let Some(unknown) = self.given.keys().find(|name| !self.known.contains(*name)) else {
            return Ok(());
        };
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let failure = CatalogError::new(
            CatalogErrorKind::NotFound,
            server,
            format!("it asks for no value `{}`", shown(unknown)),
        );
        Err(match tool_settings::suggest::nearest(unknown, &known) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => failure.with_hint("it asks for none"),
            None => failure.with_hint(format!("it asks for {}", tool_settings::suggest::list(&known))),
        })
    }

    /// Returns the inputs that are asked for, and those that may be given.
    pub(super) fn into_inputs(self) -> (Vec<ServerInput>, Vec<ServerInput>) {
        (self.asked, self.optional)
    }
}

fn describe(name: &str, reference: Option<String>, input: &Input) -> ServerInput {
    ServerInput {
        name: name.to_owned(),
        reference,
        description: input.description.clone(),
        is_secret: input.is_secret,
        choices: input.choices.clone(),
    }
}

/// Escapes text that is no template, so that nothing in it is a reference.
pub(super) fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// Returns the name of the variable that stands for an input: capitals, digits and `_`.
fn variable(name: &str) -> String {
    let mut variable: String = name
        .trim_start_matches('-')
        .chars()
        .map(|letter| match letter.is_ascii_alphanumeric() {
            true => letter.to_ascii_uppercase(),
            false => '_',
        })
        .collect();
    if !variable.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        variable.insert(0, '_');
    }
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(names: &[(&str, Input)]) -> BTreeMap<String, Input> {
        names
            .iter()
            .map(|(name, input)| ((*name).to_owned(), input.clone()))
            .collect()
    }

    #[test]
    fn only_known_variables_are_replaced_and_foreign_references_are_text() {
        let mut answers = Answers::default();
        let value = Input {
            default: Some("${HOME}".to_owned()),
            ..Input::default()
        };
        let filled = answers
            .fill("{a}${file:/etc/passwd}{b}{", &variables(&[("a", value)]))
            .unwrap();
        assert_eq!(filled, "$${HOME}$${file:/etc/passwd}{b}{");
        let template = Template::parse(&filled).unwrap();
        assert_eq!(template.literal(), Some("${HOME}${file:/etc/passwd}{b}{"));
    }

    #[test]
    fn names_of_variables_can_be_referred_to() {
        for (name, expected) in [
            ("X-API-Key", "X_API_KEY"),
            ("--port", "PORT"),
            ("1st", "_1ST"),
            ("", "_"),
            ("ä", "_"),
        ] {
            assert_eq!(variable(name), expected);
            assert!(Template::parse(&format!("${{{expected}}}")).is_ok());
        }
    }
}
