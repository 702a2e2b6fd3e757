/// URI template (RFC 6570), as far as needed to tell which URIs it may produce.
///
/// A simple expression such as `{id}` matches at least one character and no `/`, unless it is the last part of its
/// template. An expression with the operator `+`, `#`, `/`, `?`, `&`, `;` or `.` and one with `*` match any text.
/// Matching takes time in the order of the length of the URI and the number of expressions: it backtracks only over
/// the last expression that matches any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// At least one character, and no `/`.
    Segment,
    /// Any text, including none.
    Any,
}

/// Maximum number of parts of a template. A longer one matches nothing.
const MAX_PARTS: usize = 64;

impl UriTemplate {
    /// Parses a template. A malformed one is literal from the error on.
    #[must_use]
    pub fn new(template: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, tail)) = rest.split_once('{') {
            let Some((expression, tail)) = tail.split_once('}') else {
                break;
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let is_any =
                expression.starts_with(['+', '#', '/', '?', '&', ';', '.']) || expression.contains('*');
            parts.push(if is_any { Part::Any } else { Part::Segment });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        if let Some(last @ Part::Segment) = parts.last_mut() {
            *last = Part::Any;
        }
        Self(parts)
    }

    /// Returns `true` if the template may produce this URI.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        // A template without a literal would match the URIs of others.
        let has_literal = matches!(self.0.first(), Some(Part::Literal(_)));
        has_literal && self.0.len() <= MAX_PARTS && matches(&self.0, uri)
    }
}

/// Finds the possible ends of a prefix of the parts in the text, part by part.
fn matches(parts: &[Part], text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut ends = vec![false; bytes.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; bytes.len() + 1];
        match part {
            Part::Literal(literal) => {
                let literal = literal.as_bytes();
                for start in (0..ends.len()).filter(|start| ends[*start]) {
                    if bytes[start..].starts_with(literal) {
                        next[start + literal.len()] = true;
                    }
                }
            }
            Part::Segment => {
                let mut is_open = false;
                for end in 1..next.len() {
                    is_open = (is_open || ends[end - 1]) && bytes[end - 1] != b'/';
                    next[end] = is_open;
                }
            }
            Part::Any => {
                let first = ends.iter().position(|is_end| *is_end);
                if let Some(first) = first {
                    next[first..].fill(true);
                }
            }
        }
        ends = next;
    }
    ends[bytes.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_what_may_come_of_it() {
        for (template, uri, fits) in [
            ("demo://text/{id}", "demo://text/7", true),
            ("demo://text/{id}", "demo://text/", true),
            ("demo://text/{id}", "demo://blob/7", false),
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/1/2/data", false),
            ("test://template/{id}/data", "test://template//data", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("file:///{path}", "file:///a/b/c.txt", true),
            ("db://{table}/rows{?limit}", "db://users/rows?limit=3", true),
            ("db://{table}/rows{?limit}", "db://users/rows", true),
            ("{+anything}", "file:///etc/passwd", false),
            ("a{b}c{d}e", "axcyce", true),
            ("plain://text", "plain://text", true),
            ("plain://text", "plain://texts", false),
            ("open://{never", "open://{never", true),
        ] {
            assert_eq!(UriTemplate::new(template).matches(uri), fits, "{template} {uri}");
        }
    }

    #[test]
    fn a_template_with_too_many_parts_matches_nothing() {
        let template = UriTemplate::new(&"a{b}".repeat(40));
        assert!(!template.matches(&"ab".repeat(40)));
    }
}
