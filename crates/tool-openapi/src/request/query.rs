//! Parameters of the query, by the styles of OpenAPI.

use serde_json::{Value, json};

use super::{
    parameter::Parameter,
    settings::{Builder, is_json},
};
use crate::schema::{Kinds, restrict};

impl Builder<'_, '_> {
    /// Adds a parameter of the query, or returns the reason why it cannot be sent.
    pub(super) fn send_query(&mut self, parameter: &Parameter) -> Result<(), String> {
        if self.query.contains_key(&parameter.name) {
            return Err("another parameter or credential has this name".to_owned());
        }
        let schema = self.definitions.add(&parameter.schema)?;
        let kinds = Kinds::of_schema(&schema, &self.definitions).without(Kinds::NULL);
        let is_object = kinds == Kinds::OBJECT;
        let mut separator = None;
        let schema = match &parameter.media {
            Some(media) if is_json(media) => {
                // A text or a list would not be sent as JSON.
                let allowed = Kinds::NUMBER | Kinds::BOOLEAN | Kinds::OBJECT;
                let sendable = restrict(schema, allowed, &self.definitions);
                sendable
                    .ok_or("its value is JSON, of which only objects, numbers and booleans can be sent")?
            }
            Some(media) => return Err(format!("its value is `{}`", media.escape_debug())),
            None if is_object => return self.send_members(parameter, &schema),
            None => {
                separator = separator_of(parameter)?.filter(|_| kinds.has(Kinds::ARRAY));
                self.with_lists(schema)?
            }
        };
        if parameter.keeps_reserved {
            self.warnings.push(format!(
                "the query parameter `{}` has `allowReserved`: reserved characters are percent-encoded nonetheless",
                parameter.name.escape_debug()
            ));
        }
        let schema = parameter.annotate(schema);
        let argument = self
            .arguments
            .add(&parameter.name, "query", schema, parameter.is_required);
        let value = match separator {
            Some(separator) => json!({"argument": argument, "join": separator}),
            None => json!(format!("{{{argument}}}")),
        };
        self.query.insert(parameter.name.clone(), value);
        Ok(())
    }

    /// Restricts a schema to single values and lists of them.
    fn with_lists(&self, schema: Value) -> Result<Value, String> {
        let (schema, has_lists) = self.scalar_items(schema);
        let allowed = if has_lists {
            Kinds::SCALARS | Kinds::ARRAY
        } else {
            Kinds::SCALARS
        };
        let kinds = Kinds::of_schema(&schema, &self.definitions);
        restrict(schema, allowed, &self.definitions).ok_or_else(|| match kinds.is_empty() {
            true => "its schema accepts no value".to_owned(),
            false => "its value is a list of objects or lists".to_owned(),
        })
    }

    /// Restricts lists to those of scalars. Returns `false` if none are left.
    fn scalar_items(&self, mut schema: Value) -> (Value, bool) {
        let kinds = Kinds::of_schema(&schema, &self.definitions);
        if !kinds.has(Kinds::ARRAY) {
            return (schema, false);
        }
        let items = self.definitions.resolve(&schema).get("items").cloned();
        let items = items.unwrap_or(Value::Bool(true));
        let sendable = Kinds::SCALARS | Kinds::NULL;
        let item_kinds = Kinds::of_schema(&items, &self.definitions);
        if sendable.has(item_kinds) {
            return (schema, true);
        }
        let Some(restricted) = restrict(items, Kinds::SCALARS, &self.definitions) else {
            return (schema, false);
        };
        if let Value::Object(keywords) = &mut schema {
            keywords.insert("items".to_owned(), restricted);
            (schema, true)
        } else {
            (json!({"items": restricted}), true)
        }
    }

    /// Adds the members of an object, each as a parameter of its own: `name` in the style `form`, `object[name]` in the style
    /// `deepObject`.
    fn send_members(&mut self, parameter: &Parameter, schema: &Value) -> Result<(), String> {
        let is_deep = match (parameter.style(), parameter.explodes()) {
            ("deepObject", _) => true,
            ("form", true) => false,
            (style, _) => {
                return Err(format!(
                    "its value is an object in the style `{}`",
                    style.escape_debug()
                ));
            }
        };
        let resolved = self.definitions.resolve(schema).clone();
        let members = resolved.get("properties").and_then(Value::as_object);
        let Some(members) = members.filter(|members| !members.is_empty()) else {
            return Err("its value is an object whose members are not known".to_owned());
        };
        let is_listed = |name: &str| {
            let required = resolved.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|listed| listed == name))
        };
        let mut sent = Vec::new();
        for (name, member) in members {
            let is_required = parameter.is_required && is_listed(name);
            let query_name = if is_deep {
                format!("{}[{name}]", parameter.name)
            } else {
                name.clone()
            };
            match restrict(member.clone(), Kinds::SCALARS, &self.definitions) {
                Some(member) if !self.query.contains_key(&query_name) => {
                    sent.push((query_name, member, is_required));
                }
                _ if is_required => {
                    return Err(format!("its member `{}` cannot be sent", name.escape_debug()));
                }
                _ => self.warnings.push(format!(
                    "the member `{}` of the query parameter `{}` is left out: only single values can be sent",
                    name.escape_debug(),
                    parameter.name.escape_debug()
                )),
            }
        }
        for (query_name, member, is_required) in sent {
            let argument = self.arguments.add(&query_name, "query", member, is_required);
            self.query.insert(query_name, json!(format!("{{{argument}}}")));
        }
        Ok(())
    }
}

/// Returns the separator of a list in one parameter, or `None` if each element is a parameter of its own.
fn separator_of(parameter: &Parameter) -> Result<Option<&'static str>, String> {
    let separator = match parameter.style() {
        "form" => ",",
        "spaceDelimited" => " ",
        "pipeDelimited" => "|",
        "tabDelimited" => "\t",
        "deepObject" => return Err("its style is `deepObject`, and its value no object".to_owned()),
        other => return Err(format!("its style is `{}`", other.escape_debug())),
    };
    Ok((!parameter.explodes()).then_some(separator))
}
