//! Whom to trust.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::{Error, ErrorKind};

/// The settings of TLS: the certificates that this machine trusts or, where it has none, those of Mozilla's list.
/// They are looked for only if they are needed, and once: to read and keep them for each connection costs more than
/// the connection.
pub(super) fn configuration(is_needed: bool) -> Result<ClientConfig, Error> {
    static NEEDED: OnceLock<ClientConfig> = OnceLock::new();
    static UNUSED: OnceLock<ClientConfig> = OnceLock::new();
    let known = if is_needed { &NEEDED } else { &UNUSED };
    if let Some(configuration) = known.get() {
        return Ok(configuration.clone());
    }
    let configuration = make(is_needed)
        .map_err(|error| Error::new(ErrorKind::Invalid("TLS cannot be set up".to_owned())).because(error))?;
    Ok(known.get_or_init(|| configuration).clone())
}

fn make(is_needed: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    if !is_needed {
        return trusting(provider, RootCertStore::empty());
    }
    trusting_platform(Arc::clone(&provider)).or_else(|_| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        trusting(provider, roots)
    })
}

fn trusting_platform(provider: Arc<CryptoProvider>) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_platform_verifier()?.with_no_client_auth())
}

fn trusting(provider: Arc<CryptoProvider>, roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
