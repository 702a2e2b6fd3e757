//! Servers with senseless questions to the client of a call.

use super::{GRACE, LONG, SHORT, assert_healthy, assert_lives_on, assert_memory, healthy};
use crate::support::{
    Answer, Carrier, Client as _, Configuration, Era, Gateway, Offer, Stage, Stopwatch, eventually,
};

/// Era of the client, and `true` if it can be asked.
const CLIENTS: [(Era, bool); 4] = [
    (Era::Legacy, false),
    (Era::Legacy, true),
    (Era::Modern, false),
    (Era::Modern, true),
];
/// Modern results with questions that no client can answer.
const SENSELESS: [&str; 6] = [
    "asks-for-nothing",
    "asks-for-junk",
    "asks-in-no-shape",
    "asks-the-unknown",
    "asks-for-much",
    "odd-type",
];

fn with_modes(stage: &Stage, modes: &[&str]) -> Configuration {
    modes.iter().fold(healthy(), |configuration, mode| {
        configuration.server(mode, stage.server(mode, LONG))
    })
}

/// Serves a client that accepts every form, or cannot be asked.
fn serve(era: Era, offers: bool, configuration: &Configuration) -> Gateway {
    let offer = match offers {
        true => Offer::new(r#"{"elicitation":{}}"#, |_, _| {
            Some(r#"{"action":"accept","content":{}}"#.to_owned())
        }),
        false => Offer::default(),
    };
    Gateway::stdio_offering(era, configuration, offer)
}

fn n_asked(gateway: &mut Gateway) -> usize {
    gateway.client.offer().asked.len()
}

fn act(gateway: &mut Gateway, mode: &str) -> Answer {
    gateway.client.call(&format!("{mode}__act"), "{}")
}

#[test]
fn results_that_ask_for_nothing_are_the_servers_fault() {
    for carrier in [Carrier::Stdio, Carrier::Json, Carrier::Events] {
        let stage = Stage::new(carrier, Era::Modern);
        let configuration = with_modes(&stage, &SENSELESS);
        for (era, offers) in CLIENTS {
            let mut gateway = serve(era, offers, &configuration);
            for mode in SENSELESS {
                let answer = act(&mut gateway, mode);
                assert_eq!(
                    answer.error_kind().as_deref(),
                    Some("protocol"),
                    "{mode}: {answer:.1000?}"
                );
                assert_lives_on(&mut gateway, mode);
            }
            assert_eq!(n_asked(&mut gateway), 0);
            assert_eq!(gateway.end().code(), Some(0));
        }
    }
}

/// A server that repeats its question whatever the answer.
#[test]
fn a_server_that_never_has_enough_is_not_asked_for_ever() {
    let stage = Stage::new(Carrier::Stdio, Era::Modern);
    let configuration = with_modes(&stage, &["asks-for-input"]);
    for (era, offers) in CLIENTS {
        let mut gateway = serve(era, offers, &configuration);
        let answer = act(&mut gateway, "asks-for-input");
        match (era, offers) {
            // A client is not asked for anything beyond its capabilities.
            (Era::Legacy, false) => assert!(answer.error_kind().is_some(), "{answer:?}"),
            (Era::Modern, false) => assert_eq!(answer.error_code(), -32021),
            (Era::Legacy, true) => {
                assert_eq!(answer.error_kind().as_deref(), Some("protocol"), "{answer:?}");
                assert!((1..=16).contains(&n_asked(&mut gateway)));
            }
            // Each round is the client's own choice.
            (Era::Modern, true) => assert!(answer.result().contains("input_required")),
        }
        if !offers {
            assert_eq!(n_asked(&mut gateway), 0);
        }
        assert_lives_on(&mut gateway, "asks-for-input");
        assert_healthy(&mut gateway);
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn questions_in_the_middle_of_a_call() {
    for carrier in [Carrier::Stdio, Carrier::Events] {
        let stage = Stage::new(carrier, Era::Legacy);
        let modes = ["asks-at-once", "asks-twice-alike", "asks-late"];
        let configuration =
            with_modes(&stage, &modes).server("silent", stage.server("asks-and-is-silent", SHORT));
        let mut gateway = serve(Era::Legacy, true, &configuration);
        // The late question arrives during the next call, so it is attributed to that one.
        for (mode, most) in modes.into_iter().zip([200, 2, 1]) {
            act(&mut gateway, mode).result();
            assert_lives_on(&mut gateway, mode);
            let asked = std::mem::take(&mut gateway.client.offer().asked);
            assert!(asked.len() <= most, "{mode}: {asked:?}");
        }
        eventually("every question is answered", || stage.noted("answer") >= 200);
        // The question was answered, and the call goes on.
        let watch = Stopwatch::start();
        let answer = act(&mut gateway, "silent");
        assert_eq!(
            answer.error_kind().as_deref(),
            Some("outcome_unknown"),
            "{answer:?}"
        );
        assert!(watch.elapsed() < SHORT + GRACE);
        assert_healthy(&mut gateway);
        assert_memory(&gateway.client.process);
        assert_eq!(gateway.end().code(), Some(0));
    }
}

/// A modern client receives questions and never returns with answers: its calls are parked, with a limit that protects
/// others.
#[test]
fn clients_that_never_come_back_with_answers() {
    let stage = Stage::new(Carrier::Stdio, Era::Legacy);
    let configuration = healthy().server("silent", stage.server("asks-and-is-silent", SHORT));
    let mut gateway = serve(Era::Modern, true, &configuration);
    let calls: Vec<_> = (0..200)
        .map(|_| gateway.client.begin_call("silent__act", "{}"))
        .collect();
    let watch = Stopwatch::start();
    let mut n_rounds = 0;
    for call in calls {
        let answer = gateway.client.wait(call);
        match answer.error_kind() {
            None => {
                assert!(answer.clone().result().contains("input_required"), "{answer:?}");
                n_rounds += 1;
            }
            // Without room for another question, the server receives an error, and never answers.
            Some(kind) => assert_eq!(kind, "outcome_unknown", "{answer:?}"),
        }
    }
    assert!(n_rounds > 0);
    assert!(watch.elapsed() < SHORT + GRACE, "{:?}", watch.elapsed());
    assert_lives_on(&mut gateway, "silent");
    assert_healthy(&mut gateway);
    assert_memory(&gateway.client.process);
    assert_eq!(gateway.end().code(), Some(0));
}
