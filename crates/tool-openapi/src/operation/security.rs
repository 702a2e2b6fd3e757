//! Credentials of operations, as references to secrets.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Operation;
use crate::{
    ImportedSecret, OpenApiError,
    document::{Document, Version},
};

/// Credential that a request carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) place: CredentialPlace,
    /// Name of the header, parameter or cookie.
    pub(crate) name: String,
    /// Value: a template with a reference to a secret.
    pub(crate) value: String,
}

/// Part of a request that carries a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialPlace {
    Header,
    Query,
    Cookie,
}

/// Security schemes of a document, with a secret for each.
#[derive(Debug)]
pub(crate) struct Requirements<'d> {
    document: &'d Document,
    schemes: BTreeMap<&'d str, Result<Scheme, String>>,
    /// Scheme that all operations use, if the operator names one.
    forced: Option<String>,
}

#[derive(Debug)]
struct Scheme {
    credential: Credential,
    secret: ImportedSecret,
    warning: Option<String>,
}

impl<'d> Requirements<'d> {
    /// Reads the security schemes of a document.
    pub(crate) fn read(
        document: &'d Document,
        prefix: &str,
        forced: Option<&str>,
    ) -> Result<Self, OpenApiError> {
        let mut names: Vec<String> = Vec::new();
        let mut schemes = BTreeMap::new();
        for (name, value) in defined(document).into_iter().flatten() {
            let mut secret = format!("{}{}", allowed(prefix), snake(name));
            if names.contains(&secret) {
                secret = format!("{secret}_{}", names.len() + 1);
            }
            names.push(secret.clone());
            schemes.insert(name.as_str(), scheme(document, name, value, secret));
        }
        if let Some(forced) = forced
            && !schemes.contains_key(forced)
        {
            let known: Vec<String> = schemes.keys().map(|name| format!("`{name}`")).collect();
            let error = OpenApiError::new(format!(
                "the document has no security scheme `{}`",
                forced.escape_debug()
            ));
            return Err(error.with_hint(format!("it has {}", known.join(", "))));
        }
        Ok(Self {
            document,
            schemes,
            forced: forced.map(str::to_owned),
        })
    }

    /// Returns all secrets, by the names of their schemes.
    pub(crate) fn secrets(&self) -> Vec<ImportedSecret> {
        let usable = self.schemes.values().filter_map(|scheme| scheme.as_ref().ok());
        usable.map(|scheme| scheme.secret.clone()).collect()
    }

