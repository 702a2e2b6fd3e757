use raw_json::{JsonKind, RawJson};

use super::meta::with_meta;
use crate::{framing::push_string, param_key::META};

/// Parameters of a request: an object, and members that follow its own.
///
/// The parts are joined when the message is written, so that a large one is copied once.
///
/// # Examples
///
/// ```
/// use mcp_wire::Params;
/// use raw_json::RawJson;
///
/// let mut params = Params::from(RawJson::parse(r#"{ "name": "add" }"#)?);
/// params.push("arguments", RawJson::object());
/// params.add_to_meta(&[("traceparent", RawJson::from("00-..-01"))]);
/// assert_eq!(
///     mcp_wire::request(7, "tools/call", &params),
///     br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{ "name": "add","arguments":{},"_meta":{"traceparent":"00-..-01"}}}"#,
/// );
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    object: Option<RawJson>,
    members: Vec<(&'static str, RawJson)>,
    /// Members of `_meta` after all its others. Empty if `object` has a `_meta`.
    meta: Vec<(&'static str, RawJson)>,
}

impl Params {
    /// Returns `true` if there is no parameter to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.object.is_none() && self.members.is_empty() && self.meta.is_empty()
    }

    /// Returns the member with this key, as [`RawJson::get`] does.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<RawJson> {
        if key == META && !self.meta.is_empty() {
            return Some(added(
                self.meta_member().unwrap_or(&RawJson::object()),
                &self.meta,
            ));
        }
        let member = self.members.iter().find(|(name, _)| *name == key);
        member
            .map(|(_, value)| value.clone())
            .or_else(|| self.object.as_ref()?.get(key))
    }

    /// Appends a member. The caller guarantees that no other has this key. Parameters that are not an object are dropped:
    /// the protocol knows no others.
    pub fn push(&mut self, key: &'static str, value: RawJson) {
        self.object.take_if(|object| object.kind() != JsonKind::Object);
        self.members.push((key, value));
    }

    /// Adds members to `_meta`, replacing those with the same keys. Values that are not objects are treated as empty
    /// objects.
    pub fn add_to_meta(&mut self, members: &[(&str, RawJson)]) {
        let pushed = std::mem::take(&mut self.meta);
        if let Some((_, meta)) = self.members.iter_mut().find(|(name, _)| *name == META) {
            let whole = if pushed.is_empty() {
                meta.clone()
            } else {
                added(meta, &pushed)
            };
            *meta = added(&whole, members);
        } else if self.object_has_meta() {
            self.object = Some(with_meta(self.object.as_ref(), members));
        } else {
            self.push(META, added(&added(&RawJson::object(), &pushed), members));
        }
    }

    /// Appends a member to `_meta`. The caller guarantees that no other, present or future, has this key. Parameters that
    /// are not an object are dropped, and so is a `_meta` that is not one.
    pub fn push_to_meta(&mut self, key: &'static str, value: RawJson) {
        self.object.take_if(|object| object.kind() != JsonKind::Object);
        match self.meta_member() {
            Some(meta) if meta.kind() != JsonKind::Object => self.add_to_meta(&[(key, value)]),
            None if self.object_has_meta() => self.add_to_meta(&[(key, value)]),
            _ => self.meta.push((key, value)),
        }
    }

    /// Adds the members of an object to `_meta` as [`add_to_meta`](Self::add_to_meta) does. The object is copied unchanged
    /// if `_meta` has no members except those of [`push_to_meta`](Self::push_to_meta).
    pub fn add_object_to_meta(&mut self, object: &RawJson) {
        if self.meta_member().is_none() && !self.object_has_meta() {
            self.push(META, object.clone());
        } else {
            let members: Vec<_> = object.members().collect();
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| (&**key, value.clone()))
                .collect();
            self.add_to_meta(&members);
        }
    }

    fn meta_member(&self) -> Option<&RawJson> {
        let member = self.members.iter().find(|(name, _)| *name == META);
        member.map(|(_, meta)| meta)
    }

    fn object_has_meta(&self) -> bool {
        self.object
            .as_ref()
            .is_some_and(|object| object.get(META).is_some())
    }

    /// Returns the parameters as JSON text; an empty object if there are none.
    #[must_use]
    pub fn to_raw(&self) -> RawJson {
        if self.is_empty() {
            return RawJson::object();
        }
        let mut text = Vec::with_capacity(self.len());
        self.write(&mut text);
        RawJson::parse(text).unwrap_or_default()
    }

    /// Upper bound of the length of the text, in bytes.
    pub(crate) fn len(&self) -> usize {
        let all = self.members.iter().chain(&self.meta);
        let members = all.map(|(key, value)| key.len() + value.len() + 4);
        12 + self.object.as_ref().map_or(0, RawJson::len) + members.sum::<usize>()
    }

    /// Writes the parameters, which must not be empty.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let text = self.object.as_ref().map_or("{}", RawJson::as_str);
        if self.members.is_empty() && self.meta.is_empty() {
            return out.extend_from_slice(text.as_bytes());
        }
        let mut is_first = open(out, text);
        let mut is_written = self.meta.is_empty();
        for (key, value) in &self.members {
            push_key(out, key, &mut is_first);
            if *key == META && !is_written {
                self.write_meta(out, value.as_str());
                is_written = true;
            } else {
                out.extend_from_slice(value.as_bytes());
            }
        }
        if !is_written {
            push_key(out, META, &mut is_first);
            self.write_meta(out, "{}");
        }
        out.push(b'}');
    }

    /// Writes `_meta`, and the pushed members after its own.
    fn write_meta(&self, out: &mut Vec<u8>, text: &str) {
        let mut is_first = open(out, text);
        for (key, value) in &self.meta {
            push_key(out, key, &mut is_first);
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
    }
}

/// Writes an object without its closing brace. Returns `true` if the object is empty.
fn open(out: &mut Vec<u8>, object: &str) -> bool {
    let open = object[..object.len() - 1].trim_ascii_end();
    out.extend_from_slice(open.as_bytes());
    open.len() == 1
}

fn push_key(out: &mut Vec<u8>, key: &str, is_first: &mut bool) {
    if !*is_first {
        out.push(b',');
    }
    *is_first = false;
    push_string(out, key);
    out.push(b':');
}

fn added(meta: &RawJson, members: &[(&str, RawJson)]) -> RawJson {
    let object = Some(meta).filter(|meta| meta.kind() == JsonKind::Object);
    object
        .unwrap_or(&RawJson::object())
        .with_members(members)
        .expect("`_meta` is an object")
}

impl From<RawJson> for Params {
    fn from(object: RawJson) -> Self {
        Some(object).into()
    }
}

impl From<&RawJson> for Params {
    fn from(object: &RawJson) -> Self {
        object.clone().into()
    }
}

impl From<Option<RawJson>> for Params {
    fn from(object: Option<RawJson>) -> Self {
        Self {
            object,
            ..Self::default()
        }
    }
}

/// The keys of the members must be distinct.
impl From<Vec<(&'static str, RawJson)>> for Params {
    fn from(members: Vec<(&'static str, RawJson)>) -> Self {
        Self {
            members,
            ..Self::default()
        }
    }
}
