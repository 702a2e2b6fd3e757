use tool_chaos::{ChaosPlan, ChaosRule, Fault, Latency};
use tool_manifest::{ChaosFault, ChaosRuleSpec, ChaosSpec};

/// The plan that a chaos file says.
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
    rule.latency = spec.latency.map(|(rate, max)| Latency { rate, max });
    rule
}

fn fault(fault: ChaosFault) -> Fault {
    match fault {
        ChaosFault::Timeout => Fault::Timeout,
        ChaosFault::Hang => Fault::Hang,
        ChaosFault::Network => Fault::Network,
        ChaosFault::Auth => Fault::Auth,
        ChaosFault::RateLimit => Fault::RateLimit,
        ChaosFault::ServerError => Fault::ServerError,
        ChaosFault::UnknownOutcome => Fault::UnknownOutcome,
        ChaosFault::Partial => Fault::Partial,
    }
}
