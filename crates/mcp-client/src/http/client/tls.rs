//! TLS settings and trusted certificates.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::{ClientError, ClientErrorKind};

/// TLS settings: the certificates that this machine trusts or, if it has none, those of Mozilla. They are loaded once:
/// loading and keeping them for each connection costs more than the connection.
pub(crate) fn configuration() -> Result<ClientConfig, ClientError> {
    static CONFIGURATION: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(configuration) = CONFIGURATION.get() {
        return Ok(configuration.clone());
    }
    let configuration = build().map_err(|error| {
        ClientError::new(ClientErrorKind::Invalid("TLS cannot be set up".to_owned())).with_source(error)
    })?;
    Ok(CONFIGURATION.get_or_init(|| configuration).clone())
}

fn build() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    with_platform_roots(Arc::clone(&provider)).or_else(|_| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        with_roots(provider, roots)
    })
}

fn with_platform_roots(provider: Arc<CryptoProvider>) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_platform_verifier()?.with_no_client_auth())
}

fn with_roots(provider: Arc<CryptoProvider>, roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
