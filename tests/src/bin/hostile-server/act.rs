//! Misbehavior of the tool `act`, on any transport.

use std::{io, thread, time::Duration};

use crate::protocol::{Era, Wire, answer};

pub(crate) const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
pub(crate) const LOGGED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise"}}"#;

const QUESTION: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

fn question(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}",{}"#, &QUESTION[1..])
}

/// Answers the call `id` in this mode, or does not.
pub(crate) fn act(wire: &mut impl Wire, era: Era, mode: &str, id: &str) -> io::Result<()> {
    let text = era.text(r#""fine""#);
    let fine = answer(id, &text);
    match mode {
        "never-answers" => Ok(()),
        "wrong-id" => wire.say(answer("99999999", &text)),
        "string-id" => wire.say(answer(&format!("\"{id}\""), &text)),
        "float-id" => wire.say(answer(&format!("{id}.0"), &text)),
        "no-jsonrpc" => wire.say(format!(r#"{{"id":{id},"result":{text}}}"#)),
        "no-id" => wire.say(format!(r#"{{"jsonrpc":"2.0","result":{text}}}"#)),
        "batch" => wire.say(format!("[{fine}]")),
        "both" => wire.say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{text},"error":{{"code":1,"message":"no"}}}}"#
        )),
        "twice-the-key" => wire.say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{text},"result":{text}}}"#
        )),
        "deep" => wire.say(answer(
            id,
            &format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        )),
        "error-without-id" => {
            wire.say(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#)
        }
        "garbage-first" => {
            for line in [
                "npm warn deprecated",
                "",
                "{\"half\": ",
                "\u{1b}[32mready\u{1b}[0m",
                &fine,
            ] {
                wire.say(line)?;
            }
            Ok(())
        }
        "lone-surrogate" => wire.say(answer(id, &era.text(r#""a\ud800b""#))),
        "invalid-utf8" => {
            let (before, after) = fine.split_at(fine.len() - 10);
            wire.say([before.as_bytes(), b"\xff\xfe\xc0\x80", after.as_bytes()].concat())
        }
        "null-result" => wire.say(answer(id, "null")),
        "unknown-content" => wire.say(answer(
            id,
            &era.complete(
                r#""content":[{"type":"hologram","beam":12345678901234567890123,"at":1e2}],"more":[ 1 ]"#,
            ),
        )),
        "answers-twice" => {
            wire.say(&fine)?;
            wire.say(answer(id, &era.text(r#""again""#)))
        }
        "asks-unasked" => {
            for method in [
                "sampling/createMessage",
                "elicitation/create",
                "roots/list",
                "no/such",
            ] {
                wire.say(format!(
                    r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}","params":{{}}}}"#
                ))?;
            }
            wire.say(&fine)
        }
        // Rounds of the modern era.
        "asks-for-input" => wire.say(answer(
            id,
            &format!(
                r#"{{"resultType":"input_required","inputRequests":{{"a":{QUESTION}}},"requestState":"s"}}"#
            ),
        )),
        "asks-for-much" => {
            let questions: Vec<_> = (0..1000)
                .map(|number| format!("\"{number}\":{QUESTION}"))
                .collect();
            let questions = questions.join(",");
            wire.say(answer(
                id,
                &format!(r#"{{"resultType":"input_required","inputRequests":{{{questions}}}}}"#),
            ))
        }
        "asks-for-junk" => wire.say(answer(id, r#"{"resultType":"input_required","inputRequests":7}"#)),
        "asks-in-no-shape" => wire.say(answer(
            id,
            r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
        )),
        "asks-for-nothing" => wire.say(answer(id, r#"{"resultType":"input_required"}"#)),
        "asks-the-unknown" => wire.say(answer(
            id,
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"no/such","params":{}}}}"#,
        )),
        "odd-type" => wire.say(answer(id, r#"{"resultType":"mystery","content":[]}"#)),
        // Questions of the legacy era, without waiting for their answers.
        "asks-at-once" => {
            for number in 0..200 {
                wire.say(question(&number.to_string()))?;
            }
            thread::sleep(Duration::from_millis(500));
            wire.say(&fine)
        }
        "asks-late" => {
            wire.say(&fine)?;
            wire.say(question("late"))
        }
        "asks-twice-alike" => {
            wire.say(question("same"))?;
            wire.say(question("same"))?;
            thread::sleep(Duration::from_millis(500));
            wire.say(&fine)
        }
        "asks-and-is-silent" => wire.say(question("q")),
        "drips" => drip(wire, &fine),
        "huge" => huge(wire, id, 100),
        "gigantic" => huge(wire, id, 1074),
        "floods-notifications" => {
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
            );
            for _ in 0..20_000 {
                for message in [LOGGED, &progress, CHANGED] {
                    wire.say(message)?;
                }
            }
            wire.say(&fine)
        }
        "floods-questions" => {
            for number in 0..20_000 {
                wire.say(format!(
                    r#"{{"jsonrpc":"2.0","id":{number},"method":"elicitation/create","params":{{}}}}"#
                ))?;
            }
            wire.say(&fine)
        }
        _ => wire.say(&fine),
    }
}

/// Sends an answer that takes longer than any time limit.
fn drip(wire: &mut impl Wire, answer: &str) -> io::Result<()> {
    wire.begin()?;
    let (most, rest) = answer.as_bytes().split_at(50);
    for byte in most.chunks(1) {
        wire.piece(byte)?;
        thread::sleep(Duration::from_millis(100));
    }
    wire.piece(rest)?;
    wire.end()
}

/// Sends an answer of this many megabytes.
fn huge(wire: &mut impl Wire, id: &str, megabytes: usize) -> io::Result<()> {
    wire.begin()?;
    wire.piece(
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#).as_bytes(),
    )?;
    let megabyte = vec![b'x'; 1_000_000];
    for _ in 0..megabytes {
        wire.piece(&megabyte)?;
    }
    wire.piece(b"\"}]}}")?;
    wire.end()
}
