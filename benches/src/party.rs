//! Measured clients.

use std::{str::FromStr, sync::Arc};

use anyhow::{Error, Result, bail};

use crate::{
    bare::{BareHttp, BareStdio},
    client::{Measured, Way},
    ours::Ours,
    peer::Rmcp,
};

/// Measured client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Party {
    Ours,
    /// Minimal client: a writer, a reader and a map; over HTTP hyper's pooled client.
    Bare,
    /// rmcp with its defaults: over HTTP a new TCP connection for each call, and 16 of them at once.
    Rmcp,
    /// rmcp over HTTP with a client that keeps its connections, and 64 calls at once.
    RmcpPooled,
}

impl Party {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare",
            Self::Rmcp => "rmcp",
            Self::RmcpPooled => "rmcp-pooled",
        }
    }

    /// Returns the clients that are measured over a transport.
    pub fn all_over(way: Way) -> &'static [Self] {
        match way {
            Way::Stdio => &[Self::Ours, Self::Bare, Self::Rmcp],
            _ => &[Self::Ours, Self::Bare, Self::Rmcp, Self::RmcpPooled],
        }
    }

    /// Opens a connection; `server` is the URL for HTTP.
    pub async fn open(self, way: Way, server: &str) -> Result<Arc<dyn Measured>> {
        Ok(match (self, way) {
            (Self::Ours, _) => Arc::new(Ours::open(way, server).await?),
            (Self::Bare, Way::Stdio) => Arc::new(BareStdio::open()?),
            (Self::Bare, _) => Arc::new(BareHttp::open(way, server).await?),
            (Self::Rmcp, _) => Arc::new(Rmcp::open(way, server, false).await?),
            (Self::RmcpPooled, _) => Arc::new(Rmcp::open(way, server, true).await?),
        })
    }
}

impl FromStr for Party {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Ours, Self::Bare, Self::Rmcp, Self::RmcpPooled];
        match all.into_iter().find(|party| party.name() == name) {
            Some(party) => Ok(party),
            None => bail!("there is no party `{name}`"),
        }
    }
}

