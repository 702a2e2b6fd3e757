use std::{collections::HashSet, time::Duration};

use mcp_wire::{Era, method};
use raw_json::{JsonKind, RawJson};

use crate::{ClientError, Connection, RequestOptions};

/// Limits of a paginated list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageLimits {
    /// Maximum number of pages.
    pub pages: usize,
    /// Maximum number of entries.
    pub entries: usize,
    /// Maximum size of all pages, in bytes, including members other than the entries.
    pub bytes: usize,
    /// Timeout of one page.
    pub page_timeout: Duration,
}

/// List of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListResult {
    /// Entries as the server wrote them.
    pub entries: Vec<RawJson>,
    /// Time to live that the server declares: the shortest of all pages (`ttlMs`).
    pub ttl: Option<Duration>,
    /// Reason why the list is incomplete, or `None` if it is complete. An incomplete list contains the entries read so
    /// far.
    pub truncation: Option<ListTruncation>,
}

/// Reason why a list is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListTruncation {
    /// The list has more entries than [`PageLimits::entries`].
    Entries,
    /// The pages have more bytes than [`PageLimits::bytes`].
    Bytes,
    /// The list has more pages than [`PageLimits::pages`].
    Pages,
    /// The server repeated a cursor.
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

impl PageLimits {
    /// Sets the maximum number of pages.
    #[must_use]
    pub fn pages(mut self, pages: usize) -> Self {
        self.pages = pages;
        self
    }

    /// Sets the maximum number of entries.
    #[must_use]
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Sets the maximum size of all pages, in bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the timeout of one page.
    #[must_use]
    pub fn page_timeout(mut self, timeout: Duration) -> Self {
        self.page_timeout = timeout;
        self
    }
}

impl Connection {
    /// Lists the tools of the server, each as the server wrote it, following all pages.
    ///
    /// # Errors
    /// Returns an error if a page fails or contains no list, or if the pages never end: a cursor is repeated, or
    /// [`PageLimits`] is exceeded.
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list_tools(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::TOOLS_LIST, "tools", PageLimits::default())
            .await
    }

    /// Lists the resources of the server, like [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// Returns the errors of [`list_tools`](Self::list_tools).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list_resources(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::RESOURCES_LIST, "resources", PageLimits::default())
            .await
    }

    /// Lists the resource templates of the server, like [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// Returns the errors of [`list_tools`](Self::list_tools).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list_resource_templates(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(
            method::RESOURCES_TEMPLATES_LIST,
            "resourceTemplates",
            PageLimits::default(),
        )
        .await
    }

    /// Lists the prompts of the server, like [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// Returns the errors of [`list_tools`](Self::list_tools).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list_prompts(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::PROMPTS_LIST, "prompts", PageLimits::default())
            .await
    }

    /// Lists the entries that `method` returns under the member `key`, such as `resources/list` under `resources`.
    ///
    /// # Errors
    /// Returns the errors of [`list_tools`](Self::list_tools).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list(
        &self,
        method: &str,
        key: &str,
        limits: PageLimits,
    ) -> Result<Vec<RawJson>, ClientError> {
        let listed = self.list_partial(method, key, limits).await?;
        match listed.truncation {
            None => Ok(listed.entries),
            Some(ListTruncation::Entries | ListTruncation::Bytes) => {
                Err(incomplete(method, "is longer than allowed"))
            }
            Some(ListTruncation::Pages) => Err(incomplete(method, "has more pages than allowed")),
            Some(ListTruncation::RepeatedCursor) => Err(incomplete(method, "repeats a cursor")),
        }
    }

    /// Lists as many entries as the limits allow. Also returns the reason if the list is incomplete, and the time to
    /// live that a modern server declares.
    ///
    /// # Errors
    /// Returns an error if a page fails or contains no list.
    ///
    /// # Cancellation
    /// Dropping the future cancels the request for the current page. The entries of earlier pages are lost.
    pub async fn list_partial(
        &self,
        method: &str,
        key: &str,
        limits: PageLimits,
    ) -> Result<ListResult, ClientError> {
        let is_modern = self.server().era() == Era::Modern;
        let mut listed = ListResult::default();
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let mut params = None;
        let mut n_pages = 0;
        listed.truncation = loop {
            if n_pages == limits.pages {
                break Some(ListTruncation::Pages);
            }
            n_pages += 1;
            let options = RequestOptions::with_timeout(limits.page_timeout);
            let page = self.request(method, params, options).await?;
            let array = page.get(key).filter(|list| list.kind() == JsonKind::Array);
            let array = array.ok_or_else(|| {
                ClientError::protocol(format!("the result of `{method}` has no list `{key}`")).with_sent(true)
            })?;
            if let Some(page_ttl) = time_to_live(&page).filter(|_| is_modern) {
                listed.ttl = Some(listed.ttl.map_or(page_ttl, |ttl| ttl.min(page_ttl)));
            }
            if let Some(cut) = append_entries(&array, limits, bytes, &mut listed.entries) {
                break Some(cut);
            }
            bytes += page.len();
            if bytes > limits.bytes {
                break Some(ListTruncation::Bytes);
            }
            // The empty string is a valid cursor.
            let Some(cursor) = page
                .get("nextCursor")
                .filter(|cursor| cursor.kind() == JsonKind::String)
                .map(|cursor| cursor.detached())
            else {
                break None;
            };
            params = Some(RawJson::from_members(&[("cursor", cursor.clone())]));
            if !seen.insert(cursor) {
                break Some(ListTruncation::RepeatedCursor);
            }
        };
        if method == method::TOOLS_LIST {
            listed.entries = self.register_tools(listed.entries);
        }
        Ok(listed)
    }
}

/// Appends the entries of a page as far as the limits allow. `bytes` is the size of the pages before it.
fn append_entries(
    array: &RawJson,
    limits: PageLimits,
    mut bytes: usize,
    entries: &mut Vec<RawJson>,
) -> Option<ListTruncation> {
    for entry in array.items() {
        if entries.len() == limits.entries {
            return Some(ListTruncation::Entries);
        }
        bytes += entry.len();
        if bytes > limits.bytes {
            return Some(ListTruncation::Bytes);
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

fn incomplete(method: &str, what: &str) -> ClientError {
    ClientError::protocol(format!("the result of `{method}` {what}")).with_sent(true)
}
