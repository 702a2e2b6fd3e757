//! Calls at a breaker in every order: the source of the circuit and of its layers, compiled with locks whose scheduler tries
//! all interleavings of two callers of a circuit, and thousands of those of up to five calls through the layers.

#[expect(
    unreachable_pub,
    unused_imports,
    dead_code,
    reason = "it is public where it ships"
)]
#[path = "../../src/breaker/mod.rs"]
mod breaker;

/// Replaces `src/sync.rs`.
mod sync {
    use shuttle::sync::{MutexGuard, PoisonError};

    /// A lock of shuttle with the interface of `parking_lot`.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

mod world;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use shuttle::{
    Config, Runner,
    future::{block_on, spawn, yield_now},
    scheduler::{DfsScheduler, RandomScheduler, Scheduler},
    thread,
};
use tool_core::Jitter;

use self::{
    breaker::{Circuit, HeldBack, Verdict},
    world::{Fate, SETTINGS, World, at},
};

const SECOND: Duration = Duration::from_secs(1);
/// What a tool of the model has for one attempt.
const LIMIT: Duration = Duration::from_secs(30);

/// Tries all interleavings, and says how many there are.
fn every_order(scenario: impl Fn() + Send + Sync + 'static) -> usize {
    run(DfsScheduler::new(None, false), scenario)
}

/// Tries some of them, the same ones each time.
fn many_orders(scenario: impl Fn() + Send + Sync + 'static) -> usize {
    run(RandomScheduler::new_from_seed(11, 500), scenario)
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    Runner::new(scheduler, config).run(scenario)
}

/// Calls of these fates meet a breaker that may be tried out; those that hang are given up after `patience`.
///
/// What the calls come to is checked while they run: see [`World::call`].
fn race(world: &World, fates: &[Fate], patience: Duration) {
    let calls: Vec<_> = fates
        .iter()
        .enumerate()
        .map(|(number, fate)| spawn(world.call(number, *fate)))
        .collect();
    // Some calls begin before the time has passed, some after.
    block_on(yield_now());
    world.pass(patience);
    for (call, _) in calls.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Hangs) {
        call.abort();
    }
    for call in calls {
        // One that was given up has no end.
        let _ = block_on(call);
    }
    assert_eq!(world.n_running(), 0);
}

/// The same, with what must hold in the end: the breaker is open if its one probe failed, for twice the time; otherwise calls
/// pass; and in any case it is closed again by one that succeeds. With patience, nothing may fail but what hangs: time moves
/// on, and there may be a second probe.
fn try_out(n_tools: usize, fates: &[Fate], patience: Duration) {
    let world = World::held_back(n_tools);
    world.pass(2 * SECOND);
    race(&world, fates, patience);
    match world.peek() {
        Ok(()) => assert!(!world.has_failed(), "a probe that fails opens it"),
        Err(HeldBack { retry_after }) => {
            let pause = retry_after.expect("no probe is under way");
            assert!(world.has_failed() || !patience.is_zero(), "nothing has failed");
            assert!(is_doubled(pause), "one failure is counted: {pause:?}");
        }
    }
    world.pass(100 * SECOND);
    for tool in 0..n_tools {
        for _ in 0..2 {
            assert!(block_on(world.call(tool, Fate::Answers)), "it is stuck");
        }
    }
}

/// Whether this is the pause after a probe that failed: twice the first one, and up to a fifth more.
fn is_doubled(pause: Duration) -> bool {
    (2 * SECOND..=SECOND * 12 / 5).contains(&pause)
}

/// A circuit that has opened at the beginning and may be tried out at this time.
fn opened() -> (Arc<Circuit>, tool_core::Instant) {
    let circuit = Arc::new(Circuit::default());
    for _ in 0..5 {
        let permit = circuit.acquire(at(0)).expect("it is closed");
        circuit.report(permit, Verdict::Ill, at(0), &SETTINGS, &Jitter::seeded(1));
    }
    circuit.acquire(at(0)).expect_err("it is open");
    (circuit, at(2))
}

/// A caller of a circuit, which finds that no other has leave while it is not known that all is well.
fn caller(circuit: &Circuit, verdict: Verdict, probes: &Probes) {
    let Ok(permit) = circuit.acquire(at(2)) else {
        return;
    };
    let n_others = probes.n_running.fetch_add(1, Ordering::Relaxed);
    let is_well = probes.n_healthy.load(Ordering::Relaxed) > 0;
    assert!(n_others == 0 || is_well, "there are two probes");
    thread::yield_now();
    if verdict == Verdict::Healthy {
        probes.n_healthy.fetch_add(1, Ordering::Relaxed);
    } else if verdict == Verdict::Ill && probes.n_healthy.load(Ordering::Relaxed) == 0 {
        probes.n_failed.fetch_add(1, Ordering::Relaxed);
    }
    probes.n_running.fetch_sub(1, Ordering::Relaxed);
    circuit.report(permit, verdict, at(2), &SETTINGS, &Jitter::seeded(1));
}

