use std::{net::SocketAddr, path::PathBuf};

use mcp_mock::{MockHttp, MockServer};
use tokio::runtime::{Builder, Runtime};
use tp_fault::{
    ExecutionCounter, ExecutionCounterOptions, Fault, FaultEvent, History, Plan, Proxy, ProxyOptions,
};

use super::gateway::built;

/// Runtime of the fault injection between a gateway and its upstreams: it runs in the process of the test, on its own
/// threads.
pub(crate) struct Net(Runtime);

impl Net {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self(runtime.unwrap())
    }

    /// Starts an execution counter.
    pub(crate) fn ledger(&self, options: ExecutionCounterOptions) -> ExecutionCounter {
        self.0.block_on(ExecutionCounter::with_options(options)).unwrap()
    }

    /// Starts a proxy without faults.
    pub(crate) fn proxy(&self, upstream: SocketAddr) -> Proxy {
        self.proxy_with(ProxyOptions::new(upstream))
    }

    pub(crate) fn proxy_with(&self, options: ProxyOptions) -> Proxy {
        self.0.block_on(Proxy::with_options(options)).unwrap()
    }

    /// Starts an MCP server over HTTP.
    pub(crate) fn serve(&self, server: &MockServer) -> MockHttp {
        self.0.block_on(server.http()).unwrap()
    }

    /// Opens a proxy that refused connections.
    pub(crate) fn open(&self, proxy: &Proxy) {
        let _entered = self.0.enter();
        proxy.open().unwrap();
    }

    /// Waits until the upstream of a proxy is done with the cut exchanges.
    pub(crate) fn settle(&self, proxy: &Proxy) {
        self.0.block_on(proxy.wait_until_settled());
    }
}

/// Returns the program `tp-fault`.
pub(crate) fn tp_fault() -> PathBuf {
    built("tp-fault", "tp-fault")
}

/// Returns a plan by which every exchange has this fault.
pub(crate) fn plan(fault: &str) -> Plan {
    let fault: Fault = fault.parse().unwrap_or_else(|error| panic!("{error}"));
    Plan::new([fault])
}

/// Returns the number of requests that arrived.
pub(crate) fn arrivals(history: &History) -> usize {
    history.count(|event| matches!(event, FaultEvent::Request { .. }))
}

/// Returns `true` if an exchange was cut.
pub(crate) fn is_cut(history: &History) -> bool {
    history.count(|event| matches!(event, FaultEvent::Cut { .. })) > 0
}
