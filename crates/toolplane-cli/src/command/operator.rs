//! Command line of operators: health, approvals, unknown outcomes, tokens and the sandbox.

use std::{net::SocketAddr, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

/// `toolplane health`
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Address of the gateway, instead of the configuration's `gateway.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) address: Option<SocketAddr>,
    /// Ask no gateway: start the servers and run all health checks once
    #[arg(long, conflicts_with = "address")]
    pub(crate) direct: bool,
}

/// `toolplane approvals`
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the calls that wait for approval, and the decided ones
    Ls,
    /// Show all about one call
    Show {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
    },
    /// Allow the call, once
    Approve {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Name of the person who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// Refuse the call
    Deny {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Name of the person who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
        /// Reason, shown to the caller
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `toolplane ledger`
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// List the calls that ended as `outcome_unknown`, latest first
    Ls,
    /// Show one call with unknown outcome or with an idempotency key
    Show {
        /// The `ledger_id` of the error, which is the correlation id in the logs
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// `toolplane tokens`
#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Create a token and print it, once
    Create(CreateToken),
    /// List the tokens, oldest first, without their secrets
    Ls,
    /// Revoke a token: it is refused from the next request on
    Revoke {
        /// Id of the token, or its beginning
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// `toolplane sandbox`
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Attack the sandbox, and print what it held against and which limits hold for what
    Probe(SandboxProbe),
}

/// `toolplane sandbox probe`
#[derive(Debug, Args)]
pub(crate) struct SandboxProbe {
    /// Level to attack; the strongest that works if not given
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) level: Option<ProbedLevel>,
}

/// Level of a sandbox that isolates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbedLevel {
    /// Namespaces by bubblewrap
    Bwrap,
    /// Landlock, without namespaces
    Landlock,
}

/// `toolplane tokens create`
#[derive(Debug, Args)]
pub(crate) struct CreateToken {
    /// Name of the person or program that the token authenticates
    #[arg(value_name = "PRINCIPAL")]
    pub(crate) principal: String,
    /// Tenant of the principal, unless `policy.principals` sets it
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Role of `policy.roles` that the token adds to those of the principal; may be given more than once
    #[arg(long = "role", value_name = "NAME")]
    pub(crate) roles: Vec<String>,
    /// Time until the token expires, such as `12h` or `30d`; it does not expire by default
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::lifetime)]
    pub(crate) expires: Option<Duration>,
    /// Note for people, shown in lists
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}
