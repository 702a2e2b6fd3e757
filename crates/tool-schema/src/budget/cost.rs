//! Cost estimate of a schema before it is compiled: its size with expanded references, and the cost of a check.

use std::collections::HashMap;

use serde_json::Value;

use super::{meter::Price, pattern};
use crate::{
    SchemaError, SchemaErrorKind,
    reference::{Target, resolve},
};

/// Maximum length of a schema's text, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// Maximum nesting of a schema's text.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of subschemas of a schema.
pub const MAX_SUBSCHEMAS: usize = 2_000;
/// Maximum number of subschemas of a schema with expanded references.
pub const MAX_EXPANSION: u64 = 10_000;

/// Maximum nesting of subschemas that are tried on one value: references and combinations.
const MAX_IN_PLACE_DEPTH: u64 = 64;
/// Maximum length of a path through subschemas, where each reference is a step.
const MAX_PATH: u64 = 256;

/// Upper bounds of the cost of a check against a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchemaCost {
    /// Maximum cost of one value: the subschemas with expanded references, and their contents.
    pub(crate) weight: u64,
    /// Prices of the steps of a counted check.
    pub(crate) price: Price,
    /// Maximum nesting of subschemas on one value.
    pub(crate) in_place_depth: u64,
    /// `true` if the weight is no bound: the schema is recursive, refers to parts that only the library finds, or has keywords
    /// that visit the same value repeatedly.
    pub(crate) unbounded: bool,
    /// `true` if the schema contains `uniqueItems`.
    pub(crate) unique_items: bool,
    /// Sum of the sizes of all subschemas with expanded references: the cost of compiling each alone.
    pub(crate) cost_of_parts: u64,
}

/// Keywords whose subschemas are tried on the same value.
pub(crate) const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
pub(crate) const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
pub(crate) const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose subschemas are tried on parts of the value.
pub(crate) const BELOW: [&str; 7] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
];
pub(crate) const BELOW_LISTS: [&str; 2] = ["items", "prefixItems"];
pub(crate) const BELOW_MAPS: [&str; 2] = ["properties", "patternProperties"];
/// Keywords whose subschemas are tried only by reference.
pub(crate) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose targets or cost cannot be determined here.
const OPAQUE: [&str; 4] = [
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Estimates the cost of a schema.
///
/// # Errors
/// [`SchemaErrorKind::TooLarge`] if a limit is exceeded.
pub(crate) fn estimate_cost(root: &Value) -> Result<SchemaCost, SchemaError> {
    let mut graph = Graph::new(root);
    graph.read()?;
    graph.measure()
}

/// Graph of the subschemas of a document, with an edge for each nested or referenced subschema.
struct Graph<'a> {
    root: &'a Value,
    nodes: Vec<Node<'a>>,
    /// Numbers of the subschemas by their address, since the document does not move meanwhile.
    known: HashMap<usize, usize>,
    anchors: Vec<(&'a str, &'a Value)>,
    opaque: bool,
    unique_items: bool,
    byte_price: u64,
}

struct Node<'a> {
    schema: &'a Value,
    in_place: Vec<usize>,
    below: Vec<usize>,
    weight: u64,
}

/// Measures of a subschema, including everything that it leads to.
#[derive(Clone, Copy)]
struct Measure {
    weight: u64,
    expansion: u64,
    path: u64,
}

impl Measure {
    const ONE: Self = Self {
        weight: 1,
        expansion: 1,
        path: 1,
    };
}

