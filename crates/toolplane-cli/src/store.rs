//! Store of this installation, which keeps tokens.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use toolplane::{
    core::{BoxFuture, TokenRecord, Tokens, TokensError},
    manifest::Configuration,
};

use crate::config::variable;

/// Opens the store of a configuration. Nothing is read before the first use, so that a store that does not work refuses
/// requests instead of keeping verbs from running that do not need it.
pub(crate) fn open_store(_configuration: &Configuration) -> Arc<dyn Tokens> {
    Arc::new(FileTokens { file: token_file() })
}

/// Tokens in one JSON file, which every use reads anew and every change replaces as a whole.
///
/// Two processes that change it at the same time take turns by a lock on a file of its own, since the file itself is
/// replaced.
#[derive(Debug, Clone)]
struct FileTokens {
    /// `None` if the environment names no directory.
    file: Option<PathBuf>,
}

/// Content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    version: u32,
    tokens: Vec<StoredToken>,
}

/// A token as the file has it. Times are seconds since 1970-01-01.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    id: String,
    secret_sha256: String,
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    roles: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<u64>,
}

/// Version of the file's format.
const VERSION: u32 = 1;

/// Returns the path of the file: in `$XDG_DATA_HOME`, else in `~/.local/share`. `None` if neither names a directory.
fn token_file() -> Option<PathBuf> {
    // XDG Base Directory Specification: a relative path is ignored.
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).and_then(absolute);
    let home = || variable("HOME").map(PathBuf::from).and_then(absolute);
    let data = data.or_else(|| Some(home()?.join(".local/share")))?;
    Some(data.join("toolplane/tokens.json"))
}

impl FileTokens {
    /// Runs a use of the file on a thread that may block.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, TokensError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, TokensError>> {
        let file = self.file.clone();
        Box::pin(async move {
            let Some(file) = file else {
                let reason = "neither `$XDG_DATA_HOME` nor `$HOME` names a directory for it";
                return Err(TokensError::Unavailable(reason.to_owned()));
            };
            let done = tokio::task::spawn_blocking(move || work(&file)).await;
            done.unwrap_or_else(|error| Err(TokensError::Unavailable(error.to_string())))
        })
    }
}

impl Tokens for FileTokens {
    fn insert(&self, token: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>> {
        self.run(move |file| {
            change(file, |tokens| {
                if tokens.iter().any(|known| known.id == token.id) {
                    return Err(TokensError::Exists(token.id));
                }
                tokens.push(token);
                Ok(())
            })
        })
    }

    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        let id = id.to_owned();
        self.run(move |file| Ok(read(file)?.into_iter().find(|known| *known.id == *id)))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>> {
        self.run(read)
    }

    fn revoke<'a>(
        &'a self,
        id: &'a str,
        at: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        let id = id.to_owned();
        self.run(move |file| {
            change(file, |tokens| {
                let token = tokens.iter_mut().find(|known| *known.id == *id);
                Ok(token.map(|token| {
                    token.revoked_at.get_or_insert(at);
                    token.clone()
                }))
            })
        })
    }
}

fn unavailable(file: &Path, reason: impl std::fmt::Display) -> TokensError {
    TokensError::Unavailable(format!("`{}`: {reason}", file.display()))
}

/// Reads all tokens; none if the file does not exist.
fn read(file: &Path) -> Result<Vec<TokenRecord>, TokensError> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unavailable(file, error)),
    };
    let metadata = opened.metadata().map_err(|error| unavailable(file, error))?;
    // Whoever writes the file decides who gets in.
    if metadata.mode() & 0o022 != 0 {
        return Err(unavailable(
            file,
            "others may write it; `chmod 600` makes it yours alone",
        ));
    }
    let text = io::read_to_string(opened).map_err(|error| unavailable(file, error))?;
    let content: TokenFile = serde_json::from_str(&text).map_err(|error| unavailable(file, error))?;
    if content.version != VERSION {
        let reason = format!("its version {} is not {VERSION}", content.version);
        return Err(unavailable(file, reason));
    }
    let mut tokens = Vec::with_capacity(content.tokens.len());
    for token in content.tokens {
        let id = token.id.clone();
        let record = token.into_record();
        tokens.push(record.ok_or_else(|| unavailable(file, format!("the token `{id}` is damaged")))?);
    }
    tokens.sort_by_key(|token| (token.created_at, token.id.clone()));
    Ok(tokens)
}

/// Changes the tokens while no other process does.
fn change<T>(
    file: &Path,
    change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, TokensError>,
) -> Result<T, TokensError> {
    let failed = |error: io::Error| unavailable(file, error);
    let directory = file.parent().unwrap_or(file);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed)?;
    let lock = private(&file.with_extension("lock")).map_err(failed)?;
    // Released when the file is closed.
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    let mut tokens = read(file)?;
    let changed = change(&mut tokens)?;
    replace(file, &tokens).map_err(failed)?;
    Ok(changed)
}

/// Replaces the file as a whole: after a crash it is the old one or the new one.
fn replace(file: &Path, tokens: &[TokenRecord]) -> io::Result<()> {
    let content = TokenFile {
        version: VERSION,
        tokens: tokens.iter().map(StoredToken::from_record).collect(),
    };
    let temporary = file.with_extension("new");
    // A rest of a crash could have other permissions.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut written = private(&temporary)?;
    serde_json::to_writer_pretty(&mut written, &content)?;
    written.write_all(b"\n")?;
    written.sync_all()?;
    fs::rename(&temporary, file)?;
    match file.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Opens a file for writing that only its owner can read, and creates it if needed.
fn private(file: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(file)
}

impl StoredToken {
    fn from_record(token: &TokenRecord) -> Self {
        Self {
            id: token.id.as_ref().to_owned(),
            secret_sha256: hex::encode(token.secret_digest),
            principal: token.principal.as_ref().to_owned(),
            tenant: token.tenant.as_deref().map(str::to_owned),
            roles: token.roles.iter().map(|role| role.as_ref().to_owned()).collect(),
            label: token.label.clone(),
            created_at: seconds(token.created_at),
            expires_at: token.expires_at.map(seconds),
            revoked_at: token.revoked_at.map(seconds),
        }
    }

    /// Returns `None` if the digest or a time is invalid.
    fn into_record(self) -> Option<TokenRecord> {
        let mut digest = [0; 32];
        hex::decode_to_slice(&self.secret_sha256, &mut digest).ok()?;
        let mut token = TokenRecord::new(self.id, digest, self.principal, time(self.created_at)?);
        token.tenant = self.tenant.map(Into::into);
        token.roles = self.roles.into_iter().map(Into::into).collect();
        token.label = self.label;
        if let Some(at) = self.expires_at {
            token.expires_at = Some(time(at)?);
        }
        if let Some(at) = self.revoked_at {
            token.revoked_at = Some(time(at)?);
        }
        Some(token)
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
