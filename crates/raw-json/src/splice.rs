use crate::{Error, ErrorKind, Kind, RawJson, members::Spans, raw::push_string};

impl RawJson {
    /// This object with members added, or put in the place of those that have the same keys. Every other member
    /// keeps its own bytes and its place.
    ///
    /// # Errors
    /// When this is no object.
    pub fn with_members(&self, members: &[(&str, Self)]) -> Result<Self, Error> {
        let text = self.object_text()?;
        let added: usize = members
            .iter()
            .map(|(key, value)| key.len() + value.len() + 4)
            .sum();
        let mut out = String::with_capacity(text.len() + added);
        // What has been copied of the old text so far, and which of the new members found a place in it.
        let mut copied = 0;
        let mut placed = Vec::new();
        let mut empty = true;
        for span in Spans::new(text) {
            empty = false;
            let Some(index) = members.iter().position(|(name, _)| *name == span.key) else {
                continue;
            };
            out.push_str(&text[copied..span.value.start]);
            out.push_str(members[index].1.as_str());
            copied = span.value.end;
            placed.push(index);
        }
        out.push_str(&text[copied..text.len() - 1]);
        let rest = members.iter().enumerate();
        for (_, (key, value)) in rest.filter(|(index, _)| !placed.contains(index)) {
            if !empty {
                out.push(',');
            }
            empty = false;
            push_string(&mut out, key);
            out.push(':');
            out.push_str(value.as_str());
        }
        out.push('}');
        Ok(Self::trusted(out))
    }

    /// This object without the members that have one of these keys; every other member keeps its own bytes.
    ///
    /// # Errors
    /// When this is no object.
    pub fn without_members(&self, keys: &[&str]) -> Result<Self, Error> {
        let text = self.object_text()?;
        if !Spans::new(text).any(|span| keys.contains(&&*span.key)) {
            return Ok(self.clone());
        }
        let mut out = String::with_capacity(text.len());
        out.push('{');
        for span in Spans::new(text).filter(|span| !keys.contains(&&*span.key)) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&text[span.member]);
        }
        out.push('}');
        Ok(Self::trusted(out))
    }

    fn object_text(&self) -> Result<&str, Error> {
        if self.kind() == Kind::Object {
            Ok(self.as_str())
        } else {
            Err(Error::new(ErrorKind::Unexpected("an object"), 0))
        }
    }
}
