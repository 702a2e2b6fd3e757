use std::{
    ffi::OsString,
    panic::{self, AssertUnwindSafe, PanicHookInfo, UnwindSafe},
    process::ExitCode,
};

use clap::{FromArgMatches, error::ErrorKind};

use crate::{
    command::{Agent, Cli, Color, Format, LogFormat, Options, Verb, command},
    error::CliError,
    exit::Exit,
    output::Console,
    process::logging,
    verbs,
};

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    panic::set_hook(Box::new(report_bug));
    let arguments: Vec<OsString> = std::env::args_os().collect();
    run_catching_panics(AssertUnwindSafe(|| run(&arguments))).into()
}

/// Runs `run` and returns [`Exit::Bug`] if it panics. No state of `run` is used after a panic.
fn run_catching_panics(run: impl FnOnce() -> Exit + UnwindSafe) -> Exit {
    panic::catch_unwind(run).unwrap_or(Exit::Bug)
}

fn run(arguments: &[OsString]) -> Exit {
    let cli = match command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => return usage(arguments, &error),
    };
    let console = Console::new(&cli.options);
    match dispatch(cli, console) {
        Ok(exit) => exit,
        Err(failure) => {
            console.failure(&failure);
            failure.exit
        }
    }
}

fn dispatch(cli: Cli, console: Console) -> Result<Exit, CliError> {
    let options = &cli.options;
    // A verb that ends prints its own error; a verb that serves has only the log.
    let level = if matches!(cli.verb, Verb::Serve(_) | Verb::MockServer(_)) {
        "warn"
    } else {
        "error"
    };
    logging::start(options, level, console)?;
    match cli.verb {
        Verb::Init(init) => verbs::configuration::init::run(&init, console),
        Verb::Check(check) => verbs::configuration::check::run(options, &check, console),
        Verb::Doctor => verbs::configuration::doctor::run(options, console),
        Verb::Import(import) => verbs::import::run(options, &import, console),
        Verb::Add(add) => verbs::add::run(options, &add, console),
        Verb::Connect(connect) => verbs::clients::connect(options, &connect, console),
        Verb::Disconnect(disconnect) => verbs::clients::disconnect(&disconnect, console),
        Verb::Catalog(catalog) => verbs::catalog::run(options, &catalog, console),
        Verb::Export(export) => verbs::export::run(options, &export, console),
        Verb::Tools(tools) => verbs::tools::run(options, tools, console),
        Verb::Servers(servers) => verbs::servers::run(options, &servers, console),
        Verb::Secrets(secrets) => verbs::registry::secrets(options, secrets, console),
        Verb::Lock(lock) => verbs::lock::run(options, &lock, console),
        Verb::Call(call) => verbs::call::run(options, &call, console),
        Verb::Agent(Agent::Run(agent)) => verbs::agent::run(options, &agent, console),
        Verb::Flow(flow) => verbs::flow::run(options, &flow, console),
        Verb::Route(route) => verbs::route::run(options, &route, console),
        Verb::Serve(serve) => verbs::serve::run(options, &serve, console),
        Verb::Endpoint(endpoint) => verbs::endpoint::run(options, &endpoint, console),
        Verb::Health(health) => verbs::operator::health::run(options, &health, console),
        Verb::Approvals(approvals) => verbs::operator::approvals::run(options, &approvals, console),
        Verb::Ledger(ledger) => verbs::operator::ledger::run(options, &ledger, console),
        Verb::Tokens(tokens) => verbs::operator::tokens::run(options, tokens, console),
        Verb::Usage(usage) => verbs::usage::run(options, &usage, console),
        Verb::Sandbox(sandbox) => verbs::sandbox::run(&sandbox, console),
        Verb::MockServer(mock) => verbs::mock_server::run(&mock, console),
        Verb::Schema(schema) => verbs::reference::schema::run(&schema, console),
        Verb::Completions(completions) => verbs::reference::completions::run(&completions, console),
        Verb::Man(man) => verbs::reference::man::run(&man, console),
        Verb::Version => verbs::reference::version::run(console),
        Verb::Docs(docs) => verbs::reference::docs::run(&docs, console),
    }
}

/// Prints the error of a command line. Help and version arrive here too and are no errors.
fn usage(arguments: &[OsString], error: &clap::Error) -> Exit {
    let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_asked_for || !wants_json(arguments) {
        // Help goes to stdout, errors to stderr. A failure to print cannot be reported.
        let _ = error.print();
    } else {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, more) = text.split_once('\n').unwrap_or((text, ""));
        let failure = CliError::usage(message.trim());
        let more: Vec<&str> = more.split_whitespace().collect();
        let failure = if more.is_empty() {
            failure
        } else {
            failure.with_hint(more.join(" "))
        };
        Console::new(&json_options()).failure(&failure);
    }
    if is_asked_for { Exit::Done } else { Exit::Usage }
}

/// Returns `true` if a command line that does not parse asks for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    let before_end = arguments.iter().take_while(|argument| *argument != "--");
    let words: Vec<&str> = before_end.filter_map(|argument| argument.to_str()).collect();
    words
        .windows(2)
        .any(|pair| matches!(pair, ["-o" | "--output", "json"]))
        || words
            .iter()
            .any(|word| matches!(*word, "-ojson" | "-o=json" | "--output=json"))
}

fn json_options() -> Options {
    Options {
        config: Vec::new(),
        output: Format::Json,
        color: Color::Never,
        log_format: LogFormat::Auto,
        log: None,
        quiet: false,
        verbose: 0,
        ignores_endpoint_variable: false,
    }
}

/// Prints the message for a bug of toolplane.
fn report_bug(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("unknown reason");
    let version = env!("CARGO_PKG_VERSION");
    let failure = CliError::new(
        Exit::Bug,
        "internal",
        format!("toolplane {version} failed at {place}: {message}"),
    )
    .with_hint("this is a bug of toolplane: please report it with this line");
    Console::new(&Options {
        output: Format::Table,
        color: Color::Auto,
        ..json_options()
    })
    .failure(&failure);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug_of_ours() {
        assert_eq!(run_catching_panics(|| Exit::Denied), Exit::Denied);
        assert_eq!(
            run_catching_panics(|| panic!("this panic belongs to the test")),
            Exit::Bug
        );
    }
}
