use std::time::Duration;

use tool_core::Pattern;

use crate::InjectedFault;

/// Which faults there are to be.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChaosPlan {
    /// What all chance begins with: the same seed gives the same faults.
    pub seed: u64,
    /// What happens to which tools; of each tool, the first rule counts that it fits.
    pub rules: Vec<ChaosRule>,
}

/// What happens to some tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChaosRule {
    /// Which tools, by the names that agents see, and which resources, by their server's prefix and their URI; all if
    /// there are none.
    pub tools: Vec<Pattern>,
    /// The share of attempts that fail, from 0 to 1.
    pub failure_rate: f64,
    /// What they fail with, each as likely; one that stands here twice is twice as likely.
    pub faults: Vec<InjectedFault>,
    /// How attempts are delayed.
    pub latency: Option<Latency>,
}

/// How attempts are delayed, before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// The share of attempts that are, from 0 to 1.
    pub rate: f64,
    /// The longest delay; each shorter one is as likely.
    pub max: Duration,
}

/// What happens to one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// How long it is delayed.
    pub delay: Duration,
    /// What goes wrong, if anything does.
    pub fault: Option<InjectedFault>,
}

impl Default for ChaosRule {
    /// For all tools, with the usual faults, and none of them yet.
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            failure_rate: 0.0,
            faults: InjectedFault::USUAL.to_vec(),
            latency: None,
        }
    }
}

impl ChaosPlan {
    /// A plan of these rules.
    #[must_use]
    pub fn new(seed: u64, rules: impl IntoIterator<Item = ChaosRule>) -> Self {
        Self {
            seed,
            rules: rules.into_iter().collect(),
        }
    }

    /// The rule that counts for what has this name.
    pub(crate) fn rule(&self, name: &str) -> Option<&ChaosRule> {
        let fits = |rule: &&ChaosRule| {
            rule.tools.is_empty() || rule.tools.iter().any(|pattern| pattern.matches(name))
        };
        self.rules.iter().find(fits)
    }

    /// What happens to the attempt of this number, from 0, to call what has this name.
    #[must_use]
    pub fn fate(&self, name: &str, attempt: u64) -> Fate {
        let Some(rule) = self.rule(name) else {
            return Fate::default();
        };
        let mut chance = Chance::new(self.seed, name, attempt);
        // All of it is drawn, whatever comes of it: other delays are no other failures.
        let (delayed, delay) = (chance.fraction(), chance.fraction());
        let (fails, fault) = (chance.fraction(), chance.fraction());
        let delay = rule
            .latency
            .filter(|latency| delayed < latency.rate)
            .map_or(Duration::ZERO, |latency| latency.max.mul_f64(delay));
        let chosen = (fault * rule.faults.len() as f64) as usize;
        let fault = rule.faults.get(chosen).filter(|_| fails < rule.failure_rate);
        Fate {
            delay,
            fault: fault.copied(),
        }
    }
}

/// The chance of one attempt: `SplitMix64`, begun with a hash of what the attempt is.
struct Chance(u64);

impl Chance {
    fn new(seed: u64, name: &str, attempt: u64) -> Self {
        // FNV-1a, which stays the same in every version of everything.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut chance = Self(seed);
        for part in [hash, attempt] {
            chance.0 = chance.next() ^ part;
        }
        chance
    }

    /// A number from 0 up to but not including 1.
    fn fraction(&mut self) -> f64 {
        // 53 bits are what a float between 0 and 1 holds exactly.
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
