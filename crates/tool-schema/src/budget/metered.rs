//! Values that count every access. The validator is generic over the representation of values. This one charges the
//! [meter](super::meter) for every access, and once the budget is exhausted it appears empty: no members, no items, no text.
//! So a check ends soon, for any schema and value.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{Hash, Hasher},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, SerdeJson},
};
use serde_json::{Map, Number, Value};

use super::meter::{charge, charge_text, charge_value, is_exhausted};

/// Representation of values for the validator.
pub(crate) struct Metered;

/// Value that counts accesses.
#[derive(Clone, Copy)]
pub(crate) struct MeteredNode<'a>(pub(crate) &'a Value);

/// Object that counts accesses.
pub(crate) struct MeteredObject<'a>(&'a Map<String, Value>);

/// Array that counts accesses.
pub(crate) struct MeteredArray<'a>(&'a [Value]);

/// Value that a genuine error reports. The real value is looked up by its path, so none is copied.
static SEEN: Value = Value::Null;
/// Value of an error that results from an exhausted budget only.
static EXHAUSTED: Value = Value::Bool(true);

/// Cost of an error, in steps.
const ERROR: u64 = 50;

/// Returns `true` if an error with this value was found before the budget was exhausted.
pub(crate) fn is_genuine(value: &Value) -> bool {
    *value == SEEN
}

impl Json for Metered {
    type Node<'a> = MeteredNode<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;
    const ACYCLIC: bool = SerdeJson::ACYCLIC;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut (), string: &str, f: impl FnOnce(MeteredNode<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(MeteredNode(value)))
    }
}

impl<'a> Node<'a, Metered> for MeteredNode<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        charge(1).then_some(())?;
        self.0.as_object().map(MeteredObject)
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        charge(1).then_some(())?;
        self.0.as_array().map(|items| MeteredArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str()?;
        charge_text(text).then_some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        charge(1).then_some(())?;
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        charge(1).then_some(())?;
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        charge(1) && self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        charge(1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str()?;
        charge(1 + text.len() as u64 / 32).then_some(())?;
        self.0.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equal(self.0, expected)
    }

    /// Called for each error. Creating one takes about as long as [`ERROR`] accesses.
    fn to_value(&self) -> Cow<'a, Value> {
        charge(ERROR);
        Cow::Borrowed(if is_exhausted() { &EXHAUSTED } else { &SEEN })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::identity(&self.0)
    }

    fn container_identity(&self) -> Option<NodeIdentity> {
        Node::container_identity(&self.0)
    }
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredNode<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<MeteredNode<'a>> {
        charge_value().then_some(())?;
        self.0.get(key).map(MeteredNode)
    }

    fn members(&self) -> MeteredMembers<'a> {
        MeteredMembers(self.0.iter())
    }
}

/// Iterator over the members of an object that counts accesses.
pub(crate) struct MeteredMembers<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        // Patterns are matched against names without another access.
        (charge_value() && charge_text(name)).then_some((name, MeteredNode(value)))
    }
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredNode<'a>;
    type ElementsIter = MeteredItems<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> MeteredItems<'a> {
        MeteredItems(self.0.iter())
    }

    /// Replaces the library's implementation, which hashes numbers as doubles and arrays without their brackets, so that a
    /// crafted array of a megabyte takes seconds.
    fn is_unique(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.0.len().min(4096));
        self.0
            .iter()
            .all(|item| charge_value() && seen.insert(Distinct(item)))
    }
}

/// Iterator over the items of an array that counts accesses.
pub(crate) struct MeteredItems<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for MeteredItems<'a> {
    type Item = MeteredNode<'a>;

    fn next(&mut self) -> Option<MeteredNode<'a>> {
        let item = self.0.next()?;
        charge_value().then_some(MeteredNode(item))
    }
}

/// Compares values by the equality of JSON Schema, and counts the steps: numbers by value, objects in any order of members.
fn equal(left: &Value, right: &Value) -> bool {
    if !charge(1) {
        return false;
    }
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        (Value::String(left), Value::String(right)) => {
            left.len() == right.len() && charge(left.len() as u64 / 64) && left == right
        }
        _ => jsonschema::json::cmp::equal(left, right),
    }
}

/// Value in a set of distinct ones, with the equality of JSON Schema and a hash that distinguishes different values.
struct Distinct<'a>(&'a Value);

impl PartialEq for Distinct<'_> {
    fn eq(&self, other: &Self) -> bool {
        equal(self.0, other.0)
    }
}

impl Eq for Distinct<'_> {}

impl Hash for Distinct<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if !charge(1) {
            return;
        }
        match self.0 {
            Value::Null => state.write_u8(0),
            Value::Bool(value) => {
                state.write_u8(1);
                value.hash(state);
            }
            Value::Number(number) => {
                state.write_u8(2);
                hash_number(number, state);
            }
            Value::String(text) => {
                charge(text.len() as u64 / 32);
                state.write_u8(3);
                text.hash(state);
            }
            Value::Array(items) => {
                state.write_u8(4);
                state.write_usize(items.len());
                for item in items {
                    Distinct(item).hash(state);
                }
            }
            Value::Object(members) => {
                state.write_u8(5);
                // Sorted, so that equal objects have equal hashes.
                let mut members: Vec<_> = members.iter().collect();
                charge(members.len() as u64);
                members.sort_unstable_by_key(|(name, _)| *name);
                state.write_usize(members.len());
                for (name, value) in members {
                    name.hash(state);
                    Distinct(value).hash(state);
                }
            }
        }
    }
}

/// Hashes equal numbers alike: whole numbers as integers, in any notation.
fn hash_number<H: Hasher>(number: &Number, state: &mut H) {
    if let Some(integer) = number.as_i64() {
        i128::from(integer).hash(state);
    } else if let Some(integer) = number.as_u64() {
        i128::from(integer).hash(state);
    } else if let Some(double) = number.as_f64() {
        if double.fract() == 0.0 && double.abs() <= u64::MAX as f64 {
            (double as i128).hash(state);
        } else {
            double.to_bits().hash(state);
        }
    }
}
