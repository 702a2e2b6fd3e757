use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

use crate::{HealthReport, hide_credentials};

/// Condition that an operator should know of, or its end. Observers receive it as
/// [`Event::Alert`](crate::Event::Alert); logs, metrics and webhooks use it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Alert {
    /// Kind of the alert.
    pub kind: AlertKind,
    /// Phase of the alert: firing or resolved.
    pub phase: AlertPhase,
    /// Subject of the alert.
    pub subject: AlertSubject,
    /// Description for people: a lower-case fragment without secrets, arguments and results.
    pub message: String,
    /// Time of the alert.
    pub at: SystemTime,
    /// Health figures at that time, if the alert depends on any.
    pub health: Option<HealthReport>,
}

/// Kind of an [`Alert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// The success rate is too low.
    SuccessRate,
    /// Attempts take too long.
    Latency,
    /// Health checks fail.
    HealthCheck,
    /// The tool is disabled until an operator acts, for example renews its credentials.
    Disabled,
    /// A call failed in a way that should not happen, or that needs an operator.
    Failure,
}

/// Phase of an [`Alert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlertPhase {
    /// The condition holds.
    Firing,
    /// The condition is over.
    Resolved,
}

/// Subject of an [`Alert`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AlertSubject {
    /// Tool, by the name that agents see.
    Tool(Arc<str>),
    /// Upstream of tools, by the name of its [`UpstreamState`](crate::UpstreamState): a server, or the host of an
    /// API.
    Upstream(Arc<str>),
}

impl Alert {
    /// Creates an alert without figures. Removes text that looks like a credential from `message`.
    #[must_use]
    pub fn new(
        kind: AlertKind,
        phase: AlertPhase,
        subject: AlertSubject,
        message: impl Into<String>,
        at: SystemTime,
    ) -> Self {
        let mut message = message.into();
        if let Cow::Owned(hidden) = hide_credentials(&message) {
            message = hidden;
        }
        Self {
            kind,
            phase,
            subject,
            message,
            at,
            health: None,
        }
    }

    /// Sets the health figures.
    #[must_use]
    pub fn with_health(mut self, health: HealthReport) -> Self {
        self.health = Some(health);
        self
    }
}

impl AlertKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::SuccessRate,
        Self::Latency,
        Self::HealthCheck,
        Self::Disabled,
        Self::Failure,
    ];

    /// Returns the kind as a word for the wire and for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessRate => "success_rate",
            Self::Latency => "latency",
            Self::HealthCheck => "health_check",
            Self::Disabled => "disabled",
            Self::Failure => "failure",
        }
    }
}

impl AlertPhase {
    /// Both phases.
    pub const ALL: &'static [Self] = &[Self::Firing, Self::Resolved];

    /// Returns the phase as a word for the wire and for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

impl AlertSubject {
    /// Returns the kind of the subject: `tool` or `upstream`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Upstream(_) => "upstream",
        }
    }

    /// Returns the name of the subject.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Tool(name) | Self::Upstream(name) => name,
        }
    }
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind(), self.name())
    }
}
