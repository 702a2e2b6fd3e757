use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use super::{Network, Resolve, Traffic, network::AddressPolicy, resolver::GuardedResolver};

/// Value of the `User-Agent` header.
pub(crate) const AGENT: &str = concat!("toolplane/", env!("CARGO_PKG_VERSION"));

/// HTTP clients of one executor, created on first use. Tools share a client and its connections, unless they may reach
/// different networks: a tool must not use a connection that it may not open itself.
pub(crate) struct Clients {
    public: Arc<AddressPolicy>,
    private: Arc<AddressPolicy>,
    resolver: Arc<dyn Resolve>,
    pub(crate) traffic: Traffic,
    created: Mutex<HashMap<ClientKey, Client>>,
}

/// Properties in which clients differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub allow_private: bool,
    pub connect_timeout: Duration,
}

impl Clients {
    pub(crate) fn new(networks: &[Network], resolver: Arc<dyn Resolve>, traffic: Traffic) -> Self {
        let policy = |private: bool| {
            Arc::new(AddressPolicy {
                networks: networks.to_vec(),
                private,
            })
        };
        Self {
            public: policy(false),
            private: policy(true),
            resolver,
            traffic,
            created: Mutex::default(),
        }
    }

    /// Returns the addresses that tools with this key may reach.
    pub(crate) fn address_policy(&self, key: ClientKey) -> &Arc<AddressPolicy> {
        if key.allow_private {
            &self.private
        } else {
            &self.public
        }
    }

    /// Returns the client for a key, or `None` if it was not created yet.
    pub(crate) fn existing(&self, key: ClientKey) -> Option<Client> {
        let created = self.created.lock();
        created.get(&key).cloned()
    }

    /// Returns the client for a key, which is created if needed. Creating one reads the CA store, which blocks.
    pub(crate) fn get_or_create(&self, key: ClientKey) -> Result<Client, reqwest::Error> {
        let mut created = self.created.lock();
        if let Some(client) = created.get(&key) {
            return Ok(client.clone());
        }
        // Without a CA store the platform verifier fails; then the built-in roots of Mozilla are used.
        let client = self.builder(key).build().or_else(|_| {
            let roots = TLS_SERVER_ROOT_CERTS
                .iter()
                .filter_map(|root| Certificate::from_der(root).ok());
            self.builder(key).tls_certs_only(roots).build()
        })?;
        created.insert(key, client.clone());
        Ok(client)
    }

    fn builder(&self, key: ClientKey) -> ClientBuilder {
        let guard = GuardedResolver {
            inner: self.resolver.clone(),
            policy: self.address_policy(key).clone(),
        };
        // Redirects and retries are handled elsewhere, and a proxy would resolve names without the address check.
        Client::builder()
            .dns_resolver(guard)
            .connector_layer(self.traffic.layer())
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(key.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(32)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            .gzip(true)
            .brotli(true)
            .user_agent(AGENT)
    }
}