#[derive(Default)]
struct Probes {
    n_running: AtomicUsize,
    n_healthy: AtomicUsize,
    n_failed: AtomicUsize,
}

#[test]
fn of_two_callers_one_has_the_probe_in_every_order() {
    use Verdict::{Alive, Healthy, Ill, Unknown};
    for verdicts in [
        [Healthy, Healthy],
        [Healthy, Ill],
        [Ill, Ill],
        [Unknown, Ill],
        [Unknown, Unknown],
        [Alive, Unknown],
    ] {
        let n_orders = every_order(move || {
            let (circuit, now) = opened();
            let probes = Arc::new(Probes::default());
            let other = thread::spawn({
                let (circuit, probes) = (circuit.clone(), probes.clone());
                move || caller(&circuit, verdicts[0], &probes)
            });
            caller(&circuit, verdicts[1], &probes);
            other.join().unwrap();
            // One failure of the one probe, and twice the pause; or else calls pass.
            let n_failed = probes.n_failed.load(Ordering::Relaxed);
            match circuit.peek(now) {
                Ok(()) => assert_eq!(n_failed, 0, "a probe that fails opens it"),
                Err(HeldBack { retry_after }) => {
                    assert_eq!(n_failed, 1, "there was one probe");
                    assert!(is_doubled(retry_after.expect("no probe is under way")));
                }
            }
        });
        assert!(n_orders > 10, "{verdicts:?}: {n_orders}");
    }
}

#[test]
fn of_two_calls_one_is_the_probe_in_thousands_of_orders() {
    use Fate::{Answers, Fails, Hangs};
    for fates in [
        [Answers, Answers],
        [Answers, Fails],
        [Fails, Fails],
        [Hangs, Answers],
        [Hangs, Fails],
        [Hangs, Hangs],
    ] {
        for n_tools in [1, 2] {
            many_orders(move || try_out(n_tools, &fates, Duration::ZERO));
        }
    }
}

#[test]
fn of_five_calls_one_is_the_probe_in_thousands_of_orders() {
    use Fate::{Answers, Fails, Hangs};
    for fates in [
        [Answers; 5],
        [Fails; 5],
        [Hangs; 5],
        [Hangs, Hangs, Fails, Answers, Hangs],
        [Fails, Answers, Fails, Answers, Hangs],
    ] {
        for n_tools in [1, 2] {
            many_orders(move || try_out(n_tools, &fates, Duration::ZERO));
        }
    }
}

#[test]
fn a_probe_that_hangs_for_all_its_time_has_failed_and_one_that_is_given_up_before_has_not() {
    use Fate::{Answers, Hangs};
    for fates in [[Hangs, Hangs], [Hangs, Answers]] {
        many_orders(move || try_out(1, &fates, LIMIT));
    }
    many_orders(|| try_out(2, &[Hangs, Answers, Hangs, Hangs, Answers], LIMIT));
    for (patience, may_open) in [(Duration::ZERO, false), (LIMIT, true)] {
        let n_opened = Arc::new(AtomicUsize::new(0));
        let counted = n_opened.clone();
        many_orders(move || {
            let world = World::held_back(1);
            world.pass(2 * SECOND);
            race(&world, &[Fate::Hangs], patience);
            counted.fetch_add(usize::from(world.peek().is_err()), Ordering::Relaxed);
        });
        assert_eq!(n_opened.load(Ordering::Relaxed) > 0, may_open, "{patience:?}");
    }
}

#[test]
fn what_began_before_it_opened_changes_nothing_in_any_order() {
    for (late, probe) in [
        (Verdict::Healthy, Verdict::Ill),
        (Verdict::Ill, Verdict::Healthy),
        (Verdict::Unknown, Verdict::Ill),
    ] {
        every_order(move || {
            let circuit = Arc::new(Circuit::default());
            let permit = circuit.acquire(at(0)).expect("it is closed");
            for _ in 0..5 {
                let failed = circuit.acquire(at(0)).expect("it is closed");
                circuit.report(failed, Verdict::Ill, at(0), &SETTINGS, &Jitter::seeded(1));
            }
            let old = thread::spawn({
                let circuit = circuit.clone();
                move || circuit.report(permit, late, at(2), &SETTINGS, &Jitter::seeded(1))
            });
            let probes = Probes::default();
            caller(&circuit, probe, &probes);
            assert_eq!(old.join().unwrap(), None, "{late:?} is not counted");
            assert_eq!(circuit.peek(at(2)).is_err(), probe == Verdict::Ill, "{late:?}");
        });
    }
}