impl<'a> Graph<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            nodes: Vec::new(),
            known: HashMap::new(),
            anchors: Vec::new(),
            opaque: false,
            unique_items: false,
            byte_price: 0,
        }
    }

    /// Returns the number of a subschema, which is assigned on the first call.
    fn node(&mut self, schema: &'a Value) -> Result<usize, SchemaError> {
        let next = self.nodes.len();
        let index = *self
            .known
            .entry(std::ptr::from_ref(schema) as usize)
            .or_insert(next);
        if index == next {
            if next == MAX_SUBSCHEMAS {
                return Err(too_large(&format!("more than {MAX_SUBSCHEMAS} subschemas")));
            }
            self.nodes.push(Node {
                schema,
                in_place: Vec::new(),
                below: Vec::new(),
                weight: 1,
            });
        }
        Ok(index)
    }

    /// Finds all subschemas: first the nested ones, then the targets of references.
    fn read(&mut self) -> Result<(), SchemaError> {
        self.node(self.root)?;
        let mut next = 0;
        let mut referring = 0;
        loop {
            while next < self.nodes.len() {
                self.read_keywords(next)?;
                next += 1;
            }
            while referring < self.nodes.len() {
                self.read_reference(referring)?;
                referring += 1;
            }
            if next == self.nodes.len() {
                return Ok(());
            }
        }
    }

    fn read_keywords(&mut self, index: usize) -> Result<(), SchemaError> {
        let schema = self.nodes[index].schema;
        let Some(members) = schema.as_object() else {
            return Ok(());
        };
        let (mut in_place, mut below) = (Vec::new(), Vec::new());
        let mut patterns: u64 = 0;
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            if IN_PLACE.contains(&keyword) {
                in_place.push(self.node(value)?);
            } else if IN_PLACE_LISTS.contains(&keyword) {
                self.list(value, &mut in_place)?;
            } else if IN_PLACE_MAPS.contains(&keyword) {
                self.map(value, &mut in_place)?;
            } else if BELOW_LISTS.contains(&keyword) && value.is_array() {
                self.list(value, &mut below)?;
            } else if BELOW.contains(&keyword) {
                below.push(self.node(value)?);
            } else if BELOW_MAPS.contains(&keyword) {
                self.map(value, &mut below)?;
            } else if DEFINITIONS.contains(&keyword) {
                self.map(value, &mut Vec::new())?;
            }
            self.opaque |= OPAQUE.contains(&keyword);
            self.nodes[index].weight += match keyword {
                "enum" | "const" => n_values(value) / 8,
                "required" => value.as_array().map_or(0, Vec::len) as u64 / 4,
                _ => 0,
            };
            patterns += match (keyword, value) {
                ("pattern", Value::String(pattern)) => pattern::states(pattern),
                ("patternProperties", Value::Object(members)) => {
                    members.keys().map(|pattern| pattern::states(pattern)).sum()
                }
                _ => 0,
            };
            self.unique_items |= keyword == "uniqueItems" && *value == Value::Bool(true);
            self.read_name(index, keyword, value);
        }
        self.byte_price = self.byte_price.max(patterns.div_ceil(64));
        self.nodes[index].in_place = in_place;
        self.nodes[index].below = below;
        Ok(())
    }

    /// Reads the names of a subschema: anchors, and identifiers, which change the base of references.
    fn read_name(&mut self, index: usize, keyword: &str, value: &'a Value) {
        let Some(name) = value.as_str() else { return };
        match keyword {
            "$anchor" | "$dynamicAnchor" => self.anchors.push((name, self.nodes[index].schema)),
            "$id" | "id" => match name.strip_prefix('#') {
                Some(name) => self.anchors.push((name, self.nodes[index].schema)),
                None => self.opaque |= index > 0,
            },
            _ => {}
        }
    }

    fn list(&mut self, value: &'a Value, into: &mut Vec<usize>) -> Result<(), SchemaError> {
        for schema in value.as_array().into_iter().flatten() {
            into.push(self.node(schema)?);
        }
        Ok(())
    }

    fn map(&mut self, value: &'a Value, into: &mut Vec<usize>) -> Result<(), SchemaError> {
        for schema in value.as_object().into_iter().flat_map(serde_json::Map::values) {
            // The values of `dependencies` may be lists of names.
            if !schema.is_array() {
                into.push(self.node(schema)?);
            }
        }
        Ok(())
    }

    fn read_reference(&mut self, index: usize) -> Result<(), SchemaError> {
        let Some(reference) = self.nodes[index].schema.get("$ref").and_then(Value::as_str) else {
            return Ok(());
        };
        match resolve(self.root, &self.anchors, reference) {
            Target::Part(target) => {
                let target = self.node(target)?;
                self.nodes[index].in_place.push(target);
            }
            Target::Elsewhere => self.opaque = true,
        }
        Ok(())
    }

    /// Sums up the measures from the leaves. Each subschema is computed once, for any number of references.
    fn measure(&self) -> Result<SchemaCost, SchemaError> {
        let (order, cyclic) = self.leaves_first(|node| node.in_place.iter().chain(&node.below));
        let mut measures: Vec<Option<Measure>> = vec![None; self.nodes.len()];
        for index in order {
            let node = &self.nodes[index];
            let measure = add_up(node.weight, node.in_place.iter().chain(&node.below), &measures);
            if measure.expansion > MAX_EXPANSION {
                return Err(too_large(&format!(
                    "more than {MAX_EXPANSION} subschemas with its references written out"
                )));
            }
            if measure.path > MAX_PATH {
                return Err(too_large("references nested too deep"));
            }
            measures[index] = Some(measure);
        }
        let in_place = self.measure_in_place()?;
        Ok(SchemaCost {
            weight: measures[0].map_or(1, |measure| measure.weight),
            price: Price {
                value: in_place.expansion / 4,
                byte: self.byte_price,
            },
            in_place_depth: in_place.path,
            unbounded: cyclic || self.opaque,
            unique_items: self.unique_items,
            cost_of_parts: measures
                .iter()
                .flatten()
                .fold(0, |sum, measure| sum.saturating_add(measure.expansion)),
        })
    }

    /// Returns the measures of the subschemas that are tried on one value.
    fn measure_in_place(&self) -> Result<Measure, SchemaError> {
        let (order, cyclic) = self.leaves_first(|node| node.in_place.iter());
        let mut measures: Vec<Option<Measure>> = vec![None; self.nodes.len()];
        let mut most = Measure::ONE;
        for index in order {
            let measure = add_up(1, self.nodes[index].in_place.iter(), &measures);
            if measure.path > MAX_IN_PLACE_DEPTH {
                return Err(too_large("references nested too deep"));
            }
            most.expansion = most.expansion.max(measure.expansion);
            most.path = most.path.max(measure.path);
            measures[index] = Some(measure);
        }
        if cyclic || self.opaque {
            most.path = self.nodes.len() as u64;
        }
        Ok(most)
    }

    /// Returns the subschemas in topological order, leaves first, and `true` if the graph has a cycle (depth-first search).
    fn leaves_first<'g, I: Iterator<Item = &'g usize>>(
        &'g self,
        next: impl Fn(&'g Node<'a>) -> I,
    ) -> (Vec<usize>, bool) {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut entered = vec![false; self.nodes.len()];
        let mut left = vec![false; self.nodes.len()];
        let mut cyclic = false;
        // A subschema is visited twice: on entry, and after everything that it leads to.
        let mut stack: Vec<(usize, bool)> = (0..self.nodes.len()).map(|index| (index, false)).collect();
        while let Some((index, done)) = stack.pop() {
            if done {
                left[index] = true;
                order.push(index);
            } else if !entered[index] {
                entered[index] = true;
                stack.push((index, true));
                for target in next(&self.nodes[index]) {
                    cyclic |= entered[*target] && !left[*target];
                    stack.push((*target, false));
                }
            }
        }
        (order, cyclic)
    }
}

/// Sums up a subschema and everything that it leads to. An unmeasured subschema is part of a cycle and counts as one.
fn add_up<'g>(weight: u64, next: impl Iterator<Item = &'g usize>, measures: &[Option<Measure>]) -> Measure {
    let own = Measure {
        weight,
        ..Measure::ONE
    };
    next.map(|index| measures[*index].unwrap_or(Measure::ONE))
        .fold(own, |sum, measure| Measure {
            weight: sum.weight.saturating_add(measure.weight),
            expansion: sum.expansion.saturating_add(measure.expansion),
            path: sum.path.max(measure.path.saturating_add(1)),
        })
}

fn too_large(what: &str) -> SchemaError {
    SchemaError::new(SchemaErrorKind::TooLarge, format!("it is too large: {what}"))
}

/// The number of values in a value, itself included.
fn n_values(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(n_values).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(n_values).sum::<u64>(),
        _ => 1,
    }
}
