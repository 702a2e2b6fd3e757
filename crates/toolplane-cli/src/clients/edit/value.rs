//! Content of a client's file as a value, by parsers that the edits do not use.

use serde_json::{Map, Value, json};

use super::{Change, EditError, Slot};
use crate::clients::table::Format;

/// Key of the object that stands for a TOML value without a JSON type, such as a date. Its only member has the text of the value.
const TOML_VALUE: &str = "$toml";

/// Reads a text. An empty one is an object without members.
pub(crate) fn read(text: &str, format: Format) -> Result<Value, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = match format {
        Format::Json => {
            let plain = plain_json(text);
            match plain.trim().is_empty() {
                true => Ok(Value::Null),
                false => serde_json::from_str(&plain).map_err(|error| error.to_string()),
            }
        }
        Format::Toml => toml_value(text),
        Format::YamlMap | Format::YamlList => match text.trim().is_empty() {
            true => Ok(Value::Null),
            false => match serde_saphyr::from_str(text) {
                Ok(value) => Ok(value),
                Err(error) => return Err(yaml_error(error.without_snippet())),
            },
        },
    };
    match value {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(EditError::new("its content is not an object")),
        Err(error) => Err(EditError::new(format!(
            "it is not valid {}: {error}",
            format.title()
        ))),
    }
}

fn yaml_error(error: &serde_saphyr::Error) -> EditError {
    use serde_saphyr::{Error, UserMessageFormatter};
    let place = match error.location() {
        Some(location) if location.line() > 0 => format!(" at line {}", location.line()),
        _ => String::new(),
    };
    let message = || first_line(&error.render_with_formatter(&UserMessageFormatter));
    match error {
        Error::MultipleDocuments { .. } => EditError::with_hint(
            "it has several YAML documents",
            "keep one document in the file, or edit the entry by hand",
        ),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            EditError::new(format!("it has the key `{key}` twice{place}"))
        }
        Error::DuplicateMappingKey { key: None, .. } => EditError::new(format!("it has a key twice{place}")),
        // YAML that JSON has not: infinite numbers, and keys that are not texts.
        Error::NonFiniteFloat { .. } | Error::Unexpected { .. } => EditError::with_hint(
            format!("it has YAML that is not read: {}", message()),
            "edit the entry by hand",
        ),
        _ => EditError::new(format!("it is not valid YAML: {}", message())),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Replaces comments and trailing commas by spaces, so that the rest is JSON (RFC 8259).
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut comma = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match first {
            '/' if length > 1 => plain.push(' '),
            ',' => {
                comma = Some(plain.len());
                plain.push(',');
            }
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push_str(token);
            }
            _ => {
                if !first.is_ascii_whitespace() {
                    comma = None;
                }
                plain.push_str(token);
            }
        }
        rest = after;
    }
    plain
}

/// Returns the length of the string with which a text begins, with its quotation marks.
pub(crate) fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn toml_value(text: &str) -> Result<Value, String> {
    let document = text.parse::<toml_edit::DocumentMut>();
    let document = document.map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| format!(" at line {}", before.matches('\n').count() + 1));
        format!("{}{}", first_line(error.message()), line.unwrap_or_default())
    })?;
    Ok(table_value(document.as_table()))
}

fn table_value(table: &dyn toml_edit::TableLike) -> Value {
    let members = table.iter().map(|(key, item)| (key.to_owned(), item_value(item)));
    Value::Object(members.collect())
}

fn item_value(item: &toml_edit::Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table_value(table);
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| table_value(table)).collect();
    }
    match item.as_value() {
        Some(toml_edit::Value::Array(array)) => {
            let values = array
                .iter()
                .map(|value| item_value(&toml_edit::Item::Value(value.clone())));
            values.collect()
        }
        Some(toml_edit::Value::String(text)) => Value::String(text.value().clone()),
        Some(toml_edit::Value::Boolean(value)) => Value::Bool(*value.value()),
        Some(toml_edit::Value::Integer(value)) => Value::from(*value.value()),
        Some(toml_edit::Value::Float(value)) if value.value().is_finite() => Value::from(*value.value()),
        Some(value) => json!({TOML_VALUE: value.to_string().trim()}),
        None => Value::Null,
    }
}

/// Returns a value as one of TOML. `None` if it has a null.
pub(super) fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => {
            let values: Option<Vec<toml_edit::Value>> = values.iter().map(to_toml).collect();
            toml_edit::Array::from_iter(values?).into()
        }
        Value::Object(members) => match members.get(TOML_VALUE).and_then(Value::as_str) {
            Some(text) if members.len() == 1 => text.parse().ok()?,
            _ => {
                let members = members.iter().map(|(key, value)| Some((key, to_toml(value)?)));
                let members: Option<Vec<_>> = members.collect();
                toml_edit::InlineTable::from_iter(members?).into()
            }
        },
    })
}

