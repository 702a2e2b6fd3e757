use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

use crate::{HealthReport, hide_credentials};

/// Something that an operator should know, or that is over. It goes to observers as
/// [`Event::Alert`](crate::Event::Alert): logs, metrics and webhooks listen there.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Alert {
    /// What it is about.
    pub kind: AlertKind,
    /// Whether it begins or is over.
    pub phase: AlertPhase,
    /// What it concerns.
    pub subject: AlertSubject,
    /// What happened, for people: a lower-case fragment without secrets, arguments and results.
    pub message: String,
    /// When.
    pub at: SystemTime,
    /// The figures at that time, if it goes by any.
    pub health: Option<HealthReport>,
}

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// Too few attempts succeed.
    SuccessRate,
    /// Attempts take too long.
    Latency,
    /// Regular checks fail.
    HealthCheck,
    /// It is not called any more until an operator has done something, such as renewed its credentials.
    Disabled,
    /// A call has failed in a way that should not happen, or that somebody has to look into.
    Failure,
}

/// Whether an alert begins or is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlertPhase {
    /// It begins.
    Firing,
    /// It is over.
    Resolved,
}

/// What an alert concerns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AlertSubject {
    /// A tool, by the name that agents call it by.
    Tool(Arc<str>),
    /// What runs tools, by the name of its [`UpstreamState`](crate::Upstream): a server, or the host of an API.
    Upstream(Arc<str>),
}

impl Alert {
    /// An alert without figures, and without what looks like a credential in its message.
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

    /// The same alert with the figures that it goes by.
    #[must_use]
    pub fn with_health(mut self, health: HealthReport) -> Self {
        self.health = Some(health);
        self
    }
}

impl AlertKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::SuccessRate,
        Self::Latency,
        Self::HealthCheck,
        Self::Disabled,
        Self::Failure,
    ];

    /// The word for it over the wire and in metrics.
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
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Firing, Self::Resolved];

    /// The word for it over the wire and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

impl AlertSubject {
    /// Which kind of thing it is: `tool` or `upstream`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Upstream(_) => "upstream",
        }
    }

    /// Its name.
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
