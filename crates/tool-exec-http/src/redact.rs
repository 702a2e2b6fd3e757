use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use tool_core::{HIDDEN, Reference, Secret, secret_forms};

/// The values that must not be shown in one call, in every form in which an upstream may give them back: as they
/// are, percent-encoded, in base64 and as JSON strings.
#[derive(Default)]
pub(crate) struct Masks {
    /// Forms of every value that was put in: hidden in messages.
    all: Vec<String>,
    /// Forms of the values that are secrets by their name or their use: hidden in results as well. A region or a
    /// base address is none, and hiding it would spoil the result.
    secret: Vec<String>,
}

/// A value shorter than this is hidden nowhere: it would be found by chance.
const MIN_LENGTH: usize = 4;
/// The same for results, where finding one by chance spoils data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

impl Masks {
    pub(crate) fn new(values: &HashMap<Reference, Secret>, secret: &HashSet<Reference>) -> Self {
        let mut masks = Self::default();
        for (reference, value) in values {
            let value = value.expose().trim();
            if value.len() >= MIN_LENGTH {
                masks.all.extend(secret_forms(value));
            }
            if value.len() >= MIN_LENGTH_IN_RESULTS && secret.contains(reference) {
                masks.secret.extend(secret_forms(value));
            }
        }
        // A value that holds another one is hidden as a whole.
        for list in [&mut masks.all, &mut masks.secret] {
            list.sort_by_key(|form| std::cmp::Reverse(form.len()));
            list.dedup();
        }
        masks
    }

    /// A text for a message.
    pub(crate) fn message<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide(text, &self.all)
    }

    /// A text for a result.
    pub(crate) fn result<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide(text, &self.secret)
    }
}

fn hide<'a>(text: &'a str, forms: &[String]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for form in forms {
        if text.contains(form.as_str()) {
            text = Cow::Owned(text.replace(form.as_str(), HIDDEN));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use raw_json::RawJson;
    use tool_core::{Secret, Template};

    use super::Masks;

    fn masks(value: &str, secret: bool) -> Masks {
        let reference = Template::parse("${NAME}")
            .unwrap()
            .references()
            .next()
            .unwrap()
            .clone();
        let values = HashMap::from([(reference.clone(), Secret::new(value))]);
        let secrets = if secret {
            HashSet::from([reference])
        } else {
            HashSet::new()
        };
        Masks::new(&values, &secrets)
    }

    #[test]
    fn every_form_is_hidden() {
        let value = "s3cr/t \"quoted\"+val=ue?>";
        let masks = masks(value, true);
        let mut texts = vec![
            format!("a {value} b"),
            format!("a {} b", RawJson::from(value)),
            "a s3cr%2Ft%20%22quoted%22%2Bval%3Due%3F%3E b".to_owned(),
            "a s3cr%2ft%20%22quoted%22%2bval%3due%3f%3e b".to_owned(),
            "a s3cr/t%20%22quoted%22%2Bval%3Due%3F%3E b".to_owned(),
        ];
        for before in ["", "u", "us", "use", "user:"] {
            texts.push(STANDARD.encode(format!("{before}{value}")));
            texts.push(STANDARD.encode(format!("{before}{value}and more")));
        }
        for text in texts {
            let shown = masks.message(&text);
            assert!(shown.contains("[redacted]"), "{text} -> {shown}");
            assert!(
                !shown.contains("s3cr") && !shown.contains("quoted"),
                "{text} -> {shown}"
            );
            assert_eq!(shown, masks.result(&text));
        }
    }

    #[test]
    fn what_is_no_secret_stays_in_results() {
        let masks = masks("eu-central-1", false);
        assert_eq!(masks.result("in eu-central-1"), "in eu-central-1");
        assert_eq!(masks.message("in eu-central-1"), "in [redacted]");
        assert_eq!(self::masks("eu", true).message("euphoric"), "euphoric");
    }
}