/// Returns the entry of a slot, if it is there.
pub(crate) fn find<'a>(root: &'a Value, slot: Slot<'_>) -> Option<&'a Value> {
    let section = slot.section.iter().try_fold(root, |value, key| value.get(key))?;
    match slot.format {
        Format::YamlList => section
            .as_array()?
            .iter()
            .find(|entry| entry["name"] == slot.name),
        _ => section.get(slot.name),
    }
}

/// Returns the position of an entry in a list.
pub(super) fn position(root: &Value, slot: Slot<'_>) -> Option<usize> {
    let section = slot.section.iter().try_fold(root, |value, key| value.get(key))?;
    section
        .as_array()?
        .iter()
        .position(|entry| entry["name"] == slot.name)
}

/// Adds the entry to a value, and the section if it is absent.
pub(super) fn with_entry(mut root: Value, slot: Slot<'_>, entry: &Value) -> Result<Value, EditError> {
    if find(&root, slot).is_some() {
        return Err(EditError::new(format!("it has an entry `{}`", slot.name)));
    }
    let mut section = &mut root;
    for (depth, key) in slot.section.iter().enumerate() {
        if section.is_null() {
            *section = Value::Object(Map::new());
        }
        let members = section.as_object_mut().ok_or_else(|| not_usable(&slot, depth))?;
        section = members.entry(*key).or_insert(Value::Null);
    }
    let is_list = slot.format == Format::YamlList;
    if section.is_null() {
        *section = if is_list {
            Value::Array(Vec::new())
        } else {
            Value::Object(Map::new())
        };
    }
    match section {
        Value::Array(entries) if is_list => entries.push(entry.clone()),
        Value::Object(entries) if !is_list => {
            entries.insert(slot.name.to_owned(), entry.clone());
        }
        _ => return Err(not_usable(&slot, slot.section.len())),
    }
    Ok(root)
}

fn not_usable(slot: &Slot<'_>, depth: usize) -> EditError {
    let kind = match slot.format {
        Format::Json | Format::YamlMap => "an object",
        Format::Toml => "a table",
        Format::YamlList => "a list",
    };
    EditError::new(format!("`{}` is not {kind}", slot.section[..depth].join(".")))
}

/// Returns the changes that make one entry of another. `None` if one of the two is not an object.
pub(super) fn changes<'a>(known: &'a Value, wanted: &'a Value) -> Option<Vec<Change<'a>>> {
    let (known, wanted) = (known.as_object()?, wanted.as_object()?);
    let set = wanted
        .iter()
        .filter(|(key, value)| known.get(*key) != Some(value))
        .map(|(key, value)| Change::Set(key, value));
    let removed = known
        .keys()
        .filter(|key| !wanted.contains_key(*key))
        .map(|key| Change::Remove(key));
    Some(set.chain(removed).collect())
}

/// Replaces the entry in a value.
pub(super) fn with_replaced(mut root: Value, slot: Slot<'_>, entry: &Value) -> Result<Value, EditError> {
    let position = position(&root, slot);
    let section = slot
        .section
        .iter()
        .try_fold(&mut root, |value, key| value.get_mut(*key));
    let known = match (section, position) {
        (Some(Value::Array(entries)), Some(at)) => entries.get_mut(at),
        (Some(Value::Object(entries)), _) => entries.get_mut(slot.name),
        _ => None,
    };
    *known.ok_or_else(|| EditError::new(format!("it has no entry `{}`", slot.name)))? = entry.clone();
    Ok(root)
}

/// Removes the entry from a value.
pub(super) fn without_entry(mut root: Value, slot: Slot<'_>) -> Result<Value, EditError> {
    let missing = || EditError::new(format!("it has no entry `{}`", slot.name));
    let position = position(&root, slot);
    let section = slot
        .section
        .iter()
        .try_fold(&mut root, |value, key| value.get_mut(*key));
    match (section, position) {
        (Some(Value::Array(entries)), Some(at)) => {
            entries.remove(at);
        }
        (Some(Value::Object(entries)), _) => {
            entries.shift_remove(slot.name).ok_or_else(missing)?;
        }
        _ => return Err(missing()),
    }
    Ok(root)
}

/// Removes a section that has no entry: an absent one and an empty one are equal.
pub(super) fn without_empty(mut root: Value, section: &[&str]) -> Value {
    let Some((key, inner)) = section.split_first() else {
        return root;
    };
    if let Some(members) = root.as_object_mut()
        && let Some(member) = members.get_mut(*key)
    {
        *member = without_empty(member.take(), inner);
        let is_empty = match member {
            Value::Null => true,
            Value::Array(entries) => entries.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            _ => false,
        };
        if is_empty {
            members.shift_remove(*key);
        }
    }
    root
}
