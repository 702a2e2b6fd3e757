use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use super::{Network, Resolve, Traffic, network::AddressPolicy, resolver::GuardedResolver};

/// Name and version by which APIs know this client.
pub(crate) const AGENT: &str = concat!("toolplane/", env!("CARGO_PKG_VERSION"));

/// The clients of one executor, each made when first used. Tools share a client, and so its connections, unless they
/// may reach other networks: a connection made for one tool must not serve another that may not have made it.
pub(crate) struct Clients {
    public: Arc<AddressPolicy>,
    private: Arc<AddressPolicy>,
    resolver: Arc<dyn Resolve>,
    pub(crate) traffic: Traffic,
    made: Mutex<HashMap<ClientKey, Client>>,
}

/// What sets clients apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub allow_private: bool,
    pub connect_timeout: Duration,
}

impl Clients {
    pub(crate) fn new(networks: &[Network], resolver: Arc<dyn Resolve>, traffic: Traffic) -> Self {
        let reach = |private: bool| {
            Arc::new(AddressPolicy {
                networks: networks.to_vec(),
                private,
            })
        };
        Self {
            public: reach(false),
            private: reach(true),
            resolver,
            traffic,
            made: Mutex::default(),
        }
    }

    /// What a tool with this key may reach.
    pub(crate) fn reach(&self, key: ClientKey) -> &Arc<AddressPolicy> {
        if key.allow_private {
            &self.private
        } else {
            &self.public
        }
    }

    /// The client for a key, if it is made already.
    pub(crate) fn made(&self, key: ClientKey) -> Option<Client> {
        let made = self.made.lock();
        made.get(&key).cloned()
    }

    /// The client for a key. Making one reads the CA store, which blocks.
    pub(crate) fn make(&self, key: ClientKey) -> Result<Client, reqwest::Error> {
        let mut made = self.made.lock();
        if let Some(client) = made.get(&key) {
            return Ok(client.clone());
        }
        // Without a CA store the platform's verifier cannot be made; the roots that were built in can.
        let client = self.builder(key).build().or_else(|_| {
            let roots = TLS_SERVER_ROOT_CERTS
                .iter()
                .filter_map(|root| Certificate::from_der(root).ok());
            self.builder(key).tls_certs_only(roots).build()
        })?;
        made.insert(key, client.clone());
        Ok(client)
    }

    fn builder(&self, key: ClientKey) -> ClientBuilder {
        let guard = GuardedResolver {
            inner: self.resolver.clone(),
            reach: self.reach(key).clone(),
        };
        // Redirects and retries are decided elsewhere, and a proxy would resolve names past the guard.
        Client::builder()
            .dns_resolver(guard)
            .connector_layer(self.traffic.counting())
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
