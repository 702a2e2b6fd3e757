use crate::{
    JsonError, JsonErrorKind, JsonKind, RawJson,
    members::Spans,
    raw_json::{SPACE, push_string},
    value_index::ValueIndexBuilder,
};

impl RawJson {
    /// Returns this object with `members` added. A member with the same key is replaced in its position. All other
    /// members keep their bytes and their order.
    ///
    /// # Errors
    /// Returns an error if this is not an object.
    pub fn with_members(&self, members: &[(&str, Self)]) -> Result<Self, JsonError> {
        let text = self.object_text()?;
        let length = text.len() + length_of(members);
        let (mut out, mut builder) = (
            String::with_capacity(length),
            ValueIndexBuilder::for_length(length),
        );
        splice(&mut out, self.spans(), members, &mut builder);
        Ok(Self::from_indexed_text(out, builder))
    }

    /// Returns this object with a member appended. The caller guarantees that it has no member with this key.
    ///
    /// # Errors
    /// Returns an error if this is not an object.
    pub fn with_new_member(&self, key: &str, value: &Self) -> Result<Self, JsonError> {
        let text = self.object_text()?;
        let rest = text[..text.len() - 1].trim_end_matches(SPACE);
        let length = rest.len() + key.len() + value.len() + 5;
        let (mut out, mut builder) = (
            String::with_capacity(length),
            ValueIndexBuilder::for_length(length),
        );
        out.push_str(rest);
        builder.copy_from(self.value_index.as_deref(), rest, 0);
        if rest.len() > 1 {
            out.push(',');
        }
        push_string(&mut out, key);
        out.push(':');
        push_value(&mut out, value, &mut builder);
        out.push('}');
        Ok(Self::from_indexed_text(out, builder))
    }

    /// Returns this object with `members` added to the nested object under `key`: [`with_members`](Self::with_members)
    /// one level down. A value under that key that is not an object is replaced by one.
    ///
    /// # Examples
    ///
    /// ```
    /// use raw_json::RawJson;
    ///
    /// let params = RawJson::parse(r#"{"name": "x", "_meta": {"a": 1}}"#)?;
    /// let params = params.with_members_in("_meta", &[("b", RawJson::from(2))])?;
    /// assert_eq!(params.as_str(), r#"{"name": "x", "_meta": {"a": 1,"b":2}}"#);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if this is not an object.
    pub fn with_members_in(&self, key: &str, members: &[(&str, Self)]) -> Result<Self, JsonError> {
        let text = self.object_text()?;
        let mut out = String::with_capacity(text.len() + key.len() + 6 + length_of(members));
        let mut copied = 0;
        let mut empty = true;
        // Range of the new object in the output: if the key occurs twice, both values are replaced by it.
        let mut made = None;
        for span in self.spans() {
            empty = false;
            if span.key(text) != key {
                continue;
            }
            out.push_str(&text[copied..span.value]);
            copied = span.end;
            let start = out.len();
            match made.clone() {
                Some(made) => out.extend_from_within(made),
                None => {
                    let old = self.part(&text[span.value..span.end]);
                    let old = if old.kind() == JsonKind::Object {
                        old
                    } else {
                        Self::object()
                    };
                    splice(
                        &mut out,
                        old.spans(),
                        members,
                        &mut ValueIndexBuilder::for_length(0),
                    );
                    made = Some(start..out.len());
                }
            }
        }
        out.push_str(&text[copied..text.len() - 1]);
        if made.is_none() {
            if !empty {
                out.push(',');
            }
            push_string(&mut out, key);
            out.push(':');
            splice(
                &mut out,
                Self::object().spans(),
                members,
                &mut ValueIndexBuilder::for_length(0),
            );
        }
        out.push('}');
        Ok(Self::from_trusted(out))
    }

    /// Returns this object without the members that have one of `keys`. All other members keep their bytes.
    ///
    /// # Errors
    /// Returns an error if this is not an object.
    pub fn without_members(&self, keys: &[&str]) -> Result<Self, JsonError> {
        let text = self.object_text()?;
        if !self.spans().any(|span| keys.contains(&&*span.key(text))) {
            return Ok(self.clone());
        }
        let mut out = String::with_capacity(text.len());
        out.push('{');
        for span in self.spans().filter(|span| !keys.contains(&&*span.key(text))) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&text[span.key..span.end]);
        }
        out.push('}');
        Ok(Self::from_trusted(out))
    }

    fn object_text(&self) -> Result<&str, JsonError> {
        if self.kind() == JsonKind::Object {
            Ok(self.as_str())
        } else {
            Err(JsonError::new(JsonErrorKind::Unexpected("an object"), 0))
        }
    }
}

/// Upper bound of the bytes that these members add to an object.
fn length_of(members: &[(&str, RawJson)]) -> usize {
    let lengths = members.iter().map(|(key, value)| key.len() + value.len() + 4);
    lengths.sum()
}

/// Appends the value of a member.
fn push_value(out: &mut String, value: &RawJson, builder: &mut ValueIndexBuilder) {
    builder.add(out.len(), out.len() + value.len());
    builder.copy_from(value.value_index.as_deref(), value.as_str(), out.len());
    out.push_str(value.as_str());
}

/// Appends an object with `members` added or replaced by key.
fn splice(out: &mut String, old: Spans<'_>, members: &[(&str, RawJson)], builder: &mut ValueIndexBuilder) {
    let (text, value_index) = (old.text, old.value_index);
    let copy = |out: &mut String, part: &str, builder: &mut ValueIndexBuilder| {
        builder.copy_from(value_index, part, out.len());
        out.push_str(part);
    };
    // Offset up to which the old text is copied, and the indexes of the new members that replaced an old one.
    let mut copied = 0;
    let mut placed = Vec::new();
    let mut empty = true;
    for span in old {
        empty = false;
        let key = span.key(text);
        let Some(index) = members.iter().position(|(name, _)| *name == key) else {
            continue;
        };
        copy(out, &text[copied..span.value], builder);
        push_value(out, &members[index].1, builder);
        copied = span.end;
        placed.push(index);
    }
    copy(out, &text[copied..text.len() - 1], builder);
    let rest = members.iter().enumerate();
    for (_, (key, value)) in rest.filter(|(index, _)| !placed.contains(index)) {
        if !empty {
            out.push(',');
        }
        empty = false;
        push_string(out, key);
        out.push(':');
        push_value(out, value, builder);
    }
    out.push('}');
}
