use std::borrow::Cow;

use tool_settings::{NodeId, suggest as names};

use crate::{
    clients::variables::Variables,
    document::{
        node::{Document, Kind},
        unknown_keys::APPROVALS,
    },
};

/// Parts of the keys by which clients restrict what a server offers or may do.
const RESTRICTIONS: [&str; 12] = [
    "tool",
    "allow",
    "deny",
    "denied",
    "exclude",
    "include",
    "block",
    "filter",
    "permission",
    "sandbox",
    "readonly",
    "restrict",
];

/// Keys of our own that contain such a part.
const OURS: [&str; 3] = ["sandbox", "sandboxEnabled", "health_check_tool"];
/// Keys of clients that contain such a part and restrict nothing: when tools are loaded, and how their results are shown (Copilot).
const HARMLESS: [&str; 3] = ["deferTools", "disableToolCache", "filterMapping"];
/// Keys of programs that have no meaning for a server with a URL.
const OF_PROGRAMS: [&str; 4] = ["args", "env", "cwd", "env_file"];

/// A warning about a place in a client's file.
#[derive(Debug, Clone)]
pub(crate) struct Remark {
    pub(crate) at: NodeId,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Remark {
    pub(crate) fn new(at: NodeId, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// A server of a client's file, translated.
#[derive(Debug)]
pub(crate) struct ClientServer {
    /// Name in the client.
    pub(crate) name: String,
    /// Its settings in our own form. The values are those of the file, or stand at their places.
    pub(crate) settings: NodeId,
    /// Reason why it cannot be used.
    pub(crate) refusal: Option<Remark>,
    pub(crate) remarks: Vec<Remark>,
    /// `true` if unknown keys of the settings are those of the client.
    pub(crate) is_lenient: bool,
}

/// Translates the settings of one server, key by key.
pub(crate) struct ServerTranslator<'a> {
    pub(crate) document: &'a mut Document,
    pub(crate) variables: &'a Variables,
    /// The settings in the file.
    pub(crate) at: NodeId,
    /// Our own keys.
    entries: Vec<(String, NodeId)>,
    /// Keys of the file that were read.
    read: Vec<&'static str>,
    remarks: Vec<Remark>,
    refusal: Option<Remark>,
}

impl<'a> ServerTranslator<'a> {
    pub(crate) fn new(document: &'a mut Document, variables: &'a Variables, at: NodeId) -> Self {
        Self {
            document,
            variables,
            at,
            entries: Vec::new(),
            read: Vec::new(),
            remarks: Vec::new(),
            refusal: None,
        }
    }

    /// Returns the value of a key, unless it is null, and marks the key as read.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<NodeId> {
        self.read.push(key);
        let value = self.document.get(self.at, key)?;
        (!matches!(self.document.kind(value), Kind::Null)).then_some(value)
    }

    /// Reads a key as our own key, as it is written.
    pub(crate) fn keep(&mut self, key: &'static str, ours: &str) {
        if let Some(value) = self.get(key) {
            self.set(ours, value);
        }
    }

    /// Reads a key as our own key, with the variables in its texts translated.
    pub(crate) fn texts(&mut self, key: &'static str, ours: &str) {
        if let Some(value) = self.get(key) {
            let translated = self.translated(value);
            self.set(ours, translated);
        }
    }

    /// Sets a key of ours. The first value of a key counts.
    pub(crate) fn set(&mut self, ours: &str, value: NodeId) {
        if !self.has(ours) {
            self.entries.push((ours.to_owned(), value));
        }
    }

    /// Removes a key of ours.
    pub(crate) fn unset(&mut self, ours: &str) {
        self.entries.retain(|(known, _)| known != ours);
    }

    /// Replaces the value of a key of ours.
    pub(crate) fn replace(&mut self, ours: &str, kind: Kind, at: NodeId) {
        self.unset(ours);
        self.set_new(ours, kind, at);
    }

    /// Returns `true` if a key of ours is set.
    pub(crate) fn has(&self, ours: &str) -> bool {
        self.entries.iter().any(|(known, _)| known == ours)
    }

    /// Sets a key of ours to a new value, which stands at the place of another.
    pub(crate) fn set_new(&mut self, ours: &str, kind: Kind, at: NodeId) {
        let value = self.document.add(kind, at);
        self.set(ours, value);
    }

    /// Reads a period as milliseconds. `factor` is the number of milliseconds in the unit of the file.
    pub(crate) fn period(&mut self, key: &'static str, ours: &str, factor: f64) {
        if let Some(at) = self.get(key) {
            self.period_at(at, key, ours, factor);
        }
    }

    /// Reads the period at a place: see [`ServerTranslator::period`].
    pub(crate) fn period_at(&mut self, at: NodeId, key: &str, ours: &str, factor: f64) {
        let Kind::Number(text) = self.document.kind(at) else {
            // The reader of our key reports what was expected.
            self.set(ours, at);
            return;
        };
        match text.parse::<f64>() {
            Ok(number) if number > 0.0 && number * factor < 1e15 => {
                let milliseconds = (number * factor).ceil().to_string();
                self.set_new(ours, Kind::Number(milliseconds), at);
            }
            _ => self.remark(at, format!("`{key}` is ignored: it is no period"), ""),
        }
    }

    /// Reads `enabled: false` as `disabled`, and `disabled` as it is.
    pub(crate) fn enabled(&mut self) {
        if let Some(at) = self.get("enabled") {
            match self.document.kind(at) {
                Kind::Bool(true) => {}
                Kind::Bool(false) => self.set_new("disabled", Kind::Bool(true), at),
                _ => self.refuse(at, "`enabled` is neither `true` nor `false`", ""),
            }
        }
        self.keep("disabled", "disabled");
    }

    /// Reads lists of tools that are allowed and denied.
    pub(crate) fn tool_lists(&mut self, allowed: &[&'static str], denied: &[&'static str]) {
        let mut include = None;
        for key in allowed {
            if let Some(at) = self.get(key) {
                match include {
                    None => {
                        include = Some(at);
                        self.set("include", at);
                    }
                    Some(_) => self.refuse(at, format!("`{key}` is a second list of allowed tools"), ""),
                }
            }
        }
        let mut exclude: Option<(NodeId, Vec<NodeId>)> = None;
        for key in denied {
            let Some(at) = self.get(key) else { continue };
            match self.document.kind(at) {
                Kind::List(items) => {
                    let items = items.clone();
                    exclude.get_or_insert((at, Vec::new())).1.extend(items);
                }
                // The reader of our key reports what was expected.
                _ => self.set("exclude", at),
            }
        }
        if let Some((at, items)) = exclude {
            self.set_new("exclude", Kind::List(items), at);
        }
    }

    /// Leaves names with `*` out of the allowed tools, for a client that takes each name as it is written.
    pub(crate) fn exact_names(&mut self) {
        let include = self.entries.iter().find(|(key, _)| key == "include");
        let Some(at) = include.map(|(_, at)| *at) else {
            return;
        };
        let Kind::List(items) = self.document.kind(at).clone() else {
            return;
        };
        let is_pattern = |item: &NodeId| self.document.text(*item).is_some_and(|name| name.contains('*'));
        let (patterns, names): (Vec<_>, Vec<_>) = items.into_iter().partition(is_pattern);
        if let [first, ..] = patterns.as_slice() {
            let message = "a name with `*` allows no tool: this client has no patterns here";
            self.remark(
                *first,
                message,
                "name each tool, or remove the list for all of them",
            );
            self.replace("include", Kind::List(names), at);
        }
    }

    /// Leaves out what belongs to programs, if there is a URL and no command: clients do not look at it.
    fn drop_keys_of_programs(&mut self) {
        if !self.has("url") || self.has("command") {
            return;
        }
        let is_of_program = |key: &str| OF_PROGRAMS.contains(&key);
        let entries = std::mem::take(&mut self.entries);
        let (dropped, kept): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| is_of_program(key));
        self.entries = kept;
        for (key, at) in dropped {
            self.remark(at, format!("`{key}` is ignored: the server has a URL"), "");
        }
    }

