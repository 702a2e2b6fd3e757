use std::time::Duration;

use crate::{Direction, Fault, Plan, shaper::Shaper};

/// A plan with its counters.
#[derive(Debug)]
pub(crate) struct PlanState {
    plan: Plan,
    /// Number of matching exchanges, and of those with faults.
    n_matched: u64,
    n_hit: u64,
}

/// Faults of one exchange.
#[derive(Debug, Default)]
pub(crate) struct ExchangePlan {
    pub(crate) request: Shaper,
    pub(crate) response: Shaper,
    /// Handling that replaces the forwarding.
    pub(crate) instead: Option<Replacement>,
    /// Lines before the answer.
    pub(crate) garbage: Vec<String>,
    /// All faults that apply.
    pub(crate) faults: Vec<Fault>,
}

/// Handling of a request that is not forwarded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    Swallow,
    Answer {
        status: u16,
        retry_after: Option<String>,
    },
    Exit(u8),
    StopReading,
}

impl PlanState {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            n_matched: 0,
            n_hit: 0,
        }
    }

    /// Returns the exit code of a program that ends before it reads anything.
    pub(crate) fn crash(&self) -> Option<u8> {
        self.plan.faults.iter().find_map(|fault| match fault {
            Fault::Crash(code) => Some(*code),
            _ => None,
        })
    }

    /// Returns the faults of the exchange that begins with this request.
    pub(crate) fn course(&mut self, request: &[u8]) -> ExchangePlan {
        let plan = &self.plan;
        if plan.matching.as_ref().is_some_and(|text| !holds(request, text)) {
            return ExchangePlan::default();
        }
        let number = self.n_matched;
        self.n_matched += 1;
        let mut chance = chance(plan.seed, number);
        // Always drawn, so that one setting does not change the effect of another.
        let drawn = chance.f64() * 100.0;
        let is_over = plan.times.is_some_and(|times| self.n_hit >= times);
        if number < plan.skip || is_over || plan.percent.is_some_and(|percent| drawn >= percent) {
            return ExchangePlan::default();
        }
        self.n_hit += 1;
        let mut course = ExchangePlan::default();
        for fault in &plan.faults {
            course.meet(fault, &mut chance);
        }
        course
    }
}

impl ExchangePlan {
    fn meet(&mut self, fault: &Fault, chance: &mut fastrand::Rng) {
        self.faults.push(fault.clone());
        match fault {
            Fault::Delay { direction, min, max } => {
                let span = u64::try_from((*max - *min).as_micros()).unwrap_or(u64::MAX);
                self.lane(*direction).delay = *min + Duration::from_micros(chance.u64(0..=span));
            }
            Fault::Rate {
                direction,
                per_second,
            } => self.lane(*direction).rate = Some(*per_second),
            Fault::Drip {
                direction,
                bytes,
                every,
            } => self.lane(*direction).drip = Some((*bytes, *every)),
            Fault::Cut {
                direction,
                after,
                ending,
            } => self.lane(*direction).cut = Some((*after, *ending)),
            Fault::BlackHole => self.instead = Some(Replacement::Swallow),
            Fault::Status { status, retry_after } => {
                self.instead = Some(Replacement::Answer {
                    status: *status,
                    retry_after: retry_after.clone(),
                });
            }
            Fault::Garbage(text) => self.garbage.push(text.clone()),
            Fault::Exit(code) => self.instead = Some(Replacement::Exit(*code)),
            Fault::StopReading => self.instead = Some(Replacement::StopReading),
            // Applied before the first exchange.
            Fault::Crash(_) => {}
        }
    }

    fn lane(&mut self, direction: Direction) -> &mut Shaper {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        }
    }
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

/// Returns an independent random generator for each exchange, so that one exchange does not change another.
fn chance(seed: u64, number: u64) -> fastrand::Rng {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = seed.wrapping_mul(MIX).wrapping_add(number).wrapping_mul(MIX);
    fastrand::Rng::with_seed(mixed ^ (mixed >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let delay = "delay:response=0ms..1000ms".parse().unwrap();
        Plan::new([delay]).percent(30.0)
    }

    fn delays(plan: Plan) -> Vec<Option<Duration>> {
        let mut planned = PlanState::new(plan);
        let courses = (0..1000).map(|_| planned.course(b"any"));
        courses
            .map(|course| (!course.faults.is_empty()).then_some(course.response.delay))
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        assert_eq!(delays(plan().seed(7)), delays(plan().seed(7)));
        assert_ne!(delays(plan().seed(7)), delays(plan().seed(8)));
    }

    #[test]
    fn chance_meets_as_many_as_it_says() {
        let n_hit = delays(plan()).iter().flatten().count();
        assert!(
            (250..350).contains(&n_hit),
            "{n_hit} of 1000, where 30 % are meant"
        );
        assert_eq!(delays(plan().percent(0.0)).iter().flatten().count(), 0);
        assert_eq!(delays(plan().percent(100.0)).iter().flatten().count(), 1000);
    }

    #[test]
    fn what_one_exchange_meets_does_not_depend_on_others() {
        let all = delays(plan().seed(3));
        let later = delays(plan().seed(3).skip(500));
        assert!(later[..500].iter().all(Option::is_none));
        assert_eq!(all[500..], later[500..]);
    }

    #[test]
    fn those_that_match_are_counted_skipped_and_limited() {
        let plan = Plan::new([Fault::BlackHole]).matching("pay").skip(1).times(2);
        let mut planned = PlanState::new(plan);
        let requests = ["pay", "list", "pay", "list", "pay", "pay"];
        let hit = requests.map(|request| planned.course(request.as_bytes()).instead.is_some());
        assert_eq!(hit, [false, false, true, false, true, false]);
    }
}
