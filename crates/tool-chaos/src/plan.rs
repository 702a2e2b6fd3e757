use std::time::Duration;

use tool_core::Pattern;

use crate::InjectedFault;

/// Plan of the faults to inject.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChaosPlan {
    /// Seed of the random numbers: the same seed gives the same faults.
    pub seed: u64,
    /// Rules. For each tool, the first one that matches applies.
    pub rules: Vec<ChaosRule>,
}

/// Faults of some tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChaosRule {
    /// Patterns of the tools, by the names that agents see, and of the resources, by their server's prefix and their URI. An empty
    /// list matches all.
    pub tools: Vec<Pattern>,
    /// Share of attempts that fail, from 0 to 1.
    pub failure_rate: f64,
    /// Faults, equally likely. A fault that is listed twice is twice as likely.
    pub faults: Vec<InjectedFault>,
    /// Delays of attempts.
    pub latency: Option<InjectedLatency>,
}

/// Delays of attempts, before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct InjectedLatency {
    /// Share of attempts that are delayed, from 0 to 1.
    pub rate: f64,
    /// Maximum delay. Delays are uniformly distributed up to it.
    pub max: Duration,
}

impl InjectedLatency {
    /// Delays this share of attempts, by up to this time.
    #[must_use]
    pub const fn new(rate: f64, max: Duration) -> Self {
        Self { rate, max }
    }
}

/// Delay and fault of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Injection {
    /// Delay before the attempt.
    pub delay: Duration,
    /// Fault, or `None` if the attempt is passed on.
    pub fault: Option<InjectedFault>,
}

impl Default for ChaosRule {
    /// Creates a rule for all tools with the usual faults and a failure rate of zero.
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            failure_rate: 0.0,
            faults: InjectedFault::USUAL.to_vec(),
            latency: None,
        }
    }
}

impl ChaosRule {
    /// Sets the patterns of the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Pattern>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }

    /// Sets the share of attempts that fail, from 0 to 1.
    #[must_use]
    pub fn with_failure_rate(mut self, failure_rate: f64) -> Self {
        self.failure_rate = failure_rate;
        self
    }

    /// Sets the faults, equally likely.
    #[must_use]
    pub fn with_faults(mut self, faults: impl IntoIterator<Item = InjectedFault>) -> Self {
        self.faults = faults.into_iter().collect();
        self
    }

    /// Sets the delays of attempts.
    #[must_use]
    pub fn with_latency(mut self, latency: InjectedLatency) -> Self {
        self.latency = Some(latency);
        self
    }
}

impl ChaosPlan {
    /// Creates a plan with these rules.
    #[must_use]
    pub fn new(seed: u64, rules: impl IntoIterator<Item = ChaosRule>) -> Self {
        Self {
            seed,
            rules: rules.into_iter().collect(),
        }
    }

    /// Returns the rule for a tool or resource of this name.
    pub(crate) fn rule(&self, name: &str) -> Option<&ChaosRule> {
        let matches = |rule: &&ChaosRule| {
            rule.tools.is_empty() || rule.tools.iter().any(|pattern| pattern.matches(name))
        };
        self.rules.iter().find(matches)
    }

    /// Returns the injection for an attempt of this tool or resource. Attempts are numbered from 0.
    #[must_use]
    pub fn injection(&self, name: &str, attempt: u64) -> Injection {
        let Some(rule) = self.rule(name) else {
            return Injection::default();
        };
        let mut random = AttemptRandom::new(self.seed, name, attempt);
        // All numbers are drawn in any case, so that a change of the delays does not change the faults.
        let (delayed, delay) = (random.fraction(), random.fraction());
        let (fails, fault) = (random.fraction(), random.fraction());
        let delay = rule
            .latency
            .filter(|latency| delayed < latency.rate)
            .map_or(Duration::ZERO, |latency| latency.max.mul_f64(delay));
        let chosen = (fault * rule.faults.len() as f64) as usize;
        let fault = rule.faults.get(chosen).filter(|_| fails < rule.failure_rate);
        Injection {
            delay,
            fault: fault.copied(),
        }
    }
}

/// Random numbers of one attempt: `SplitMix64` (Steele, Lea and Flood), seeded with a hash of the attempt.
struct AttemptRandom(u64);

impl AttemptRandom {
    fn new(seed: u64, name: &str, attempt: u64) -> Self {
        // FNV-1a, which is the same in every version of Rust.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut random = Self(seed);
        for part in [hash, attempt] {
            random.0 = random.next() ^ part;
        }
        random
    }

    /// Returns a number from 0 to 1, exclusive.
    fn fraction(&mut self) -> f64 {
        // A double between 0 and 1 holds 53 bits exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
