use std::{collections::HashSet, time::Duration};

use mcp_wire::{Era, method};
use raw_json::{Kind, RawJson};

use crate::{Connection, Error, RequestOptions};

/// How far a list is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// How many pages.
    pub pages: usize,
    /// How many entries.
    pub entries: usize,
    /// How many bytes of pages, with all that stands in them beside the entries.
    pub bytes: usize,
    /// How long one page may take.
    pub page_timeout: Duration,
}

/// A list of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Each entry as the server wrote it.
    pub entries: Vec<RawJson>,
    /// For how long it stays as it is, if the server says so: the shortest time of its pages (`ttlMs`).
    pub ttl: Option<Duration>,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            pages: 1000,
            entries: 100_000,
            bytes: 64 * 1024 * 1024,
            page_timeout: Duration::from_secs(30),
        }
    }
}

impl Connection {
    /// Lists the tools of the server, each as the server wrote it, following its pages to the end.
    ///
    /// # Errors
    /// When a page fails, when the server's pages never end (a cursor comes back, or there are more than
    /// [`ListLimits`] allows), or when a page is no list.
    pub async fn list_tools(&self) -> Result<Vec<RawJson>, Error> {
        self.list(method::TOOLS_LIST, "tools", ListLimits::default())
            .await
    }

    /// Lists what `method` lists under the member `key`, such as `resources/list` under `resources`.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list(&self, method: &str, key: &str, limits: ListLimits) -> Result<Vec<RawJson>, Error> {
        Ok(self.list_for(method, key, limits).await?.entries)
    }

    /// The same with what a modern server says of how long the list stays as it is.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_for(&self, method: &str, key: &str, limits: ListLimits) -> Result<Listed, Error> {
        let is_modern = self.server().era() == Era::Modern;
        let mut ttl: Option<Duration> = None;
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let mut params = None;
        for _ in 0..limits.pages {
            let options = RequestOptions::within(limits.page_timeout);
            let page = self.request(method, params, options).await?;
            let array = page.get(key).filter(|list| list.kind() == Kind::Array);
            let array = array.ok_or_else(|| {
                Error::protocol(format!("the result of `{method}` has no list `{key}`")).sent(true)
            })?;
            if let Some(of_page) = time_to_live(&page).filter(|_| is_modern) {
                ttl = Some(ttl.map_or(of_page, |ttl| ttl.min(of_page)));
            }
            bytes += page.len();
            // Entries are kept for long, and their page may be much larger than all of them.
            entries.extend(
                array
                    .items()
                    .take(limits.entries + 1)
                    .map(|entry| entry.detached()),
            );
            if bytes > limits.bytes || entries.len() > limits.entries {
                return Err(endless(method, "is longer than allowed"));
            }
            // The empty string is a cursor like any other.
            let Some(cursor) = page
                .get("nextCursor")
                .filter(|cursor| cursor.kind() == Kind::String)
                .map(|cursor| cursor.detached())
            else {
                if method == method::TOOLS_LIST {
                    entries = self.learn_tools(entries);
                }
                return Ok(Listed { entries, ttl });
            };
            params = Some(
                RawJson::object()
                    .with_members(&[("cursor", cursor.clone())])
                    .expect("an object"),
            );
            if !seen.insert(cursor) {
                return Err(endless(method, "has a cursor twice"));
            }
        }
        Err(endless(method, "has more pages than allowed"))
    }
}

fn time_to_live(page: &RawJson) -> Option<Duration> {
    let milliseconds = page.get("ttlMs")?.to::<f64>().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

fn endless(method: &str, what: &str) -> Error {
    Error::protocol(format!("the result of `{method}` {what}")).sent(true)
}
