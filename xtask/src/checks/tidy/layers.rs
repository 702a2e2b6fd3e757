//! The page about the way of a call names the layers that there are, in their order.

use crate::support::console::Violation;
use crate::support::repository::Repository;

const PAGE: &str = "docs/src/explanation/the-way-of-a-call.md";
const STACK: &str = "crates/toolplane/src/stack.rs";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let (Some(page), Some(stack)) = (repository.text(PAGE), repository.text(STACK)) else {
        return Vec::new();
    };
    let mut layers: Vec<_> = stack.lines().filter_map(layer).collect();
    layers.push("executor".to_owned());
    let told = [("the diagram", drawn(&page)), ("the list", listed(&page))];
    told.into_iter()
        .filter(|(_, told)| *told != layers)
        .map(|(what, told)| {
            let place = told.iter().zip(&layers).take_while(|(one, other)| one == other);
            let place = place.count();
            let name = |names: &[String]| {
                names
                    .get(place)
                    .map_or("nothing", |name| name.as_str())
                    .to_owned()
            };
            let (told, there) = (name(&told), name(&layers));
            let message = format!(
                "{what} has `{told}` as layer {}, and `{STACK}` has `{there}`",
                place + 1
            );
            Violation::in_file(PAGE, message)
        })
        .collect()
}

/// The layer that a line of the stack puts there, in words: `.then(ResultValidationLayer)` is `validate result`.
fn layer(line: &str) -> Option<String> {
    let rest = line.trim_start();
    let rest = rest
        .strip_prefix(".then(")
        .or_else(|| Some(rest.split_once("Layers::outermost(")?.1))?;
    let rest = rest.strip_prefix("layers.").unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let mut words = String::new();
    for letter in rest[..end].chars() {
        if letter == '_' || letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase().filter(|letter| *letter != '_'));
    }
    Some(words)
}

/// The layers of the diagram: the first block of the page.
fn drawn(page: &str) -> Vec<String> {
    let block = page.split("```").nth(1).unwrap_or_default();
    let names = block.trim_start_matches("text").split('>');
    names.map(|name| name.trim().to_owned()).collect()
}

/// The layers of the list: the first words in bold of each item.
fn listed(page: &str) -> Vec<String> {
    let items = page
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    items
        .filter_map(|line| line.split("**").nth(1))
        .map(str::to_lowercase)
        .collect()
}
