use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
};

use tool_core::{BoxFuture, IfUnset, Provider, Reference, Secret, SecretError, Secrets, Template};

/// Maximum size of a `${file:…}`, in bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Values of `${…}` references: the process's environment, files, and the secrets of a configuration.
///
/// Values are read for every use, so that a renewed one counts at once. Reading a file does not wait for a writer:
/// only regular files are read, up to 64 KiB, and one line break at the end is no part of the value.
///
/// # Examples
/// ```
/// use std::collections::BTreeMap;
/// use tool_core::{Secrets, Template};
/// use tool_manifest::ProcessSecrets;
///
/// let secrets = BTreeMap::from([("token".to_owned(), Template::parse("${env:API_TOKEN}")?)]);
/// let secrets = ProcessSecrets::fixed([("API_TOKEN", "abc")], secrets);
/// assert!(Template::parse("Bearer ${secret:token}")?.check(&secrets).is_ok());
/// assert!(Template::parse("${OTHER}")?.check(&secrets).is_err());
/// # Ok::<(), tool_core::TemplateError>(())
/// ```
pub struct ProcessSecrets {
    environment: Environment,
    secrets: BTreeMap<String, Template>,
    directory: PathBuf,
}

enum Environment {
    Process,
    Fixed(BTreeMap<String, String>),
}

impl ProcessSecrets {
    /// The environment of this process, and these named secrets.
    #[must_use]
    pub fn of_process(secrets: BTreeMap<String, Template>) -> Self {
        Self {
            environment: Environment::Process,
            secrets,
            directory: PathBuf::new(),
        }
    }

    /// These variables instead of the environment, and these named secrets.
    #[must_use]
    pub fn fixed<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
        secrets: BTreeMap<String, Template>,
    ) -> Self {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            environment: Environment::Fixed(variables.collect()),
            secrets,
            directory: PathBuf::new(),
        }
    }

    /// Makes relative paths of files begin in this directory.
    #[must_use]
    pub fn relative_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    fn variable(&self, reference: &Reference) -> Result<Option<String>, SecretError> {
        match &self.environment {
            Environment::Fixed(variables) => Ok(variables.get(&reference.name).cloned()),
            Environment::Process => match process_variable(&reference.name) {
                Ok(value) => Ok(Some(value)),
                Err(std::env::VarError::NotPresent) => Ok(None),
                Err(std::env::VarError::NotUnicode(_)) => Err(error(reference, "is not UTF-8 text")),
            },
        }
    }

    fn file(&self, reference: &Reference) -> Result<Option<fs::File>, SecretError> {
        let path = self.directory.join(Path::new(&reference.name));
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(error(reference, format!("cannot be read: {problem}"))),
        };
        if !metadata.is_file() {
            return Err(error(reference, "is no regular file"));
        }
        if metadata.len() > MAX_SECRET_BYTES {
            return Err(error(
                reference,
                format!("has more than {MAX_SECRET_BYTES} bytes"),
            ));
        }
        fs::File::open(&path)
            .map(Some)
            .map_err(|problem| error(reference, format!("cannot be read: {problem}")))
    }

    fn content(&self, reference: &Reference) -> Result<Option<String>, SecretError> {
        let Some(file) = self.file(reference)? else {
            return Ok(None);
        };
        let mut text = String::new();
        // The size is checked again while reading: the file may grow.
        let read = file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text);
        match read {
            Err(problem) if problem.kind() == std::io::ErrorKind::InvalidData => {
                Err(error(reference, "is not UTF-8 text"))
            }
            Err(problem) => Err(error(reference, format!("cannot be read: {problem}"))),
            Ok(length) if length as u64 > MAX_SECRET_BYTES => Err(error(
                reference,
                format!("has more than {MAX_SECRET_BYTES} bytes"),
            )),
            Ok(_) => {
                if text.ends_with('\n') {
                    text.pop();
                    if text.ends_with('\r') {
                        text.pop();
                    }
                }
                Ok(Some(text))
            }
        }
    }

    async fn value(&self, reference: &Reference) -> Result<Option<Secret>, SecretError> {
        let value = match reference.provider {
            Provider::Environment => self.variable(reference)?,
            Provider::File => self.content(reference)?,
            Provider::Secret => {
                let Some(source) = self.secrets.get(&reference.name) else {
                    return Ok(None);
                };
                // A source names no secrets, which the loader makes sure of; boxing keeps the future finite anyhow.
                let value: BoxFuture<'_, _> = Box::pin(source.resolve(self));
                return value.await.map(Some);
            }
        };
        Ok(value.map(Secret::new))
    }
}

impl Secrets for ProcessSecrets {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(self.value(reference))
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        match reference.provider {
            Provider::Environment => {
                let value = self.variable(reference)?;
                Ok(value.is_some_and(|value| counts(reference, value.is_empty())))
            }
            Provider::File => match self.file(reference)? {
                Some(file) => {
                    let metadata = file.metadata();
                    Ok(counts(
                        reference,
                        metadata.is_ok_and(|metadata| metadata.len() == 0),
                    ))
                }
                None => Ok(false),
            },
            Provider::Secret => match self.secrets.get(&reference.name) {
                Some(source) => source.check(self).map(|()| true),
                None => Ok(false),
            },
        }
    }
}

/// Returns `true` if a value counts as one: as in a shell, `:-` and `:?` treat an empty value like an unset one
/// (POSIX shell, section 2.6.2).
fn counts(reference: &Reference, is_empty: bool) -> bool {
    !is_empty || reference.fallback == IfUnset::None
}

impl fmt::Debug for ProcessSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSecrets")
            .field("secrets", &self.secrets.keys())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this crate resolves references, so it is the one that reads the environment"
)]
pub(crate) fn process_variable(name: &str) -> Result<String, std::env::VarError> {
    std::env::var(name)
}

/// Returns all environment variables of the process, for programs that get some of them.
#[must_use]
pub fn process_variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

fn error(reference: &Reference, reason: impl Into<String>) -> SecretError {
    SecretError::new(reference.to_string(), reason.into())
}
