use raw_json::{Kind, RawJson};

use crate::{meta::with_meta, write::push_string};

const META: &str = "_meta";

/// The parameters of a request: an object, and members that stand behind its own.
///
/// They are put together when the message is written, so that a large one among them is copied once.
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
/// # Ok::<(), raw_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    object: Option<RawJson>,
    members: Vec<(&'static str, RawJson)>,
}

impl Params {
    /// Whether there is anything to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.object.is_none() && self.members.is_empty()
    }

    /// The member with this key, as [`RawJson::get`] finds it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<RawJson> {
        let member = self.members.iter().find(|(name, _)| *name == key);
        member
            .map(|(_, value)| value.clone())
            .or_else(|| self.object.as_ref()?.get(key))
    }

    /// Adds a member behind all others, of which the caller knows that there is none with that key. Parameters that are
    /// no object are dropped: the protocol knows no others.
    pub fn push(&mut self, key: &'static str, value: RawJson) {
        self.object.take_if(|object| object.kind() != Kind::Object);
        self.members.push((key, value));
    }

    /// Adds members to `_meta`, or puts them in the place of those that have the same keys. What is no object counts as
    /// an empty one.
    pub fn add_to_meta(&mut self, members: &[(&str, RawJson)]) {
        if let Some((_, meta)) = self.members.iter_mut().find(|(name, _)| *name == META) {
            *meta = added(meta, members);
        } else if self
            .object
            .as_ref()
            .is_some_and(|object| object.get(META).is_some())
        {
            self.object = Some(with_meta(self.object.as_ref(), members));
        } else {
            self.push(META, added(&RawJson::object(), members));
        }
    }

    /// Their length in bytes, or a little more.
    pub(crate) fn len(&self) -> usize {
        let members = self
            .members
            .iter()
            .map(|(key, value)| key.len() + value.len() + 4);
        2 + self.object.as_ref().map_or(0, RawJson::len) + members.sum::<usize>()
    }

    /// Writes them; there must be any.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let text = self.object.as_ref().map_or("{}", RawJson::as_str);
        if self.members.is_empty() {
            return out.extend_from_slice(text.as_bytes());
        }
        let open = text[..text.len() - 1].trim_ascii_end();
        out.extend_from_slice(open.as_bytes());
        let mut is_first = open.len() == 1;
        for (key, value) in &self.members {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            push_string(out, key);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
    }
}

fn added(meta: &RawJson, members: &[(&str, RawJson)]) -> RawJson {
    let object = Some(meta).filter(|meta| meta.kind() == Kind::Object);
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
            members: Vec::new(),
        }
    }
}

/// Members that all have other keys.
impl From<Vec<(&'static str, RawJson)>> for Params {
    fn from(members: Vec<(&'static str, RawJson)>) -> Self {
        Self {
            object: None,
            members,
        }
    }
}
