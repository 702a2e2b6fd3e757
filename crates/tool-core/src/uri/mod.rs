//! Rules for resources: the URIs that a reader may treat as the one that a rule names.

mod completion;
mod decode;
mod steps;
mod template;

use std::collections::HashSet;

pub use self::{completion::UriCompletion, template::UriTemplate};
use self::{
    decode::percent_decode,
    steps::{COARSE, COARSE_OF_URI, CUTS, EQUIVALENT, Step, has_dot_segments},
};
use crate::Pattern;

/// Resource as rules see it: the prefix of its server and its URI, with all readings of the URI.
///
/// Servers interpret URIs in different ways: many treat `file:/x`, `file://localhost/x`, `FILE:///%78` and
/// `file:///a/..\x` as the file `/x`. The readings of a URI are all texts that result from the steps of RFC 3986, RFC
/// 8089, the WHATWG URL Standard and lenient readers, in any order: up to four layers of percent-decoding, resolved
/// dots, backslashes as slashes, removed authorities of files, removed query, fragment and parameters, Unicode
/// normalization (NFKD), removed invisible characters, and others. A forbidding rule [matches](Self::could_match) if
/// it matches any reading; allowing rules must [match all](Self::is_within). The URI itself is never changed.
///
/// # Examples
/// ```
/// use tool_core::{Pattern, ResourceUri};
///
/// let uri = ResourceUri::new("files__", "file://localhost/open/%2e%2e/secret/a").unwrap();
/// assert!(uri.could_match(&Pattern::new("files__file:///secret/*")));
/// assert!(!uri.is_within(&[Pattern::new("files__file://localhost/open/*")]));
/// ```
#[derive(Debug, Clone)]
pub struct ResourceUri<'a> {
    prefix: &'a str,
    readings: Vec<Reading>,
}

/// One reading of a URI, or of the URI part of a pattern.
#[derive(Debug, Clone)]
struct Reading {
    text: String,
    /// Text in lower case, with spaces for `+`.
    folded: String,
    /// Round of steps that produced it: first [`EQUIVALENT`], then [`CUTS`], then coarse ones.
    round: usize,
    /// Number of removed layers of percent-encoding.
    layers: usize,
}

/// Maximum number of layers of percent-encoding in legitimate use.
const MAX_LAYERS: usize = 4;
/// Maximum number of readings. A usual URI has fewer than ten.
const MAX_READINGS: usize = 512;
/// Maximum length of a URI, in bytes.
const MAX_URI: usize = 16 * 1024;

impl<'a> ResourceUri<'a> {
    /// Creates the readings of a URI of the server with this name prefix. Returns `None` if the URI is too ambiguous to
    /// match rules against: longer than 16 KiB, with more than four layers of encoding, or with more than 512 readings.
    #[must_use]
    pub fn new(prefix: &'a str, uri: &str) -> Option<Self> {
        if uri.len() > MAX_URI {
            return None;
        }
        let readings = readings(uri, &[EQUIVALENT, CUTS, COARSE_OF_URI], |_, _| true);
        readings.is_complete.then_some(Self {
            prefix,
            readings: readings.all,
        })
    }

    /// Returns `true` if some reader may treat the URI as matching the rule: a forbidding rule then applies. Ignores
    /// case.
    #[must_use]
    pub fn could_match(&self, rule: &Pattern) -> bool {
        rule.after(self.prefix).iter().any(|rest| {
            let forms = readings(rest.as_str(), &[EQUIVALENT, COARSE], |_, _| true);
            forms.all.iter().any(|form| {
                let (plain, folded) = (Pattern::new(&*form.text), Pattern::new(&*form.folded));
                let fits =
                    |reading: &Reading| plain.matches(&reading.text) || folded.matches(&reading.folded);
                self.readings.iter().any(fits)
            })
        })
    }

    /// Returns `true` if the URI as written and all of its readings match these rules: allowing rules then apply.
    #[must_use]
    pub fn is_within(&self, rules: &[Pattern]) -> bool {
        let rests: Vec<_> = rules.iter().flat_map(|rule| rule.after(self.prefix)).collect();
        let as_written = |written: &Reading| rests.iter().any(|rest| rest.matches(&written.text));
        if !self.readings.first().is_some_and(as_written) {
            return false;
        }
        // No step creates a wildcard.
        let n_stars = |text: &str| text.matches('*').count();
        let forms: Vec<_> = rests
            .iter()
            .flat_map(|rest| {
                let is_as_narrow = |before: &str, after: &str| n_stars(after) <= n_stars(before);
                readings(rest.as_str(), &[EQUIVALENT, CUTS], is_as_narrow).all
            })
            .map(|form| (form.round, Pattern::new(form.text)))
            .collect();
        let is_allowed = |reading: &Reading| {
            let mut fitting = forms.iter().filter(|(round, _)| *round <= reading.round);
            fitting.any(|(_, form)| form.matches(&reading.text))
        };
        // Coarse readings merge URIs that the rules distinguish.
        let mut meant = self.readings.iter().filter(|reading| reading.round < 2);
        meant.all(is_allowed)
    }

    /// Returns `true` if the path may lead elsewhere by `.` or `..`, in any encoding.
    #[must_use]
    pub fn has_dot_segments(&self) -> bool {
        self.readings
            .iter()
            .any(|reading| has_dot_segments(&reading.text))
    }
}

struct Readings {
    all: Vec<Reading>,
    is_complete: bool,
}

/// Returns all texts that result from this one by the steps of each round and the earlier rounds, in any order.
fn readings(text: &str, rounds: &[&[Step]], is_kept: impl Fn(&str, &str) -> bool) -> Readings {
    let mut found = Readings {
        all: vec![Reading {
            folded: folded(text),
            text: text.to_owned(),
            round: 0,
            layers: 0,
        }],
        is_complete: true,
    };
    let mut known = HashSet::from([text.to_owned()]);
    for round in 0..rounds.len() {
        let n_known = found.all.len();
        let mut next = 0;
        while let Some(reading) = found.all.get(next) {
            // Readings of earlier rounds have passed the earlier steps.
            let first = if next < n_known { round } else { 0 };
            let (from, layers) = (reading.text.clone(), reading.layers);
            let steps = rounds[first..=round].iter().copied().flatten();
            let stepped = steps.filter_map(|step| step(&from)).map(|text| (text, layers));
            let decoded = percent_decode(&from)
                .filter(|_| first == 0)
                .map(|text| (text, layers + 1));
            for (text, layers) in stepped.chain(decoded).collect::<Vec<_>>() {
                if known.contains(&text) || !is_kept(&from, &text) {
                    continue;
                }
                if layers > MAX_LAYERS || known.len() == MAX_READINGS {
                    found.is_complete = false;
                    return found;
                }
                known.insert(text.clone());
                found.all.push(Reading {
                    folded: folded(&text),
                    text,
                    round,
                    layers,
                });
            }
            next += 1;
        }
    }
    found
}

fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase().replace('+', " ");
    }
    // Upper case first, so that `ß` and `SS` are equal.
    text.to_uppercase().to_lowercase().replace('+', " ")
}
