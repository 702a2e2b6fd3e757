//! Discriminated unions: alternatives (`oneOf`, `anyOf`) that each fix the value of one property by `const` or `enum`.
//! The fixed property tells which alternative a value means, as the `discriminator` of OpenAPI 3.1 does.

use serde_json::Value;

use crate::reference::{Target, resolve};

/// Maximum number of properties between a union and its discriminator.
const MAX_STEPS: usize = 3;
/// Maximum number of subschemas read to find a discriminator.
const MAX_READ: usize = 2_000;

/// Result of reading a value's discriminator.
pub(crate) enum Choice<'a> {
    /// The value means the alternative of this index.
    Alternative(usize),
    /// The discriminator's value belongs to no alternative.
    Unknown {
        /// Property names that lead from the union to the discriminator.
        steps: Vec<&'a str>,
        /// Values that the alternatives take.
        options: Vec<&'a Value>,
    },
    /// The value has no discriminator, and every alternative requires one.
    Missing {
        /// Property names that lead from the union to the missing property.
        steps: Vec<&'a str>,
        /// Values that the alternatives take; empty if the missing property is not the discriminator itself.
        options: Vec<&'a Value>,
    },
}

/// Finds the alternative among those in `open` that `part` means. Returns `None` if no property distinguishes them.
pub(crate) fn choose<'a>(
    alternatives: &'a [Value],
    open: &[usize],
    part: &Value,
    root: &'a Value,
) -> Option<Choice<'a>> {
    let mut reader = Reader {
        root,
        n_left: MAX_READ,
    };
    let tags: Vec<(usize, Vec<Tag<'a>>)> = open
        .iter()
        .map(|&index| (index, reader.tags_of(alternatives.get(index))))
        .collect();
    let mut candidates: Vec<usize> = (0..tags.len()).collect();
    while candidates.len() > 1 {
        let found = discriminators(&tags, &candidates)
            .into_iter()
            .find_map(|steps| narrow(&tags, &candidates, &steps, part))?;
        match found {
            Narrowed::Candidates(fewer) => candidates = fewer,
            Narrowed::Choice(choice) => return Some(choice),
        }
    }
    let index = *candidates.first()?;
    Some(Choice::Alternative(tags.get(index)?.0))
}

/// Property whose values an alternative fixes.
#[derive(Debug, Clone)]
struct Tag<'a> {
    steps: Vec<&'a str>,
    options: Vec<&'a Value>,
    is_required: bool,
}

enum Narrowed<'a> {
    /// Fewer candidates than before.
    Candidates(Vec<usize>),
    /// Final result.
    Choice(Choice<'a>),
}

/// Returns the properties that every candidate fixes, with different values: those with disjoint values first, then those
/// that every candidate requires, then those near the union. The order of members in the schema does not matter unless
/// all that is equal.
fn discriminators<'a>(tags: &[(usize, Vec<Tag<'a>>)], candidates: &[usize]) -> Vec<Vec<&'a str>> {
    let Some((_, first)) = candidates.first().and_then(|&index| tags.get(index)) else {
        return Vec::new();
    };
    let mut found: Vec<(bool, bool, usize, Vec<&'a str>)> = Vec::new();
    for tag in first {
        let all: Vec<&Tag<'a>> = candidates
            .iter()
            .filter_map(|&index| tag_at(tags, index, &tag.steps))
            .collect();
        if all.len() < candidates.len() || all.iter().all(|other| other.options == tag.options) {
            continue;
        }
        let overlaps = all.iter().enumerate().any(|(index, tag)| {
            all[..index]
                .iter()
                .any(|other| tag.options.iter().any(|value| has(&other.options, value)))
        });
        let is_optional = all.iter().any(|tag| !tag.is_required);
        found.push((overlaps, is_optional, tag.steps.len(), tag.steps.clone()));
    }
    found.sort_by_key(|(overlaps, is_optional, n_steps, _)| (*overlaps, *is_optional, *n_steps));
    found.into_iter().map(|(.., steps)| steps).collect()
}

fn tag_at<'t, 'a>(
    tags: &'t [(usize, Vec<Tag<'a>>)],
    candidate: usize,
    steps: &[&str],
) -> Option<&'t Tag<'a>> {
    let (_, tags) = tags.get(candidate)?;
    tags.iter().find(|tag| tag.steps == steps)
}

