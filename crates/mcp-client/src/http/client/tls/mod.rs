//! TLS settings and trusted certificates.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use http::Uri;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::ServerName,
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::byte_stream::CheckedSocket;
use crate::{ClientError, ClientErrorKind};

/// TLS settings of one server.
pub(super) struct TlsSettings {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsSettings {
    /// Creates the settings of a server, with the certificates that this machine trusts.
    pub(super) fn for_server(server: &Uri) -> Result<Self, ClientError> {
        Self::new(configuration()?, server)
    }

    pub(super) fn new(mut configuration: ClientConfig, server: &Uri) -> Result<Self, ClientError> {
        configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let host = server.host().unwrap_or_default();
        // Only a URL encloses an IPv6 address in brackets.
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error| {
            let kind = ClientErrorKind::Invalid(
                "the host of the server URL is not a valid TLS server name".to_owned(),
            );
            ClientError::new(kind).with_source(error)
        })?;
        Ok(Self {
            connector: Arc::new(configuration).into(),
            name,
        })
    }

    /// Does the handshake. Also returns `true` if HTTP/2 was negotiated.
    pub(super) async fn connect(
        &self,
        socket: CheckedSocket,
    ) -> io::Result<(TlsStream<CheckedSocket>, bool)> {
        let stream = self.connector.connect(self.name.clone(), socket).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((stream, is_http2))
    }
}

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
