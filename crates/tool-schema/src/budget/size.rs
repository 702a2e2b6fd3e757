use serde_json::Value;

/// Size of a value.
#[derive(Default)]
pub(crate) struct Size {
    pub n_values: u64,
    pub depth: u64,
    /// Cost of its text for matching patterns.
    pub text: u64,
    pub byte_price: u64,
}

impl Size {
    /// Adds a value and everything in it, until the size exceeds `most`.
    pub(crate) fn add(&mut self, value: &Value, depth: u64, most: u64) {
        self.n_values += 1;
        self.depth = self.depth.max(depth);
        if self.n_values.saturating_add(self.text) > most {
            return;
        }
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => {
                for item in items {
                    self.add(item, depth + 1, most);
                    if self.n_values.saturating_add(self.text) > most {
                        return;
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_text(name);
                    self.add(member, depth + 1, most);
                    if self.n_values.saturating_add(self.text) > most {
                        return;
                    }
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        let length = text.len() as u64;
        self.text = self
            .text
            .saturating_add(length.saturating_mul(self.byte_price) + length / 1024);
    }
}