/// Narrows the candidates by one discriminator. Returns `None` if it does not distinguish them for this value.
fn narrow<'a>(
    tags: &[(usize, Vec<Tag<'a>>)],
    candidates: &[usize],
    steps: &[&'a str],
    part: &Value,
) -> Option<Narrowed<'a>> {
    let fixed: Vec<(usize, &Tag<'a>)> = candidates
        .iter()
        .filter_map(|&index| Some((index, tag_at(tags, index, steps)?)))
        .collect();
    let options = || {
        let mut all: Vec<&'a Value> = Vec::new();
        for value in fixed.iter().flat_map(|(_, tag)| &tag.options) {
            if !has(&all, value) {
                all.push(value);
            }
        }
        all
    };
    let mut place = part;
    for (depth, step) in steps.iter().enumerate() {
        let Some(next) = place.as_object()?.get(*step) else {
            if fixed.iter().any(|(_, tag)| !tag.is_required) {
                return None;
            }
            let is_last = depth + 1 == steps.len();
            return Some(Narrowed::Choice(Choice::Missing {
                steps: steps[..=depth].to_vec(),
                options: if is_last { options() } else { Vec::new() },
            }));
        };
        place = next;
    }
    let fitting: Vec<usize> = fixed
        .iter()
        .filter(|(_, tag)| has(&tag.options, place))
        .map(|(index, _)| *index)
        .collect();
    if fitting.is_empty() {
        let steps = steps.to_vec();
        return Some(Narrowed::Choice(Choice::Unknown {
            steps,
            options: options(),
        }));
    }
    (fitting.len() < candidates.len()).then_some(Narrowed::Candidates(fitting))
}

/// Returns `true` if `values` contains `value`, by the equality of JSON Schema: numbers by their value.
fn has(values: &[&Value], value: &Value) -> bool {
    values.iter().any(|option| {
        *option == value || (option.is_number() && value.is_number() && option.as_f64() == value.as_f64())
    })
}

/// Reads the fixed properties of schemas, through `$ref`, `allOf` and nested unions.
struct Reader<'a> {
    root: &'a Value,
    /// Number of subschemas that may still be read: references may lead in a circle.
    n_left: usize,
}

impl<'a> Reader<'a> {
    fn tags_of(&mut self, schema: Option<&'a Value>) -> Vec<Tag<'a>> {
        schema.map_or_else(Vec::new, |schema| self.tags(schema, &[]))
    }

    fn tags(&mut self, schema: &'a Value, at: &[&'a str]) -> Vec<Tag<'a>> {
        let mut tags = Vec::new();
        let Some(members) = schema.as_object().filter(|_| self.charge()) else {
            return tags;
        };
        let required = self.required(members);
        for (name, property) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let is_required = required.contains(&name.as_str());
            let mut steps = at.to_vec();
            steps.push(name);
            if let Some(options) = self.options(property) {
                add(
                    &mut tags,
                    Tag {
                        steps,
                        options,
                        is_required,
                    },
                );
            } else if steps.len() < MAX_STEPS {
                for mut tag in self.tags(property, &steps) {
                    tag.is_required &= is_required;
                    add(&mut tags, tag);
                }
            }
        }
        for part in self.parts(members) {
            for tag in self.tags(part, at) {
                add(&mut tags, tag);
            }
        }
        for union in unions(members) {
            for tag in self.common(union, at) {
                add(&mut tags, tag);
            }
        }
        // A property may be fixed in one place and required in another, as with `allOf`.
        for tag in tags.iter_mut().filter(|tag| tag.steps.len() == at.len() + 1) {
            tag.is_required |= tag.steps.last().is_some_and(|name| required.contains(name));
        }
        tags
    }

    /// Returns the names of the required properties, including those that `$ref` and `allOf` require.
    fn required(&mut self, members: &'a serde_json::Map<String, Value>) -> Vec<&'a str> {
        let own = members.get("required").and_then(Value::as_array);
        let mut names: Vec<&str> = own.into_iter().flatten().filter_map(Value::as_str).collect();
        for part in self.parts(members) {
            if let Some(members) = part.as_object().filter(|_| self.charge()) {
                names.extend(self.required(members));
            }
        }
        names
    }

    /// Returns the properties that every alternative of a nested union fixes.
    fn common(&mut self, union: &'a [Value], at: &[&'a str]) -> Vec<Tag<'a>> {
        let mut alternatives = union.iter();
        let Some(first) = alternatives.next() else {
            return Vec::new();
        };
        let mut common = self.tags(first, at);
        for alternative in alternatives {
            let tags = self.tags(alternative, at);
            common.retain_mut(|tag| {
                let Some(other) = tags.iter().find(|other| other.steps == tag.steps) else {
                    return false;
                };
                tag.is_required &= other.is_required;
                for value in &other.options {
                    if !has(&tag.options, value) {
                        tag.options.push(value);
                    }
                }
                true
            });
        }
        common
    }

    /// Returns the values that a property's schema allows, if it lists them.
    fn options(&mut self, schema: &'a Value) -> Option<Vec<&'a Value>> {
        let members = schema.as_object().filter(|_| self.charge())?;
        if let Some(value) = members.get("const") {
            return Some(vec![value]);
        }
        if let Some(values) = members.get("enum").and_then(Value::as_array) {
            return Some(values.iter().collect());
        }
        if let Some(options) = self
            .parts(members)
            .into_iter()
            .find_map(|part| self.options(part))
        {
            return Some(options);
        }
        let union = unions(members).next()?;
        let mut all = Vec::new();
        for alternative in union {
            all.extend(self.options(alternative)?);
        }
        Some(all)
    }

    /// Returns the schemas that apply to the same value: the target of `$ref` and the members of `allOf`.
    fn parts(&self, members: &'a serde_json::Map<String, Value>) -> Vec<&'a Value> {
        let target = members.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|reference| match resolve(self.root, &[], reference) {
            Target::Part(part) => Some(part),
            Target::Elsewhere => None,
        });
        let all = members.get("allOf").and_then(Value::as_array);
        target.into_iter().chain(all.into_iter().flatten()).collect()
    }

    fn charge(&mut self) -> bool {
        self.n_left = self.n_left.saturating_sub(1);
        self.n_left > 0
    }
}

fn unions<'a>(members: &'a serde_json::Map<String, Value>) -> impl Iterator<Item = &'a [Value]> + use<'a> {
    ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|keyword| members.get(keyword)?.as_array().map(Vec::as_slice))
}

/// Adds a property to those of one alternative. If two schemas fix it, the shorter list of values counts.
fn add<'a>(tags: &mut Vec<Tag<'a>>, tag: Tag<'a>) {
    match tags.iter_mut().find(|other| other.steps == tag.steps) {
        None => tags.push(tag),
        Some(other) => {
            other.is_required |= tag.is_required;
            if tag.options.len() < other.options.len() {
                other.options = tag.options;
            }
        }
    }
}
