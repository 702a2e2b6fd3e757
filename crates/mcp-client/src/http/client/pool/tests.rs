//! Tests of the pool over plain HTTP, TLS and HTTP/2, with one suite.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::{Response, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::http::client::tcp_connector;

/// Protocol of a test server.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Protocol {
    Plain,
    TlsSettings(&'static [u8]),
}

const ALL: [Protocol; 3] = [
    Protocol::Plain,
    Protocol::TlsSettings(b"http/1.1"),
    Protocol::TlsSettings(b"h2"),
];

/// Server that echoes requests and counts its connections.
struct Server {
    address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    certificate: CertifiedKey<rcgen::KeyPair>,
    /// Ends its connections on drop.
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let version = request.version();
    let host = request.headers().get(header::HOST).cloned();
    let (own, all) = (
        request.headers().get("x-own").cloned(),
        request.headers().get("x-all").cloned(),
    );
    let target = request.uri().to_string();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut answer = Response::new(Full::new(body));
    let headers = answer.headers_mut();
    headers.insert("x-version", format!("{version:?}").parse().unwrap());
    headers.insert("x-target", target.parse().unwrap());
    for (name, value) in [("x-host", host), ("x-own", own), ("x-all", all)] {
        value.map(|value| headers.insert(name, value));
    }
    Ok(answer)
}

impl Server {
    async fn start(protocol: Protocol) -> Self {
        let certificate = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let acceptor = match protocol {
            Protocol::Plain => None,
            Protocol::TlsSettings(protocol) => {
                let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
                let provider = Arc::new(aws_lc_rs::default_provider());
                let mut settings = ServerConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .unwrap()
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate.cert.der().clone()], key)
                    .unwrap();
                settings.alpn_protocols = vec![protocol.to_vec()];
                Some(TlsAcceptor::from(Arc::new(settings)))
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let n_connections = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&n_connections);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(stream, acceptor.clone(), protocol));
            }
        });
        Self {
            address,
            n_connections,
            certificate,
            task: task.abort_handle(),
        }
    }

    /// Creates a pool for this server that trusts its certificate.
    fn pool(&self, protocol: Protocol, host: &str) -> Arc<Pool> {
        let tls = (protocol != Protocol::Plain).then(|| {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.cert.der().clone()).unwrap();
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth()
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = format!("{scheme}://{host}:{}/mcp?a=b", self.address.port());
        let server: Uri = server.parse().unwrap();
        let tls = tls.map(|tls| TlsSettings::new(tls, &server).unwrap());
        let mut headers = HeaderMap::new();
        headers.insert("x-own", HeaderValue::from_static("of all requests"));
        headers.insert("x-all", HeaderValue::from_static("of all requests"));
        Pool::new(tcp_connector(), tls, server, headers)
    }
}

async fn serve(stream: TcpStream, acceptor: Option<TlsAcceptor>, protocol: Protocol) {
    let Some(acceptor) = acceptor else {
        let serving = conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(echo));
        return drop(serving.await);
    };
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let stream = TokioIo::new(stream);
    if protocol == Protocol::TlsSettings(b"h2") {
        let builder = conn::http2::Builder::new(TokioExecutor::new());
        drop(builder.serve_connection(stream, service_fn(echo)).await);
    } else {
        let builder = conn::http1::Builder::new();
        drop(builder.serve_connection(stream, service_fn(echo)).await);
    }
}

async fn post(pool: &Arc<Pool>, body: &Bytes) -> Result<HttpResponse, TransportError> {
    let own = vec![(
        HeaderName::from_static("x-own"),
        HeaderValue::from_static("of this one"),
    )];
    pool.send(Method::POST, own, body.clone()).await
}

async fn body(answer: &mut HttpResponse) -> Bytes {
    if let Some(whole) = answer.read_whole().await.unwrap() {
        return whole;
    }
    let mut whole = Vec::new();
    while let Some(piece) = answer.chunk().await.unwrap() {
        whole.extend_from_slice(&piece);
    }
    whole.into()
}

