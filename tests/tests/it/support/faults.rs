use std::{net::SocketAddr, path::PathBuf};

use mcp_mock::{MockHttp, MockServer};
use tokio::runtime::{Builder, Runtime};
use tp_fault::{
    ExecutionCounter, ExecutionCounterOptions, Fault, FaultEvent, History, Plan, Proxy, ProxyOptions,
};

use super::gateway::built;

/// What stands between a gateway and what it calls: it runs in the process of the test, on threads of its own.
pub(crate) struct Net(Runtime);

impl Net {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self(runtime.unwrap())
    }

    /// A server that counts what it does.
    pub(crate) fn ledger(&self, options: ExecutionCounterOptions) -> ExecutionCounter {
        self.0.block_on(ExecutionCounter::with_options(options)).unwrap()
    }

    /// A proxy by which nothing goes wrong yet.
    pub(crate) fn proxy(&self, upstream: SocketAddr) -> Proxy {
        self.proxy_with(ProxyOptions::new(upstream))
    }

    pub(crate) fn proxy_with(&self, options: ProxyOptions) -> Proxy {
        self.0.block_on(Proxy::with_options(options)).unwrap()
    }

    /// An MCP server that listens.
    pub(crate) fn serve(&self, server: &MockServer) -> MockHttp {
        self.0.block_on(server.http()).unwrap()
    }

    /// Opens a proxy that refused connections.
    pub(crate) fn open(&self, proxy: &Proxy) {
        let _entered = self.0.enter();
        proxy.open().unwrap();
    }

    /// Waits until the upstream of a proxy is done with what was cut.
    pub(crate) fn settle(&self, proxy: &Proxy) {
        self.0.block_on(proxy.wait_until_settled());
    }
}

/// The program that wraps others.
pub(crate) fn tp_fault() -> PathBuf {
    built("tp-fault", "tp-fault")
}

/// A plan by which every exchange meets this fault.
pub(crate) fn plan(fault: &str) -> Plan {
    let fault: Fault = fault.parse().unwrap_or_else(|error| panic!("{error}"));
    Plan::new([fault])
}

/// How many requests have arrived.
pub(crate) fn arrivals(history: &History) -> usize {
    history.count(|event| matches!(event, FaultEvent::Request { .. }))
}

/// Whether something was cut.
pub(crate) fn is_cut(history: &History) -> bool {
    history.count(|event| matches!(event, FaultEvent::Cut { .. })) > 0
}
