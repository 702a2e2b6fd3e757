use std::{collections::HashSet, time::Duration};

use mcp_wire::{Era, method};
use raw_json::{JsonKind, RawJson};

use crate::{ClientError, Connection, RequestOptions};

/// How far a list is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
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
    /// Why the list was not followed to its end, if it was not: the entries are those read until then.
    pub cut: Option<ListCut>,
}

/// Reason why a list is not followed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListCut {
    /// It has more entries than [`PageLimits::entries`].
    Entries,
    /// Its pages have more bytes than [`PageLimits::bytes`].
    Bytes,
    /// It has more pages than [`PageLimits::pages`].
    Pages,
    /// The server gave a cursor twice.
    RepeatedCursor,
}

impl Default for PageLimits {
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
    /// [`PageLimits`] allows), or when a page is no list.
    pub async fn list_tools(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::TOOLS_LIST, "tools", PageLimits::default())
            .await
    }

    /// Lists what `method` lists under the member `key`, such as `resources/list` under `resources`.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list(
        &self,
        method: &str,
        key: &str,
        limits: PageLimits,
    ) -> Result<Vec<RawJson>, ClientError> {
        let listed = self.list_partial(method, key, limits).await?;
        match listed.cut {
            None => Ok(listed.entries),
            Some(ListCut::Entries | ListCut::Bytes) => Err(endless(method, "is longer than allowed")),
            Some(ListCut::Pages) => Err(endless(method, "has more pages than allowed")),
            Some(ListCut::RepeatedCursor) => Err(endless(method, "has a cursor twice")),
        }
    }

    /// Lists as much as the limits allow, with the reason if that is not all, and how long the list stays as it is
    /// according to a modern server.
    ///
    /// # Errors
    /// When a page fails or is no list.
    pub async fn list_partial(&self, method: &str, key: &str, limits: PageLimits) -> Result<Listed, ClientError> {
        let is_modern = self.server().era() == Era::Modern;
        let mut listed = Listed::default();
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let mut params = None;
        let mut n_pages = 0;
        listed.cut = loop {
            if n_pages == limits.pages {
                break Some(ListCut::Pages);
            }
            n_pages += 1;
            let options = RequestOptions::with_timeout(limits.page_timeout);
            let page = self.request(method, params, options).await?;
            let array = page.get(key).filter(|list| list.kind() == JsonKind::Array);
            let array = array.ok_or_else(|| {
                ClientError::protocol(format!("the result of `{method}` has no list `{key}`")).sent(true)
            })?;
            if let Some(of_page) = time_to_live(&page).filter(|_| is_modern) {
                listed.ttl = Some(listed.ttl.map_or(of_page, |ttl| ttl.min(of_page)));
            }
            if let Some(cut) = take(&array, limits, bytes, &mut listed.entries) {
                break Some(cut);
            }
            bytes += page.len();
            if bytes > limits.bytes {
                break Some(ListCut::Bytes);
            }
            // The empty string is a cursor like any other.
            let Some(cursor) = page
                .get("nextCursor")
                .filter(|cursor| cursor.kind() == JsonKind::String)
                .map(|cursor| cursor.detached())
            else {
                break None;
            };
            params = Some(RawJson::from_members(&[("cursor", cursor.clone())]));
            if !seen.insert(cursor) {
                break Some(ListCut::RepeatedCursor);
            }
        };
        if method == method::TOOLS_LIST {
            listed.entries = self.learn_tools(listed.entries);
        }
        Ok(listed)
    }
}

/// Takes the entries of a page as far as the limits allow, behind `bytes` of other pages.
fn take(
    array: &RawJson,
    limits: PageLimits,
    mut bytes: usize,
    entries: &mut Vec<RawJson>,
) -> Option<ListCut> {
    for entry in array.items() {
        if entries.len() == limits.entries {
            return Some(ListCut::Entries);
        }
        bytes += entry.len();
        if bytes > limits.bytes {
            return Some(ListCut::Bytes);
        }
        // Entries are kept for long, and their page may be much larger than all of them.
        entries.push(entry.detached());
    }
    None
}

fn time_to_live(page: &RawJson) -> Option<Duration> {
    let milliseconds = page.get("ttlMs")?.to::<f64>().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

fn endless(method: &str, what: &str) -> ClientError {
    ClientError::protocol(format!("the result of `{method}` {what}")).sent(true)
}
