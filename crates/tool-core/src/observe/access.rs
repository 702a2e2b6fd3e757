use std::{fmt, sync::Arc};

use crate::{AlertSubject, CallContext, CorrelationId, Instant};

/// Decision of a sandbox about an access that the program of a tool or of a server asked for. Observers receive it as
/// [`Event::AccessDecided`](crate::Event::AccessDecided); the log and an audit use it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AccessDecision {
    /// Tool whose code asked, or upstream whose program did.
    pub subject: AlertSubject,
    /// Call that the program ran for. `None` for the program of a server, which serves many calls, and for code that was
    /// loaded before its call came.
    pub call: Option<AccessingCall>,
    /// Resource that was asked for.
    pub resource: AccessedResource,
    /// Verdict of the sandbox.
    pub verdict: AccessVerdict,
    /// Time of the decision, by the clock of the call or of the source.
    pub at: Instant,
}

/// Call that a program ran for when it asked for an access.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessingCall {
    /// Id that all records of the call share.
    pub correlation_id: CorrelationId,
    /// Principal that made the call.
    pub principal: Arc<str>,
    /// Tenant of the principal.
    pub tenant: Arc<str>,
}

/// Resource that a program asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessedResource {
    /// Host in the network.
    #[non_exhaustive]
    Host {
        /// Name or address, as the program wrote it: text of the program, not of the operator.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Verdict of a sandbox about an access.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessVerdict {
    /// The access is permitted.
    Allowed,
    /// The access is denied, for this reason.
    Denied(String),
}

impl AccessDecision {
    /// Creates a decision that belongs to no call.
    #[must_use]
    pub fn new(
        subject: AlertSubject,
        resource: AccessedResource,
        verdict: AccessVerdict,
        at: Instant,
    ) -> Self {
        Self {
            subject,
            call: None,
            resource,
            verdict,
            at,
        }
    }

    /// Sets the call that the program ran for.
    #[must_use]
    pub fn with_call(mut self, call: Option<AccessingCall>) -> Self {
        self.call = call;
        self
    }
}

impl AccessingCall {
    /// Creates the record of a call.
    #[must_use]
    pub fn new(cx: &CallContext) -> Self {
        Self {
            correlation_id: cx.correlation_id,
            principal: cx.origin.caller.principal.clone(),
            tenant: cx.origin.caller.tenant.clone(),
        }
    }
}

impl AccessedResource {
    /// Creates the record of a host.
    #[must_use]
    pub fn host(host: impl Into<String>, port: u16) -> Self {
        Self::Host {
            host: host.into(),
            port,
        }
    }

    /// Returns the kind of the resource: `host`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Host { .. } => "host",
        }
    }
}

/// Writes `host:port`, with brackets around an IPv6 address.
impl fmt::Display for AccessedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl AccessVerdict {
    /// Returns the verdict as a word: `allowed` or `denied`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied(_) => "denied",
        }
    }

    /// Returns the reason of a denial.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Allowed => None,
            Self::Denied(reason) => Some(reason),
        }
    }
}
