//! A wrapped program that echoes each line, from the view of its client.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};
use tp_fault::{Fault, FaultEvent, History, Plan, WrapOptions, wrap};

/// Time limit of a test, to detect a hang.
const LONG: Duration = Duration::from_secs(30);

struct Client {
    input: Option<DuplexStream>,
    output: DuplexStream,
    ended: JoinHandle<std::io::Result<u8>>,
    history: History,
}

impl Client {
    /// Wraps a shell that runs this script.
    fn new(script: &str, plan: Plan) -> Self {
        let (input, theirs) = duplex(4096);
        let (output, ours) = duplex(4096);
        let history = History::default();
        let options = WrapOptions {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            plan,
            history: history.clone(),
        };
        Self {
            input: Some(input),
            output,
            ended: tokio::spawn(wrap(options, theirs, ours)),
            history,
        }
    }

    fn echo(faults: &[&str]) -> Self {
        Self::new("exec cat", plan(faults))
    }

    async fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Reads as many bytes as this text has.
    async fn hear(&mut self, text: &str) {
        let mut heard = vec![0; text.len()];
        timeout(LONG, self.output.read_exact(&mut heard))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(String::from_utf8(heard).unwrap(), text);
    }

    /// Reads until the end. Returns the output and the exit code.
    async fn end(mut self) -> (String, u8) {
        let mut rest = String::new();
        timeout(LONG, self.output.read_to_string(&mut rest))
            .await
            .unwrap()
            .unwrap();
        let code = timeout(LONG, self.ended).await.unwrap().unwrap().unwrap();
        (rest, code)
    }
}

fn plan(faults: &[&str]) -> Plan {
    let faults = faults.iter().map(|text| text.parse::<Fault>());
    Plan::new(faults.map(|fault| fault.unwrap_or_else(|error| panic!("{error}"))))
}

#[tokio::test]
async fn without_faults_lines_pass_and_the_end_is_the_programs() {
    let mut client = Client::new(
        "while read line; do echo \"$line\"; done; exit 3",
        Plan::without_faults(),
    );
    for line in ["one", "two"] {
        client.say(line).await;
        client.hear(&format!("{line}\n")).await;
    }
    client.input = None;
    assert_eq!(client.end().await, (String::new(), 3));
}

#[tokio::test]
async fn a_line_that_is_cut_reaches_the_program_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heard");
    for after in 0..=6 {
        // The program handles the input that it received, to its end.
        let script = format!("cat > '{}'; exit 3", file.display());
        let mut client = Client::new(&script, plan(&[&format!("cut:request={after}")]));
        client.say("hello").await;
        let history = client.history.clone();
        assert_eq!(client.end().await, (String::new(), 3), "cut at {after}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n"[..after]);
        assert_eq!(history.count(|event| matches!(event, FaultEvent::Cut { .. })), 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_has_so_many_bytes() {
    for after in 0..=6 {
        let mut client = Client::echo(&[&format!("cut:response={after}")]);
        client.say("hello").await;
        let expected = "hello\n"[..after].to_owned();
        assert_eq!(client.end().await, (expected, 1), "cut at {after}");
    }
}

#[tokio::test]
async fn only_lines_that_match_meet_faults() {
    let mut client = Client::new("exec cat", plan(&["exit=4"]).matching("bad").skip(1));
    for line in ["good", "bad", "good"] {
        client.say(line).await;
        client.hear(&format!("{line}\n")).await;
    }
    client.say("bad").await;
    assert_eq!(client.end().await, (String::new(), 4));
}

#[tokio::test]
async fn garbage_comes_before_the_answer() {
    let mut client = Client::echo(&["garbage=npm warn", "garbage=deprecated"]);
    client.say("one").await;
    client.hear("npm warn\ndeprecated\none\n").await;
    client.input = None;
    assert_eq!(client.end().await, (String::new(), 0));
}

#[tokio::test]
async fn a_program_that_crashes_was_never_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let client = Client::new(&format!("touch '{}'", file.display()), plan(&["crash=9"]));
    assert_eq!(client.end().await, (String::new(), 9));
    assert!(!file.exists());
}

#[tokio::test]
async fn a_black_hole_reads_on_and_a_deaf_program_does_not() {
    let much = "x".repeat(1024);
    let mut client = Client::echo(&["black-hole"]);
    for _ in 0..64 {
        timeout(LONG, client.say(&much)).await.expect("it is read");
    }
    client.input = None;
    assert_eq!(client.end().await, (String::new(), 0));
    let mut client = Client::echo(&["stop-reading"]);
    let history = client.history.clone();
    client.say("once").await;
    // From now on only the pipe and a buffer take input.
    let mut n_taken = 0;
    while n_taken < 64
        && timeout(Duration::from_millis(200), client.say(&much))
            .await
            .is_ok()
    {
        n_taken += 1;
    }
    assert!(n_taken < 64, "it is read");
    assert_eq!(
        history.count(|event| matches!(event, FaultEvent::Request { .. })),
        1
    );
}

#[tokio::test]
async fn a_program_that_is_killed_tells_the_signal() {
    let client = Client::new("kill -9 $$", Plan::without_faults());
    assert_eq!(client.end().await, (String::new(), 137));
}

#[tokio::test]
async fn faults_of_connections_are_refused() {
    for text in ["status=503", "half-close:response=1"] {
        let client = Client::echo(&[text]);
        let error = client.ended.await.unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{text}` applies to connections, not to wrapped programs")
        );
    }
}
