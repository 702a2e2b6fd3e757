use std::{collections::HashSet, time::Duration};

use mcp_wire::method;
use raw_json::{Kind, RawJson};

use crate::{Connection, Error, RequestOptions};

/// How far a list is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// How many pages.
    pub pages: usize,
    /// How many entries.
    pub entries: usize,
    /// How many bytes of entries.
    pub bytes: usize,
    /// How long one page may take.
    pub page_timeout: Duration,
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
            for entry in array.items() {
                bytes += entry.len();
                if bytes > limits.bytes || entries.len() >= limits.entries {
                    return Err(endless(method, "is longer than allowed"));
                }
                entries.push(entry);
            }
            // The empty string is a cursor like any other.
            let Some(cursor) = page
                .get("nextCursor")
                .filter(|cursor| cursor.kind() == Kind::String)
            else {
                return Ok(if method == method::TOOLS_LIST {
                    self.learn_tools(entries)
                } else {
                    entries
                });
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

fn endless(method: &str, what: &str) -> Error {
    Error::protocol(format!("the result of `{method}` {what}")).sent(true)
}
