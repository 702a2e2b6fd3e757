use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{Reference, Secret, SecretSearch};

/// Searches for the values of one call that must not be shown, in every encoding in which an upstream may echo them: see
/// [`SecretSearch`].
pub(crate) struct SecretMasks {
    /// Search for every value that was inserted. They are hidden in messages.
    all: SecretSearch,
    /// Search for the values that are secrets by their name or use. They are hidden in results as well. A region or a base
    /// URL is not a secret, and hiding it would spoil the result.
    secret: SecretSearch,
}

/// Cache of the masks that were used last. The next call nearly always has the same values.
#[derive(Default)]
pub(crate) struct MaskCache(Mutex<Option<Last>>);

/// Values and their masks.
type Last = (HashMap<Reference, Secret>, Arc<SecretMasks>);

/// Minimum length of a value that is hidden, in bytes. Shorter values occur by chance.
const MIN_LENGTH: usize = 4;
/// Minimum length in results, in bytes. It is higher since a match by chance spoils data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

impl SecretMasks {
    pub(crate) fn new(values: &HashMap<Reference, Secret>, secret: &HashSet<Reference>) -> Self {
        let (mut all, mut secrets) = (Vec::new(), Vec::new());
        for (reference, value) in values {
            let value = value.expose().trim();
            if value.len() >= MIN_LENGTH {
                all.push(value);
            }
            if value.len() >= MIN_LENGTH_IN_RESULTS && secret.contains(reference) {
                secrets.push(value);
            }
        }
        Self {
            all: SecretSearch::new(all),
            secret: SecretSearch::new(secrets),
        }
    }

    /// Hides values in a text for a message.
    pub(crate) fn message<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.all.hide_in_text(text)
    }

    /// Hides values in JSON for a message. Returns `None` if it contains none.
    pub(crate) fn detail(&self, value: &RawJson) -> Option<RawJson> {
        self.all.hide_in_json(value)
    }

    /// Hides secrets in a result. Returns `None` if it contains none.
    pub(crate) fn result(&self, result: &RawJson) -> Option<RawJson> {
        self.secret.hide_in_json(result)
    }
}

impl MaskCache {
    /// Returns the masks of these values.
    pub(crate) fn for_values(
        &self,
        values: &HashMap<Reference, Secret>,
        secret: &HashSet<Reference>,
    ) -> Arc<SecretMasks> {
        let mut last = self.0.lock();
        let is_same = |before: &HashMap<Reference, Secret>| {
            let same = |(reference, value): (&Reference, &Secret)| {
                before
                    .get(reference)
                    .is_some_and(|before| before.expose() == value.expose())
            };
            before.len() == values.len() && values.iter().all(same)
        };
        if let Some((before, masks)) = &*last
            && is_same(before)
        {
            return Arc::clone(masks);
        }
        let masks = Arc::new(SecretMasks::new(values, secret));
        *last = Some((values.clone(), Arc::clone(&masks)));
        masks
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use raw_json::RawJson;
    use tool_core::{Secret, Template};

    use super::SecretMasks;

    fn masks(value: &str, secret: bool) -> SecretMasks {
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
        SecretMasks::new(&values, &secrets)
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
            let result = RawJson::from(&*text);
            let shown = RawJson::from(&*shown);
            assert_eq!(masks.result(&result).as_ref(), Some(&shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays_in_results() {
        let masks = masks("eu-central-1", false);
        assert!(masks.result(&RawJson::from("in eu-central-1")).is_none());
        assert_eq!(masks.message("in eu-central-1"), "in [redacted]");
        assert_eq!(self::masks("eu", true).message("euphoric"), "euphoric");
    }
}
