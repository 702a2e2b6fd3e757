//! First answers that are kept from one start to the next.
//!
//! They are used only if nothing has changed that they depend on: the program and its arguments, the files of the configuration, the
//! store, and the kept lists. See `docs/adr/070-first-answers-are-kept.md`.

use std::{env, fs, io, path::PathBuf, time::SystemTime};

use serde_json::json;
use tokio::task::spawn_blocking;
use toolplane::{
    PrivateFolder, RawJson,
    manifest::{AuthenticationSpec, Loaded, StoreSpec, process_variables},
};
use toolplane_gateway::{FirstAnswers, Gateway};

use super::file_states::FileState;
use crate::{command::Serve, config, lock, store::OpenStore};

/// First answers of an earlier start, if they still hold, and what is needed to keep those of this start.
pub(super) struct KeptAnswers {
    folder: PrivateFolder,
    /// Name of the file.
    name: String,
    inputs: Inputs,
    /// Digest of the state of the inputs before they were read.
    state: String,
    found: Option<FirstAnswers>,
}

/// Everything that the first answers depend on.
struct Inputs {
    /// Program, with its arguments and the variables that it reads itself.
    start: serde_json::Value,
    /// Files of the configuration, and the directory of kept lists if they are in files.
    files: Vec<PathBuf>,
    store: Option<OpenStore>,
    /// Time before any of them was read.
    begun: SystemTime,
    principal: &'static str,
}

/// Maximum size of a file, in bytes. Larger answers are not kept.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of files. The oldest are deleted first.
const MAX_FILES: usize = 64;
/// Beginnings of the names of variables that the program reads itself. Those of servers and secrets change no kept list.
const VARIABLES: [&str; 4] = ["TOOLPLANE", "MCP_", "XDG_", "HOME"];

impl KeptAnswers {
    /// Looks for the answers of an earlier start. To be called before the store and the kept lists are read; `begun` is a time before
    /// the files were. `None` if none are kept: with authentication, in a recording or with faults, with tools in files of a store,
    /// where lists are not kept, and if there is no place for them.
    pub(super) async fn look(
        loaded: &Loaded,
        store: Option<&OpenStore>,
        serve: &Serve,
        begun: SystemTime,
    ) -> Option<Self> {
        let configuration = &loaded.configuration;
        let mut servers = configuration.servers.iter();
        let keeps_lists =
            configuration.defaults.keep_lists && servers.all(|server| server.keep_lists.unwrap_or(true));
        let is_plain = serve.recording.record.is_none()
            && serve.recording.replay.is_none()
            && serve.chaos.is_none()
            && configuration.gateway.auth == AuthenticationSpec::None
            && !matches!(configuration.store, StoreSpec::Files { .. })
            && keeps_lists;
        let folder = config::answers_folder()?;
        let inputs = is_plain.then(|| Inputs::new(loaded, store, serve, begun))??;
        let state = inputs.state().await?;
        let start = raw_json::digest(&RawJson::from(inputs.start.clone()));
        let name = format!("{}{}", &raw_json::hex(&start)[..16], config::ANSWERS_ENDING);
        let found = read(&folder, &name, &state).unwrap_or_else(|error| {
            tracing::debug!(%error, "the first answers of an earlier start are not used");
            None
        });
        Some(Self {
            folder,
            name,
            inputs,
            state,
            found,
        })
    }

    /// Returns the answers of an earlier start that still hold.
    pub(super) fn found(&self) -> Option<&FirstAnswers> {
        self.found.as_ref()
    }

    /// Returns the answers of this start. To be called once the lists of an earlier run are known, and before anybody can start a
    /// server: they contain nothing then that is not kept anyway.
    pub(super) fn now(&self, gateway: &Gateway) -> Option<FirstAnswers> {
        gateway.first_answers(self.inputs.principal)
    }

    /// Keeps the answers of this start for the next one. Does nothing if an input has changed since the answers were looked for, or
    /// may have without being seen.
    pub(super) async fn keep(self, answers: FirstAnswers) {
        if !self.inputs.are_settled() || self.inputs.state().await.as_ref() != Some(&self.state) {
            return;
        }
        let written = spawn_blocking(move || self.write(&answers));
        if let Ok(Err(error)) = written.await {
            tracing::debug!(%error, "the first answers are not kept for the next start");
        }
    }

    /// Removes answers of an earlier start that were found, and are not those of this one.
    pub(super) async fn check(self, gateway: &Gateway) {
        if self.now(gateway) == self.found {
            return;
        }
        let removed = spawn_blocking(move || fs::remove_file(self.folder.path().join(self.name)));
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(%error, "wrong first answers stay for the next start");
        }
    }

    fn write(&self, answers: &FirstAnswers) -> io::Result<()> {
        let text = format!("{}\n{}", self.state, answers.to_json().as_str());
        if text.len() as u64 > MAX_BYTES {
            return Ok(());
        }
        self.folder.replace(&self.name, &text)?;
        self.folder
            .sweep(MAX_FILES, |name| name.ends_with(config::ANSWERS_ENDING))
    }
}

/// Reads the answers in a file; `None` if it has none for this state.
fn read(folder: &PrivateFolder, name: &str, state: &str) -> io::Result<Option<FirstAnswers>> {
    folder.check()?;
    let text = String::from_utf8(folder.read(name, MAX_BYTES)?);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text"))?;
    let answers = text.split_once('\n').filter(|(of, _)| *of == state);
    Ok(answers.and_then(|(_, answers)| FirstAnswers::from_json(answers)))
}

impl Inputs {
    fn new(loaded: &Loaded, store: Option<&OpenStore>, serve: &Serve, begun: SystemTime) -> Option<Self> {
        let program = env::current_exe().ok()?;
        let arguments: Vec<_> = env::args_os().map(|text| format!("{text:?}")).collect();
        let directory = env::current_dir().ok()?;
        let is_ours = |name: &str| VARIABLES.iter().any(|beginning| name.starts_with(beginning));
        let mut variables: Vec<_> = process_variables()
            .into_iter()
            .filter(|(name, _)| is_ours(&name.to_string_lossy()))
            .map(|variable| format!("{variable:?}"))
            .collect();
        variables.sort();
        let mut files = loaded.files.clone();
        files.push(lock::path(loaded));
        if store.is_none_or(|store| !store.is_named) {
            files.push(config::list_store()?.folder().to_owned());
        }
        Some(Self {
            start: json!([
                env!("CARGO_PKG_VERSION"),
                format!("{:?}", FileState::of(&program)?),
                arguments,
                format!("{directory:?}"),
                variables,
            ]),
            files,
            store: store.cloned(),
            begun,
            principal: if serve.stdio { "local" } else { "anonymous" },
        })
    }

    /// Returns a digest of their present state; `None` if it cannot be found out.
    async fn state(&self) -> Option<String> {
        let store = match &self.store {
            Some(store) => Some(store.list_state().await.ok()?),
            None => None,
        };
        let files: Vec<_> = self.files.iter().map(|file| format!("{file:?}")).collect();
        let states = format!("{:?}", FileState::of_all(&self.files));
        let state = json!([self.start, files, states, store]);
        Some(raw_json::hex(&raw_json::digest(&RawJson::from(state))))
    }

    /// Returns `true` if every change of a file since the beginning would be seen.
    fn are_settled(&self) -> bool {
        let mut states = FileState::of_all(&self.files).into_iter().flatten();
        states.all(|state| state.is_settled(self.begun))
    }
}
