/// Cookies of a request, in one header.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// Name and template of each cookie.
    required: Vec<(String, String)>,
    optional: Vec<(String, String)>,
}

impl Cookies {
    /// Adds a cookie.
    pub(super) fn add(&mut self, name: &str, template: String, is_required: bool) {
        let list = if is_required {
            &mut self.required
        } else {
            &mut self.optional
        };
        list.push((name.to_owned(), template));
    }

    /// Returns `true` if there is a cookie of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.required
            .iter()
            .chain(&self.optional)
            .any(|(known, _)| known == name)
    }

    /// Returns `true` if an optional cookie can be added: the header is absent as a whole if one of its cookies is.
    pub(super) fn takes_optional(&self) -> bool {
        self.required.is_empty() && self.optional.is_empty()
    }

    /// Returns the template of the header `Cookie`, if there are cookies.
    pub(super) fn header(&self) -> Option<String> {
        let cookies = self.required.iter().chain(&self.optional);
        let pairs: Vec<String> = cookies.map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// Returns `true` if a text can be the name of a cookie: a token (RFC 6265, section 4.1.1), and no template.
pub(super) fn is_cookie_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}$".contains(c);
    !name.is_empty() && name.chars().all(is_token)
}
