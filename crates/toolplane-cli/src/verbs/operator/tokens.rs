//! `toolplane tokens`: static tokens, by which clients of the gateway authenticate.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use toolplane::{
    core::{Caller, TokenRecord, Tokens as TokenStore, TokensError, rfc3339},
    manifest::{AuthenticationSpec, Configuration},
    policy::NewToken,
    settings::suggest,
};

use crate::{
    command::{CreateToken, Format, Options, Tokens},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
    store::required_store,
};

pub(crate) fn run(options: &Options, verb: Tokens, console: Console) -> Result<Exit, CliError> {
    let loaded = config::read(config::files(options)?, console)?;
    let configuration = &loaded.configuration;
    block_on(async {
        let store = required_store(&loaded).await?.tokens;
        match verb {
            Tokens::Create(create) => self::create(configuration, &*store, create, console).await,
            Tokens::Ls => list(&*store, console).await,
            Tokens::Revoke { id } => revoke(&*store, &id, console).await,
        }
    })
}

async fn create(
    configuration: &Configuration,
    store: &dyn TokenStore,
    create: CreateToken,
    console: Console,
) -> Result<Exit, CliError> {
    check(configuration, &create)?;
    let now = this_second();
    let token = NewToken::generate(create.principal.as_str(), now);
    let token = token.map_err(|error| {
        CliError::failed("the system has no randomness to give for a token").with_source(&error)
    })?;
    let mut record = token.record;
    record.tenant = create.tenant.map(Into::into);
    record.roles = create.roles.into_iter().map(Into::into).collect();
    record.label = create.label;
    record.expires_at = match create.expires {
        Some(lifetime) => Some(expiry(now, lifetime)?),
        None => None,
    };
    store
        .insert(record.clone())
        .await
        .map_err(|error| of_store(&error))?;
    warn(configuration, &record, console);
    let shown = token.text.expose();
    if console.format == Format::Table {
        console.say(&format!(
            "token `{}` of {}; it is shown this once:",
            record.id,
            text::line(&record.principal)
        ));
        console.data(&shown)?;
    } else {
        let mut value = to_json(&record, now);
        value["token"] = Value::from(shown);
        console.value(&value, String::new)?;
    }
    Ok(Exit::Done)
}

/// Refuses tokens that would authenticate nobody, or somebody else than the operator means.
fn check(configuration: &Configuration, create: &CreateToken) -> Result<(), CliError> {
    let names = [
        ("principal", Some(&create.principal)),
        ("tenant", create.tenant.as_ref()),
    ];
    for (kind, name) in names {
        if let Some(Err(broken)) = name.map(|name| Caller::check_name(name)) {
            return Err(CliError::usage(format!("the name of the {kind} {broken}"))
                .with_hint("write 1 to 128 characters without white space"));
        }
    }
    let principal = create.principal.as_str();
    if Caller::WITHOUT_AUTHENTICATION.contains(&principal) {
        return Err(CliError::usage(format!(
            "`{principal}` is the principal of clients without a token"
        ))
        .with_hint("take the name of a person or a program, such as `ada` or `build-agent`"));
    }
    let policy = &configuration.policy;
    let configured = policy
        .principals
        .get(principal)
        .and_then(|spec| spec.tenant.as_ref());
    if let (Some(configured), Some(named)) = (configured, &create.tenant)
        && configured != named
    {
        return Err(CliError::usage(format!(
            "`{principal}` belongs to the tenant `{}`, not to `{}`",
            text::line(configured),
            text::line(named)
        ))
        .with_hint("leave out `--tenant`, or change `policy.principals`"));
    }
    for role in &create.roles {
        if !policy.roles.contains_key(role) {
            let known: Vec<&str> = policy.roles.keys().map(String::as_str).collect();
            let hint = match suggest::nearest(role, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "define it under `policy.roles`, with its permissions".to_owned(),
            };
            let message = format!("the role `{}` is not defined", text::line(role));
            return Err(CliError::usage(message).with_hint(hint));
        }
    }
    Ok(())
}

/// Warns of a token that has no effect yet.
fn warn(configuration: &Configuration, token: &TokenRecord, console: Console) {
    if configuration.gateway.auth != AuthenticationSpec::Tokens {
        console.warn("no gateway asks for the token yet: set `gateway.auth: tokens`");
    }
    let policy = &configuration.policy;
    let principal = &*token.principal;
    let is_known = policy.principals.contains_key(principal) || policy.permissions.contains_key(principal);
    if !is_known && token.roles.is_empty() {
        console.warn(&format!(
            "`{}` has no permissions: it is not under `policy.principals`, and the token has no role",
            text::line(principal)
        ));
    }
}

