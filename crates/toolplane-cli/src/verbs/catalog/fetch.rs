//! Files of a catalog behind a web server.

use std::{net::IpAddr, time::Duration};

use reqwest::{Client, StatusCode, Url};
use tokio::task::spawn_blocking;
use toolplane::catalog::{CatalogError, CatalogErrorKind, is_catalog_path};

use crate::{error::CliError, outgoing, output::text};

/// Time limit for one file.
const LIMIT: Duration = Duration::from_secs(60);

/// Catalog behind a web server. Everything that is read from it is below its URL.
#[derive(Debug)]
pub(super) struct HttpCatalog {
    base: Url,
    client: Client,
}

/// Reads the URL of a catalog: of its `index.json`, or of its directory. Returns the latter, which ends with `/`; `None` if the
/// text is the path of a directory.
///
/// # Errors
/// If the URL is neither encrypted nor on loopback, or has parts that a catalog cannot have.
pub(super) fn base_url(place: &str) -> Result<Option<Url>, CliError> {
    let is_url = place.contains("://");
    if !is_url {
        return Ok(None);
    }
    let unusable = |reason: &str| {
        CliError::usage(format!(
            "`{}` is no URL of a catalog: {reason}",
            text::line(place)
        ))
        .with_hint("write one such as `https://tools.example.com/catalog/`")
    };
    let mut url = Url::parse(place).map_err(|error| unusable(&error.to_string()))?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        "http" => {
            return Err(unusable(
                "`http` is for this machine alone; others could change what is read",
            ));
        }
        _ => return Err(unusable("it begins with neither `https://` nor `http://`")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable("it has a user or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(unusable("it has a `?` or `#`"));
    }
    let path = url
        .path()
        .strip_suffix("index.json")
        .unwrap_or(url.path())
        .to_owned();
    let slash = if path.ends_with('/') { "" } else { "/" };
    url.set_path(&format!("{path}{slash}"));
    Ok(Some(url))
}

/// Returns `true` if a URL leads to this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl HttpCatalog {
    /// Opens a catalog without asking for anything.
    pub(super) async fn open(base: Url) -> Result<Self, CliError> {
        let has_tls = base.scheme() == "https";
        // Reading the certificates of the system blocks.
        let client = spawn_blocking(move || outgoing::client(has_tls)).await;
        let failed = |error: &dyn std::error::Error| {
            CliError::failed("HTTP requests cannot be made").with_hint(error.to_string())
        };
        let client = client
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        Ok(Self { base, client })
    }

    /// Reads a file. Returns `None` if it is not there.
    pub(super) async fn read(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        if !is_catalog_path(path) {
            return Err(CatalogError::new(
                CatalogErrorKind::Invalid,
                path,
                "it is no path inside the catalog",
            ));
        }
        let url = format!("{}{path}", self.base);
        let failed = |problem: String| CatalogError::new(CatalogErrorKind::Unavailable, url.clone(), problem);
        let broken = |error: reqwest::Error| failed(reason(&error).to_owned());
        let request = self.client.get(&url).timeout(LIMIT);
        let mut answer = request.send().await.map_err(broken)?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            status if status.is_redirection() => {
                return Err(
                    failed(format!("it answered {status}, and redirects are not followed"))
                        .with_hint("add the catalog by the URL to which it leads"),
                );
            }
            status => return Err(failed(format!("it answered {status}"))),
        }
        let mut content = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(broken)? {
            if (content.len() + chunk.len()) as u64 > max_bytes {
                return Err(failed(format!("it has more than {max_bytes} bytes")));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(Some(content))
    }
}

fn reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection broke"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_are_encrypted_or_on_this_machine() {
        for (place, expected) in [
            ("https://a.example.com", "https://a.example.com/"),
            ("https://a.example.com/c/index.json", "https://a.example.com/c/"),
            ("https://a.example.com/c", "https://a.example.com/c/"),
            ("http://127.0.0.1:8080/c/", "http://127.0.0.1:8080/c/"),
            ("http://localhost/", "http://localhost/"),
            ("http://[::1]/", "http://[::1]/"),
        ] {
            assert_eq!(base_url(place).unwrap().unwrap().as_str(), expected);
        }
        for place in [
            "http://a.example.com/",
            "http://localhost.example.com/",
            "ftp://a.example.com/",
            "https://u:p@a.example.com/",
            "https://a.example.com/?x",
            "https://a.example.com/#x",
            "https://",
            "file:///etc/",
        ] {
            assert!(base_url(place).is_err(), "{place}");
        }
        for place in ["dir", "/a/dir", "./a", "c:dir"] {
            assert!(base_url(place).unwrap().is_none(), "{place}");
        }
    }
}
