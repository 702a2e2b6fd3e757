//! Outgoing requests of toolplane itself, to URLs that the operator wrote: webhooks and health check endpoints. They
//! follow no redirects, so that they reach nothing else, and use no proxy.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, StatusCode, redirect, retry};
use tokio::sync::OnceCell;
use tool_core::{BoxFuture, ErrorKind, Secrets, Template, ToolError};
use tool_manifest::WebhookSpec;
use tool_observe::{WebhookError, WebhookMessage, WebhookTransport};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::BuildError;

/// Time limit for the delivery of a message to a webhook.
const POST_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Client for outgoing requests, created on first use.
pub(crate) struct Outbound {
    client: OnceCell<Client>,
    secrets: Arc<dyn Secrets>,
}

impl Outbound {
    pub(crate) fn new(secrets: Arc<dyn Secrets>) -> Self {
        Self {
            client: OnceCell::new(),
            secrets,
        }
    }

    async fn client(&self) -> Result<&Client, String> {
        let make = || async {
            // Reading the CA store blocks.
            let made = tokio::task::spawn_blocking(client).await;
            made.map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())
        };
        self.client.get_or_try_init(make).await
    }

    /// Requests a health check endpoint, which is healthy if it answers 2xx. Returns `None` in a build without
    /// outgoing requests.
    pub(crate) async fn ask(&self, url: &Template, limit: Duration) -> Option<Result<(), ToolError>> {
        Some(self.get(url, limit).await)
    }

    /// Posts JSON and returns the answer, if it is a success of at most `max_bytes`. The errors contain no URL and no key.
    pub(crate) async fn post_json(
        &self,
        url: &Template,
        key: Option<&Template>,
        body: String,
        limit: Duration,
        max_bytes: usize,
    ) -> Result<Vec<u8>, String> {
        let resolve = async |template: &Template| {
            let value = template.resolve(&*self.secrets).await;
            value.map_err(|error| error.to_string())
        };
        let url = resolve(url).await?;
        let request = self.client().await?.post(url.expose()).timeout(limit);
        let request = request.header("content-type", "application/json").body(body);
        let request = match key {
            Some(key) => request.bearer_auth(resolve(key).await?.expose()),
            None => request,
        };
        let mut answer = request.send().await.map_err(|error| words(&error))?;
        if !answer.status().is_success() {
            return Err(format!("it answered {}", answer.status()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| words(&error))? {
            if bytes.len() + chunk.len() > max_bytes {
                return Err(format!("its answer is larger than {max_bytes} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    async fn get(&self, url: &Template, limit: Duration) -> Result<(), ToolError> {
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message);
        let url = url.resolve(&*self.secrets).await;
        let url = url.map_err(|error| unavailable(error.to_string()))?;
        let client = self.client().await.map_err(unavailable)?;
        let answer = client.get(url.expose()).timeout(limit).send().await;
        let status = answer.map_err(|error| unavailable(words(&error)))?.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(unavailable(format!(
                "its health check endpoint answered {status}"
            )))
        }
    }
}

fn client() -> Result<Client, reqwest::Error> {
    client_of(&builder)
}

/// Creates a client that gives up an answer of which nothing arrives for this time. Reading the CA store blocks.
#[cfg(feature = "agent")]
pub(crate) fn streaming_client(timeout: Duration) -> Result<Client, reqwest::Error> {
    client_of(&|| builder().read_timeout(timeout))
}

fn client_of(builder: &dyn Fn() -> ClientBuilder) -> Result<Client, reqwest::Error> {
    // Without a CA store the platform's verifier is unavailable; the built-in roots are not.
    builder().build().or_else(|_| {
        let roots = TLS_SERVER_ROOT_CERTS
            .iter()
            .filter_map(|root| Certificate::from_der(root).ok());
        builder().tls_certs_only(roots).build()
    })
}

fn builder() -> ClientBuilder {
    Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_LIMIT)
        .user_agent(concat!("toolplane/", env!("CARGO_PKG_VERSION")))
}

/// Describes an error without the URL, which may contain a secret.
pub(crate) fn words(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it cannot be reached"
    } else if error.is_builder() {
        "its URL is not usable"
    } else {
        "the connection broke"
    };
    what.to_owned()
}

/// Creates a webhook of a configuration.
pub(crate) fn hook(
    outbound: Arc<Outbound>,
    spec: &WebhookSpec,
) -> Result<Arc<dyn WebhookTransport>, BuildError> {
    Ok(Arc::new(Hook {
        outbound,
        url: spec.url.clone(),
        secret: spec.secret.clone(),
        headers: spec.headers.clone(),
    }))
}

struct Hook {
    outbound: Arc<Outbound>,
    url: Template,
    secret: Option<Template>,
    headers: BTreeMap<String, Template>,
}

impl Hook {
    async fn send(&self, message: &WebhookMessage) -> Result<(), WebhookError> {
        // A secret that cannot be read may be about to be replaced.
        let request = self.request(message).await;
        let request = request.map_err(|message| WebhookError::new(message).with_transient(true))?;
        let status = request.send().await.map(|answer| answer.status());
        match status {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => {
                let is_transient = status.is_server_error()
                    || matches!(
                        status,
                        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                    );
                Err(WebhookError::new(format!("it answered {status}")).with_transient(is_transient))
            }
            Err(error) => Err(WebhookError::new(words(&error)).with_transient(!error.is_builder())),
        }
    }

    /// Builds the request with the current values of all references.
    async fn request(&self, message: &WebhookMessage) -> Result<RequestBuilder, String> {
        let secrets = &*self.outbound.secrets;
        let resolve = async |template: &Template| {
            let value = template.resolve(secrets).await;
            value.map_err(|error| error.to_string())
        };
        let url = resolve(&self.url).await?;
        let secret = match &self.secret {
            Some(secret) => Some(resolve(secret).await?),
            None => None,
        };
        let client = self.outbound.client().await?;
        let mut request = client.post(url.expose()).timeout(POST_LIMIT);
        for (name, value) in &self.headers {
            request = request.header(name, resolve(value).await?.expose());
        }
        let signed = message.headers(secret.as_ref());
        for (name, value) in signed.map_err(|error| error.to_string())? {
            request = request.header(name, value);
        }
        Ok(request.body(message.body().to_owned()))
    }
}

impl WebhookTransport for Hook {
    fn post<'a>(&'a self, message: &'a WebhookMessage) -> BoxFuture<'a, Result<(), WebhookError>> {
        Box::pin(self.send(message))
    }
}
