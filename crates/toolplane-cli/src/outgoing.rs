//! HTTP client for requests of the program itself.

use std::time::Duration;

use reqwest::{Certificate, Client, redirect, retry};

/// Time limit for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Returns a client that follows no redirect, uses no proxy of the environment and does not retry. Reading the certificates of
/// the system blocks; without TLS they are not read.
pub(crate) fn client(has_tls: bool) -> Result<Client, reqwest::Error> {
    let builder = || {
        Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .connect_timeout(CONNECT_LIMIT)
    };
    let own_roots = || {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        roots.filter_map(|root| Certificate::from_der(root.as_ref()).ok())
    };
    if !has_tls {
        return builder().tls_certs_only(own_roots()).build();
    }
    // The fallback is for a system without certificates.
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only(own_roots()).build())
}
