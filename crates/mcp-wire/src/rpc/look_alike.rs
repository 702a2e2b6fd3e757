//! Look-alike keys, which some readers take for others (UTS #39).

#[cfg(feature = "strict")]
use icu_normalizer::ComposingNormalizerBorrowed;
#[cfg(feature = "strict")]
use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};

/// Returns the first key of `params`, or of the `_meta` in it, that is a look-alike of a key with a meaning.
#[cfg(feature = "strict")]
pub(crate) fn in_params(params: &raw_json::RawJson) -> Option<String> {
    for (key, value) in params.parts() {
        if is_look_alike(&key, crate::param_key::ALL) {
            return Some(key.into_owned());
        }
        if key == crate::param_key::META {
            let meta = value.to_raw();
            let mut keys = meta.parts().map(|(key, _)| key);
            if let Some(key) = keys.find(|key| is_look_alike(key, crate::meta_key::ALL)) {
                return Some(key.into_owned());
            }
        }
    }
    None
}

/// Returns `true` if a key is a look-alike of a known one. It is equal to a known key apart from case, compatibility forms,
/// spaces and invisible characters, or it has the same skeleton (UTS #39, section 4).
pub(crate) fn is_look_alike(key: &str, known: &[&str]) -> bool {
    if known.contains(&key) {
        return false;
    }
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return known.iter().any(|known| known.eq_ignore_ascii_case(key));
    }
    is_unicode_look_alike(key, known)
}

#[cfg(feature = "strict")]
fn is_unicode_look_alike(key: &str, known: &[&str]) -> bool {
    let plain = folded(key);
    known.iter().any(|known| {
        let same =
            || unicode_security::skeleton(&plain).eq(unicode_security::skeleton(&known.to_ascii_lowercase()));
        known.eq_ignore_ascii_case(&plain) || !plain.is_ascii() && same()
    })
}

/// Without the tables of Unicode, each key with an unusual character may be one.
#[cfg(not(feature = "strict"))]
fn is_unicode_look_alike(_: &str, _: &[&str]) -> bool {
    true
}

/// Folds case and compatibility forms (NFKC), and removes spaces and invisible characters.
#[cfg(feature = "strict")]
fn folded(key: &str) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let is_seen = |c: &char| !c.is_control() && !c.is_whitespace() && !ignorable.contains(*c);
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    let seen: String = key.chars().filter(is_seen).collect();
    let plain = normalizer.normalize(&seen).to_uppercase().to_lowercase();
    plain.chars().filter(is_seen).collect()
}