fn expiry(now: SystemTime, lifetime: Duration) -> Result<SystemTime, CliError> {
    // Later times cannot be written as RFC 3339 (year 9999).
    const LAST: u64 = 253_402_300_799;
    now.checked_add(lifetime)
        .filter(|at| *at <= UNIX_EPOCH + Duration::from_secs(LAST))
        .ok_or_else(|| {
            CliError::usage("the token would expire after the year 9999")
                .with_hint("leave out `--expires` for a token that does not expire")
        })
}

/// Returns the current time without fractions of a second, which stores need not keep.
fn this_second() -> SystemTime {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(elapsed.as_secs())
}

async fn list(store: &dyn TokenStore, console: Console) -> Result<Exit, CliError> {
    let tokens = store.list().await.map_err(|error| of_store(&error))?;
    if tokens.is_empty() && console.format == Format::Table {
        console.say("there are no tokens; `toolplane tokens create PRINCIPAL` makes one");
        return Ok(Exit::Done);
    }
    let now = SystemTime::now();
    let rows: Vec<Value> = tokens.iter().map(|token| to_json(token, now)).collect();
    console.list(&rows, |table| {
        let header = [
            "ID",
            "PRINCIPAL",
            "TENANT",
            "ROLES",
            "STATE",
            "CREATED",
            "EXPIRES",
            "LABEL",
        ];
        table
            .header(header)
            .rows(tokens.iter().map(|token| cells(token, now)))
    })?;
    Ok(Exit::Done)
}

async fn revoke(store: &dyn TokenStore, id: &str, console: Console) -> Result<Exit, CliError> {
    let id = locate(store, id).await?;
    let now = this_second();
    let revoked = store.revoke(&id, now).await.map_err(|error| of_store(&error))?;
    let token = revoked.ok_or_else(|| not_found(&id))?;
    console.value(&to_json(&token, now), || {
        format!("revoked {} of {}", token.id, text::line(&token.principal))
    })?;
    Ok(Exit::Done)
}

/// Returns the id of the token whose id is `id` or begins with it.
async fn locate(store: &dyn TokenStore, id: &str) -> Result<Arc<str>, CliError> {
    // A whole token, pasted instead of its id, names itself. Its secret must not show up in a message.
    let id = id
        .strip_prefix("tp_")
        .and_then(|rest| rest.split('_').next())
        .unwrap_or(id);
    let tokens = store.list().await.map_err(|error| of_store(&error))?;
    let mut found = tokens
        .iter()
        .filter(|token| !id.is_empty() && token.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(token), None) => Ok(token.id.clone()),
        (None, _) => Err(not_found(id)),
        _ => Err(
            CliError::usage(format!("more than one id begins with `{}`", text::line(id)))
                .with_hint("write more characters of it"),
        ),
    }
}

fn not_found(id: &str) -> CliError {
    let message = format!("no token has the id `{}`", text::line(id));
    CliError::new(Exit::NotFound, "not_found", message).with_hint("`toolplane tokens ls` lists the tokens")
}

fn of_store(error: &TokensError) -> CliError {
    CliError::new(Exit::Unavailable, "unavailable", error.to_string())
}

fn to_json(token: &TokenRecord, now: SystemTime) -> Value {
    let mut value = json!({
        "id": &*token.id,
        "principal": &*token.principal,
        "tenant": token.tenant.as_deref(),
        "roles": token.roles.iter().map(|role| &**role).collect::<Vec<_>>(),
        "state": token.state(now).as_str(),
        "created_at": rfc3339(token.created_at),
        "expires_at": token.expires_at.map(rfc3339),
        "label": token.label.as_deref(),
    });
    if let Some(at) = token.revoked_at {
        value["revoked_at"] = Value::from(rfc3339(at));
    }
    value
}

fn cells(token: &TokenRecord, now: SystemTime) -> [String; 8] {
    let line = |text: &str| text::line(text).into_owned();
    [
        line(&token.id),
        line(&token.principal),
        line(token.tenant.as_deref().unwrap_or_default()),
        line(&token.roles.join(", ")),
        token.state(now).as_str().to_owned(),
        rfc3339(token.created_at),
        token.expires_at.map(rfc3339).unwrap_or_default(),
        line(token.label.as_deref().unwrap_or_default()),
    ]
}