#[tokio::test]
async fn requests_share_a_connection_one_after_the_other() {
    for protocol in ALL {
        let server = Server::start(protocol).await;
        let pool = server.pool(protocol, "127.0.0.1");
        for length in [0, 5, 3 << 20] {
            let sent = Bytes::from(vec![b'x'; length]);
            let Ok(mut answer) = post(&pool, &sent).await else {
                panic!("{protocol:?}")
            };
            let is_http2 = protocol == Protocol::TlsSettings(b"h2");
            let version = if is_http2 {
                Version::HTTP_2
            } else {
                Version::HTTP_11
            };
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.header("x-version"), Some(&*format!("{version:?}")));
            assert_eq!(answer.header("x-own"), Some("of this one"));
            assert_eq!(answer.header("x-all"), Some("of all requests"));
            let authority = server.address.to_string();
            let target = if is_http2 {
                format!("https://{authority}/mcp?a=b")
            } else {
                "/mcp?a=b".to_owned()
            };
            assert_eq!(answer.header("x-target"), Some(&*target));
            assert_eq!(answer.header("x-host"), (!is_http2).then_some(&*authority));
            assert!(body(&mut answer).await == sent, "{protocol:?}");
        }
        assert_eq!(server.n_connections.load(Ordering::SeqCst), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn requests_at_a_time_have_connections_of_their_own_but_over_http_2() {
    for protocol in ALL {
        let server = Server::start(protocol).await;
        let pool = server.pool(protocol, "127.0.0.1");
        let sent = Bytes::from_static(b"hello");
        drop(post(&pool, &sent).await);
        let (first, second) = tokio::join!(post(&pool, &sent), post(&pool, &sent));
        for answer in [first, second] {
            let Ok(mut answer) = answer else {
                panic!("{protocol:?}")
            };
            assert_eq!(body(&mut answer).await, sent);
        }
        // The first response was dropped before its body was read.
        let n_connections = server.n_connections.load(Ordering::SeqCst);
        match protocol {
            Protocol::TlsSettings(b"h2") => assert_eq!(n_connections, 1),
            _ => assert!((2..=3).contains(&n_connections), "{n_connections}"),
        }
    }
}

/// No request is lost on a connection that the server has closed: it is sent on a new one, or fails unsent.
#[tokio::test]
async fn a_server_that_has_gone_is_sent_nothing() {
    for protocol in ALL {
        let server = Server::start(protocol).await;
        let pool = server.pool(protocol, "127.0.0.1");
        let sent = Bytes::from_static(b"hello");
        let Ok(mut answer) = post(&pool, &sent).await else {
            panic!("{protocol:?}")
        };
        assert_eq!(body(&mut answer).await, sent);
        drop(answer);
        server.task.abort();
        // Wait until the task is gone with its connections.
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let failed = post(&pool, &sent).await;
        // The task of an HTTP/2 connection may not have run yet.
        let is_shared = protocol == Protocol::TlsSettings(b"h2");
        assert!(
            failed.is_err_and(|error| error.unsent || is_shared),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_refused() {
    for protocol in &ALL[1..] {
        let (server, other) = (Server::start(*protocol).await, Server::start(*protocol).await);
        let trusting_other = Pool {
            server: format!("https://{}/mcp", server.address).parse().unwrap(),
            ..Arc::into_inner(other.pool(*protocol, "127.0.0.1")).unwrap()
        };
        let failed = post(&Arc::new(trusting_other), &Bytes::new()).await;
        assert!(failed.is_err_and(
            |error| error.unsent && matches!(error.error.kind(), ClientErrorKind::Unreachable(_))
        ));
        // The certificate is valid for the address only.
        let failed = post(&server.pool(*protocol, "localhost"), &Bytes::new()).await;
        assert!(failed.is_err_and(
            |error| error.unsent && matches!(error.error.kind(), ClientErrorKind::Unreachable(_))
        ));
    }
}