    /// Returns the credentials of an operation: those of its first requirement that a request can carry.
    pub(crate) fn credentials(
        &self,
        operation: &Operation<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Credential>, String> {
        if let Some(forced) = &self.forced {
            return self.all_of(&[forced.as_str()], warnings);
        }
        let required = operation
            .value
            .get("security")
            .or_else(|| self.document.get("security"));
        let alternatives = required.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut reasons = Vec::new();
        for alternative in alternatives {
            let names = alternative.as_object().into_iter().flatten();
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            match self.all_of(&names, warnings) {
                Ok(credentials) => return Ok(credentials),
                Err(reason) => reasons.push(reason),
            }
        }
        if reasons.is_empty() {
            Ok(Vec::new())
        } else {
            Err(format!("its credentials cannot be sent: {}", reasons.join("; ")))
        }
    }

    fn all_of(&self, names: &[&str], warnings: &mut Vec<String>) -> Result<Vec<Credential>, String> {
        let mut credentials: Vec<Credential> = Vec::new();
        let mut said = Vec::new();
        for name in names {
            let scheme = match self.schemes.get(name) {
                Some(Ok(scheme)) => scheme,
                Some(Err(reason)) => return Err(reason.clone()),
                None => {
                    return Err(format!(
                        "the security scheme `{}` is not defined",
                        name.escape_debug()
                    ));
                }
            };
            let credential = &scheme.credential;
            let is_same = |other: &Credential| {
                other.place == credential.place && other.name.eq_ignore_ascii_case(&credential.name)
            };
            if credentials.iter().any(is_same) {
                return Err(format!("two security schemes set `{}`", credential.name));
            }
            credentials.push(credential.clone());
            said.extend(scheme.warning.clone());
        }
        warnings.append(&mut said);
        Ok(credentials)
    }
}

fn defined(document: &Document) -> Option<&Map<String, Value>> {
    if document.version == Version::Swagger2 {
        document.get("securityDefinitions")?.as_object()
    } else {
        document.get("components")?.get("securitySchemes")?.as_object()
    }
}

/// Returns the credential of a scheme, or the reason why no request can carry it.
fn scheme(document: &Document, name: &str, value: &Value, secret: String) -> Result<Scheme, String> {
    let refused = |reason: &str| Err(format!("the security scheme `{}` {reason}", name.escape_debug()));
    let value = match document.resolve(value) {
        Ok(value) => value,
        Err(reason) => return refused(&format!("cannot be read: {reason}")),
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let reference = format!("${{secret:{secret}}}");
    let authorization = |value: String| Credential {
        place: CredentialPlace::Header,
        name: "Authorization".to_owned(),
        value,
    };
    let bearer = || authorization(format!("Bearer {reference}"));
    let basic = || {
        let described = "user and password as `user:password`, in base64";
        (authorization(format!("Basic {reference}")), described, None)
    };
    let scheme_name = text("scheme").to_ascii_lowercase();
    let (credential, described, warning) = match (text("type"), scheme_name.as_str()) {
        ("basic", _) | ("http", "basic") => basic(),
        ("http", "bearer") => (bearer(), "a bearer token", None),
        ("http", _) => {
            return refused(&format!(
                "uses HTTP authentication `{}`",
                scheme_name.escape_debug()
            ));
        }
        ("oauth2" | "openIdConnect", _) => {
            let warning = format!("`{name}` is OAuth 2: its secret is an access token, which nothing renews");
            (bearer(), "an access token", Some(warning))
        }
        ("apiKey", _) => {
            let place = match text("in") {
                "header" => CredentialPlace::Header,
                "query" => CredentialPlace::Query,
                "cookie" => CredentialPlace::Cookie,
                other => return refused(&format!("has an unknown place `{}`", other.escape_debug())),
            };
            if text("name").is_empty() {
                return refused("has no `name`");
            }
            let credential = Credential {
                place,
                name: text("name").to_owned(),
                value: reference.clone(),
            };
            (
                credential,
                "an API key: the whole value of the header or parameter",
                None,
            )
        }
        ("mutualTLS", _) => return refused("uses client certificates, which an HTTP tool cannot send"),
        (other, _) => return refused(&format!("has an unknown type `{}`", other.escape_debug())),
    };
    let secret = ImportedSecret {
        variable: variable(&secret),
        name: secret,
        description: described.to_owned(),
    };
    Ok(Scheme {
        credential,
        secret,
        warning,
    })
}

/// Returns the name of a scheme in snake case, with the characters that names of secrets have.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && was_lower {
                snake.push('_');
            }
            was_lower = !c.is_ascii_uppercase();
            snake.push(c.to_ascii_lowercase());
        } else {
            if !snake.is_empty() && !snake.ends_with('_') {
                snake.push('_');
            }
            was_lower = false;
        }
    }
    let snake = snake.trim_end_matches('_');
    if snake.is_empty() {
        "credential".to_owned()
    } else {
        snake.to_owned()
    }
}

/// Replaces the characters of a prefix that names of secrets do not have.
fn allowed(prefix: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    prefix
        .chars()
        .map(|c| if is_allowed(c) { c } else { '_' })
        .collect()
}

/// Returns the name of a secret's environment variable.
fn variable(secret: &str) -> String {
    let upper = secret.to_ascii_uppercase();
    let variable: String = upper
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if variable.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{variable}")
    } else {
        variable
    }
}
