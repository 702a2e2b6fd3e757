use tool_chaos::{ChaosPlan, ChaosRule, InjectedFault, InjectedLatency};
use tool_manifest::{ChaosFault, ChaosRuleSpec, ChaosSpec};

/// Converts a chaos file into a plan.
#[must_use]
pub fn chaos_plan(spec: &ChaosSpec) -> ChaosPlan {
    ChaosPlan::new(spec.seed, spec.rules.iter().map(rule))
}

fn rule(spec: &ChaosRuleSpec) -> ChaosRule {
    let mut rule = ChaosRule::default();
    rule.tools.clone_from(&spec.tools);
    rule.failure_rate = spec.failure_rate;
    if let Some(faults) = &spec.faults {
        rule.faults = faults.iter().copied().map(fault).collect();
    }
    rule.latency = spec.latency.map(|(rate, max)| InjectedLatency::new(rate, max));
    rule
}

fn fault(fault: ChaosFault) -> InjectedFault {
    match fault {
        ChaosFault::Timeout => InjectedFault::Timeout,
        ChaosFault::Hang => InjectedFault::Hang,
        ChaosFault::Network => InjectedFault::Network,
        ChaosFault::Auth => InjectedFault::Auth,
        ChaosFault::RateLimit => InjectedFault::RateLimit,
        ChaosFault::ServerError => InjectedFault::ServerError,
        ChaosFault::UnknownOutcome => InjectedFault::UnknownOutcome,
        ChaosFault::Partial => InjectedFault::Partial,
    }
}
