//! Rules about resources: which URIs a reader may take for the one that a rule names.

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

/// A resource as rules know it: the prefix of its server and its URI, with every text that a reader of URIs may take the
/// URI for.
///
/// Servers read URIs in different ways: `file:/x`, `file://localhost/x`, `FILE:///%78` and `file:///a/..\x` are the file
/// `/x` to many of them. The readings of a URI are all texts that come of it by the steps of RFC 3986, RFC 8089, the WHATWG
/// URL Standard and lenient readers, in any order: percent-decoding of up to four layers, resolved dots, backslashes as
/// slashes, authorities of files left out, query, fragment and parameters cut off, Unicode normalised (NFKD), characters
/// left out that nobody sees, and others. A rule that forbids [matches](Self::could_match) if it fits any of
/// them; rules that allow must [fit all](Self::is_within). The URI itself is never changed.
///
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

/// One text that a URI, or the part of a pattern that speaks of one, may be taken for.
#[derive(Debug, Clone)]
struct Reading {
    text: String,
    /// The text with small letters only, and spaces for `+`.
    folded: String,
    /// The round of steps that it came of: the first one are [`EQUIVALENT`], the second [`CUTS`], the third coarse.
    round: usize,
    /// How many layers of percent-encoding were undone.
    layers: usize,
}

/// How many layers of percent-encoding anyone means.
const MAX_LAYERS: usize = 4;
/// How many readings are looked at: a usual URI has fewer than ten.
const MAX_READINGS: usize = 512;
/// The longest URI that is read, in bytes.
const MAX_URI: usize = 16 * 1024;

impl<'a> ResourceUri<'a> {
    /// Reads a URI of the server whose names have this prefix. Returns `None` if it can be taken for too many things, so
    /// that nobody can tell which rules it fits: it is longer than 16 KiB, has more than four layers of encoding, or
    /// more than 512 readings.
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

    /// Whether some reader takes the URI for one that fits the rule: so it is forbidden if the rule forbids. Capital and
    /// small letters are the same.
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

    /// Whether the URI as it is written fits one of these rules, and whatever a reader takes it for does: so it is
    /// allowed if they allow.
    #[must_use]
    pub fn is_within(&self, rules: &[Pattern]) -> bool {
        let rests: Vec<_> = rules.iter().flat_map(|rule| rule.after(self.prefix)).collect();
        let as_written = |written: &Reading| rests.iter().any(|rest| rest.matches(&written.text));
        if !self.readings.first().is_some_and(as_written) {
            return false;
        }
        // No step makes a wildcard of what was none.
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
        // Coarse readings make one of what the rules tell apart.
        let mut meant = self.readings.iter().filter(|reading| reading.round < 2);
        meant.all(is_allowed)
    }

    /// Whether the path may lead elsewhere by `.` or `..`, however they are written.
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

/// All texts that come of this one by the steps of each round and of those before, in any order.
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
            // Those of earlier rounds have been through the earlier steps.
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
    // Capital letters first, so that `ß` and `SS` are the same.
    text.to_uppercase().to_lowercase().replace('+', " ")
}
