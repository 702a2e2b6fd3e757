use std::collections::BTreeMap;

/// Path template of an operation.
#[derive(Debug)]
pub(super) struct PathTemplate {
    pieces: Vec<PathPiece>,
    /// Text for each parameter.
    values: BTreeMap<String, String>,
}

#[derive(Debug)]
enum PathPiece {
    Literal(String),
    Parameter(String),
}

impl PathTemplate {
    /// Parses a path such as `/pets/{petId}`.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        if !path.starts_with('/') {
            return Err("its path does not begin with `/`".to_owned());
        }
        let mut pieces = Vec::new();
        let mut rest = path;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                return Err("its path has a `{` without a `}`".to_owned());
            };
            pieces.push(PathPiece::Literal(check(literal)?));
            pieces.push(PathPiece::Parameter(name.to_owned()));
            rest = tail;
        }
        pieces.push(PathPiece::Literal(check(rest)?));
        Ok(Self {
            pieces,
            values: BTreeMap::new(),
        })
    }

    /// Returns `true` if the path has this parameter.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            PathPiece::Parameter(name) => Some(name.as_str()),
            PathPiece::Literal(_) => None,
        })
    }

    /// Sets the template text for a parameter.
    pub(super) fn set(&mut self, name: &str, text: String) {
        self.values.insert(name.to_owned(), text);
    }

    /// Returns the parameters without a text.
    pub(super) fn unset(&self) -> Vec<String> {
        let mut unset: Vec<String> = Vec::new();
        for name in self.names() {
            if !self.values.contains_key(name) && !unset.iter().any(|other| other == name) {
                unset.push(name.to_owned());
            }
        }
        unset
    }

    /// Returns the template of the executor.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                PathPiece::Literal(literal) => text.push_str(literal),
                PathPiece::Parameter(name) => text.push_str(self.values.get(name).map_or("", String::as_str)),
            }
        }
        text
    }
}

/// Checks literal text of a path, and escapes it for templates.
fn check(literal: &str) -> Result<String, String> {
    if literal.contains(['?', '#']) {
        return Err("its path contains `?` or `#`, which a path cannot".to_owned());
    }
    if literal.contains(['}', '\\']) || literal.chars().any(char::is_control) {
        return Err("its path contains a character that is not allowed".to_owned());
    }
    Ok(literal.replace('$', "$$"))
}