    /// Allows these tools alone, of those that are allowed already.
    pub(crate) fn include_only(&mut self, patterns: &[String], at: NodeId) {
        let known = self.entries.iter().find(|(key, _)| key == "include");
        let known: Option<Vec<String>> = known.map(|(_, at)| match self.document.kind(*at) {
            Kind::List(items) => {
                let texts = items.iter().filter_map(|item| self.document.text(*item));
                texts.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        });
        // Only patterns of both lists: two different ones need not have a name in common.
        let is_allowed = |pattern: &&String| known.as_ref().is_none_or(|known| known.contains(pattern));
        let allowed: Vec<String> = patterns.iter().filter(is_allowed).cloned().collect();
        let items = allowed
            .into_iter()
            .map(|pattern| self.document.add(Kind::String(pattern), at))
            .collect();
        self.replace("include", Kind::List(items), at);
    }

    /// Adds patterns of tools to the denied ones.
    pub(crate) fn exclude(&mut self, patterns: &[String], at: NodeId) {
        let new: Vec<NodeId> = patterns
            .iter()
            .map(|pattern| self.document.add(Kind::String(pattern.clone()), at))
            .collect();
        if new.is_empty() {
            return;
        }
        let known = self.entries.iter().find(|(key, _)| key == "exclude");
        let mut items = match known.map(|(_, known)| self.document.kind(*known)) {
            Some(Kind::List(items)) => items.clone(),
            _ => Vec::new(),
        };
        items.extend(new);
        self.replace("exclude", Kind::List(items), at);
    }

    /// Refuses the server, since it would do something else here than in its client.
    pub(crate) fn refuse(&mut self, at: NodeId, reason: impl Into<String>, hint: &str) {
        if self.refusal.is_none() {
            self.refusal = Some(Remark::new(at, reason, hint));
        }
    }

    pub(crate) fn remark(&mut self, at: NodeId, message: impl Into<String>, hint: &str) {
        self.remarks.push(Remark::new(at, message, hint));
    }

    /// Refuses a server with a key that has no counterpart, if the key is there and neither `false` nor empty.
    pub(crate) fn refuse_key(&mut self, key: &'static str, reason: &str, hint: &str) {
        if let Some(at) = self.get(key) {
            let is_off = match self.document.kind(at) {
                Kind::Bool(false) => true,
                Kind::List(items) => items.is_empty(),
                Kind::Map(_) => {
                    let enabled = self.document.get(at, "enabled");
                    enabled.is_some_and(|at| matches!(self.document.kind(at), Kind::Bool(false)))
                }
                _ => false,
            };
            if !is_off {
                self.refuse(at, format!("`{key}` {reason}"), hint);
            }
        }
    }

    /// Translates the variables in the texts of a value.
    pub(crate) fn translated(&mut self, at: NodeId) -> NodeId {
        let kind = match self.document.kind(at).clone() {
            Kind::String(text) => match self.variables.translate(&text) {
                Ok(Cow::Borrowed(_)) => return at,
                Ok(Cow::Owned(translated)) if translated == text => return at,
                Ok(Cow::Owned(translated)) => Kind::String(translated),
                Err(reason) => {
                    self.refuse(at, reason, "");
                    return at;
                }
            },
            Kind::List(items) => Kind::List(items.into_iter().map(|item| self.translated(item)).collect()),
            Kind::Map(entries) => {
                let entries = entries.into_iter();
                Kind::Map(
                    entries
                        .map(|(key, value)| (key, self.translated(value)))
                        .collect(),
                )
            }
            _ => return at,
        };
        self.document.add(kind, at)
    }

    /// Ends the translation. Keys that were not read are the client's own: those that would restrict the server refuse it, and
    /// the others are ignored with a remark.
    pub(crate) fn finish(mut self, name: &str) -> ClientServer {
        let mut ignored = Vec::new();
        for (key, at) in self.unread() {
            if APPROVALS.contains(&key.as_str()) {
                self.remarks.push(ignored_approval(&key, at));
            } else {
                self.refuse_restriction(&key, at);
                ignored.push((key, at));
            }
        }
        if let [(_, at), ..] = ignored.as_slice() {
            let keys: Vec<&str> = ignored.iter().map(|(key, _)| key.as_str()).collect();
            let message = match keys.as_slice() {
                [key] => format!("the key `{}` is ignored", names::shown(key)),
                keys => format!("the keys {} are ignored", names::list(keys)),
            };
            self.remarks.push(Remark::new(*at, message, ""));
        }
        self.end(name, false)
    }

    /// Ends the translation. Keys that were not read are ours, or reported as unknown by the reader of our form; unknown ones
    /// that would restrict the server refuse it.
    pub(crate) fn finish_with_ours(mut self, name: &str) -> ClientServer {
        for (key, at) in self.unread() {
            if !OURS.contains(&key.as_str()) && !APPROVALS.contains(&key.as_str()) {
                self.refuse_restriction(&key, at);
            }
            self.set(&key, at);
        }
        self.end(name, true)
    }

    fn unread(&self) -> Vec<(String, NodeId)> {
        let entries = self.document.entries(self.at).iter();
        let unread = entries.filter(|(key, _)| !self.read.contains(&key.as_str()));
        unread.cloned().collect()
    }

    fn refuse_restriction(&mut self, key: &str, at: NodeId) {
        if HARMLESS.contains(&key) {
            return;
        }
        let lower = key.to_ascii_lowercase();
        if RESTRICTIONS.iter().any(|part| lower.contains(part)) {
            let reason = format!("`{}` may restrict it and is not understood", names::shown(key));
            self.refuse(at, reason, "write `include` and `exclude`, or remove the key");
        }
    }

    fn end(mut self, name: &str, is_lenient: bool) -> ClientServer {
        self.drop_keys_of_programs();
        let settings = self.document.add(Kind::Map(self.entries), self.at);
        ClientServer {
            name: name.to_owned(),
            settings,
            refusal: self.refusal,
            remarks: self.remarks,
            is_lenient,
        }
    }
}

/// Returns the remark about a key that would approve calls.
fn ignored_approval(key: &str, at: NodeId) -> Remark {
    Remark::new(
        at,
        format!("`{key}` is ignored: it would approve calls without asking"),
        "what may be called is decided by the policy of this gateway",
    )
}
