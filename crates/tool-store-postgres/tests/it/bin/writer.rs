//! Second process of the tests: says `ready`, waits for the end of its input, and changes the store of `STORE_URL`.

use std::{
    collections::BTreeMap,
    env,
    io::{Read, Write},
    time::{SystemTime, UNIX_EPOCH},
};

use tool_core::Tokens;
use tool_registry::{
    LatestChange, NewVersion, Store, StoreError, StoreOperation, StoredVersion, VersionHead, VersionState,
};
use tool_store_postgres::{PostgresDatabase, PostgresOptions, SqlStore, postgres_store};
use tool_store_sql::Database;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let url = env::var_os("STORE_URL")
        .and_then(|url| url.into_string().ok())
        .ok_or("no `STORE_URL`")?;
    let store = postgres_store(PostgresOptions::new(&url)?);
    store.tools().await?;
    say("ready")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["create", tool] => {
            let create = StoreOperation::Create {
                owner: "grace".into(),
            };
            let revision = store.apply(tool, 0, vec![create]).await?;
            say(&format!("created {revision}"))
        }
        ["race", tool, major, n_versions] => race(&store, tool, major.parse()?, n_versions.parse()?).await,
        ["revoke", token] => {
            store
                .revoke(token, SystemTime::now())
                .await?
                .ok_or("an unknown token")?;
            say("revoked")
        }
        ["hold", tool] => hold(&store, tool).await,
        _ => Err("unknown arguments".into()),
    }
}

/// Adds versions, each on the state that it has just read.
async fn race(
    store: &SqlStore<PostgresDatabase>,
    tool: &str,
    major: u64,
    n_versions: u64,
) -> Result<(), Failure> {
    for minor in 0..n_versions {
        let number = semver::Version::new(major, minor, 0);
        loop {
            let record = store.tool(tool).await?.ok_or("an unknown tool")?;
            let new = NewVersion::new(tool, number.clone(), raw_json::RawJson::object());
            let head = VersionHead::new(
                number.clone(),
                new.digest(),
                VersionState::Published,
                UNIX_EPOCH,
                "grace".into(),
            );
            let stored = StoredVersion::new(head, raw_json::RawJson::object(), BTreeMap::new());
            let latest = LatestChange::new(Some(number.clone()), UNIX_EPOCH, "grace".into());
            let operations = vec![
                StoreOperation::Put(Box::new(stored)),
                StoreOperation::SetLatest(latest),
            ];
            match store.apply(tool, record.revision, operations).await {
                Ok(_) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    say(&format!("added {n_versions}"))
}

/// Begins a change like the store does, and never ends it.
async fn hold(store: &SqlStore<PostgresDatabase>, tool: &str) -> Result<(), Failure> {
    let mut transaction = store.database().write().await?;
    let raise = "UPDATE store_meta SET number = number + 1 WHERE name = 'revision'";
    transaction.execute(raise, Vec::new()).await?;
    let add = "INSERT INTO tools (name, owner, revision, created_at) VALUES ($1, 'grace', 2, 0)";
    transaction.execute(add, vec![tool.into()]).await?;
    say("holding")?;
    std::future::pending().await
}

fn say(word: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{word}")?;
    Ok(output.flush()?)
}
