//! Engines in folders of their own.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixStream,
    },
    path::PathBuf,
    process::{self, Child, ChildStdin, Command, Output, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use crate::{EngineKind, EngineUnavailable, programs};

/// Number of looks for the socket, [`LOOK_INTERVAL`] apart: one minute.
const MAX_LOOKS: u32 = 3000;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Name of the image.
const IMAGE: &str = "toolplane-test";
/// Programs of busybox that the image has by name.
const APPLETS: [&str; 26] = [
    "awk", "cat", "cp", "df", "echo", "env", "head", "id", "kill", "ln", "ls", "mount", "ping", "printf",
    "ps", "rm", "setsid", "sh", "sleep", "sort", "stat", "tail", "touch", "true", "wget", "yes",
];
/// Limits that a machine without `CAP_SYS_RESOURCE` can set, the runtime that works in every cgroup hierarchy, and locks in the
/// folder instead of in shared memory, which all engines would share.
const PODMAN_SETTINGS: &str = "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n\
lock_type = \"file\"\n[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
/// Script that runs a program until that ends or its own input ends, which it does when the process of the tests ends, however
/// that ends. It then removes the containers by a second command, and the folder.
const SUPERVISOR: &str = r#"
folder=$1
remove=$2
shift 2
exec 3<&0 </dev/null
"$@" 3<&- &
program=$!
{
    read -r _ <&3
    sh "$remove"
    kill $program
} 2>/dev/null &
watcher=$!
exec 3<&-
wait $program
kill $watcher 2>/dev/null
rm -rf "$folder" 2>/dev/null
:
"#;

/// Engine with an image. Its containers and its folder are removed when it is dropped.
#[derive(Debug)]
pub struct TestEngine {
    kind: EngineKind,
    folder: PathBuf,
    path: OsString,
    image: String,
    process: Option<(Child, ChildStdin)>,
}

impl TestEngine {
    /// Starts an engine and makes its image. Waits until it answers.
    ///
    /// # Errors
    /// If its programs are not installed, this process is not root, or the engine does not start.
    pub fn start(kind: EngineKind) -> Result<Self, EngineUnavailable> {
        let folders = programs::find(kind)?;
        let path = env::join_paths(folders).map_err(|error| EngineUnavailable::new(error.to_string()))?;
        let is_root = Command::new("id")
            .arg("-u")
            .output()
            .is_ok_and(|id| id.stdout == b"0\n");
        if !is_root {
            return Err(EngineUnavailable::new(
                "an engine with limits is only started as root",
            ));
        }
        let mut engine = Self {
            kind,
            folder: temporary_folder().map_err(|error| failed("no folder", error))?,
            path,
            image: String::new(),
            process: None,
        };
        engine
            .prepare()
            .map_err(|error| failed("the folder cannot be prepared", error))?;
        engine.launch()?;
        engine.image = engine.import(IMAGE, &[])?;
        Ok(engine)
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("api.sock")
    }

    /// Returns the id of the image.
    #[must_use]
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Returns the image by the digest of its manifest, which podman has for images that were made here.
    #[must_use]
    pub fn image_by_digest(&self) -> Option<String> {
        let shown = self.run([
            "image",
            "inspect",
            "--format",
            "{{range .RepoDigests}}{{.}} {{end}}",
            IMAGE,
        ]);
        let shown = String::from_utf8(shown.ok()?.stdout).ok()?;
        shown.split_whitespace().next().map(str::to_owned)
    }

    /// Makes an image of the same files with further instructions, such as `VOLUME /data`. Returns its id.
    ///
    /// # Errors
    /// If the engine refuses it.
    pub fn import(&self, name: &str, changes: &[&str]) -> Result<String, EngineUnavailable> {
        let archive = self.folder.join("image.tar");
        let mut words: Vec<&OsStr> = vec!["import".as_ref()];
        for change in changes {
            words.extend([OsStr::new("--change"), OsStr::new(change)]);
        }
        words.extend([archive.as_os_str(), name.as_ref()]);
        let made = self
            .run(words)
            .map_err(|error| failed("the image cannot be made", error))?;
        let text = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        match text.lines().next_back() {
            Some(id) if made.status.success() => Ok(format!("sha256:{}", id.trim_start_matches("sha256:"))),
            _ => Err(failed(
                "the image cannot be made",
                String::from_utf8_lossy(&made.stderr),
            )),
        }
    }

    /// Runs the engine's own program with these arguments.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Output> {
        self.command(words).stdin(Stdio::null()).output()
    }

    /// Returns the command of the engine's own program with these arguments.
    #[must_use]
    pub fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new("env");
        command.args(self.words()).args(words).env("PATH", &self.path);
        command
    }

    /// Returns the ids of all containers, running or not.
    ///
    /// # Panics
    /// If the engine does not list them.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        let listed = self
            .run(["ps", "--all", "--quiet", "--no-trunc"])
            .expect("the program runs");
        assert!(listed.status.success(), "{listed:?}");
        let listed = String::from_utf8_lossy(&listed.stdout);
        listed.split_whitespace().map(str::to_owned).collect()
    }

    /// Words that begin each command line of the engine's program.
    fn words(&self) -> Vec<OsString> {
        let in_folder = |name: &str| self.folder.join(name).into_os_string();
        match self.kind {
            EngineKind::Podman => vec![
                join("CONTAINERS_CONF=", &in_folder("containers.conf")),
                "podman".into(),
                "--storage-driver".into(),
                "vfs".into(),
                "--root".into(),
                in_folder("root"),
                "--runroot".into(),
                in_folder("run"),
                "--tmpdir".into(),
                in_folder("tmp"),
            ],
            EngineKind::Docker => vec![
                join("DOCKER_CONFIG=", &in_folder("config")),
                "docker".into(),
                "--host".into(),
                join("unix://", &in_folder("api.sock")),
            ],
        }
    }

    /// Command line of the engine.
    fn service(&self) -> Vec<OsString> {
        let in_folder = |name: &str| self.folder.join(name).into_os_string();
        let socket = join("unix://", &in_folder("api.sock"));
        match self.kind {
            EngineKind::Podman => {
                let mut words = self.words();
                words.extend(["system", "service", "--time", "0"].map(OsString::from));
                words.push(socket);
                words
            }
            EngineKind::Docker => {
                let settings = "dockerd --iptables=false --ip6tables=false --bridge=none --storage-driver vfs \
                                --default-ulimit nofile=1024:1024 --log-level error";
                let mut words: Vec<OsString> = settings
                    .split(' ')
                    .filter(|word| !word.is_empty())
                    .map(OsString::from)
                    .collect();
                words.extend([
                    "--data-root".into(),
                    in_folder("root"),
                    "--exec-root".into(),
                    in_folder("run"),
                ]);
                words.extend(["--pidfile".into(), in_folder("pid"), "--host".into(), socket]);
                words.extend(["--init-path".into(), in_folder("docker-init")]);
                words
            }
        }
    }

    /// Writes what the engine reads, and the archive of the image.
    fn prepare(&self) -> io::Result<()> {
        fs::write(self.folder.join("containers.conf"), PODMAN_SETTINGS)?;
        fs::create_dir_all(self.folder.join("config"))?;
        let find = |program: &str| {
            env::split_paths(&self.path)
                .map(|folder| folder.join(program))
                .find(|path| path.is_file())
        };
        if let Some(tini) = find("tini-static") {
            symlink(tini, self.folder.join("docker-init"))?;
        }
        let files = self.folder.join("files");
        fs::create_dir_all(files.join("bin"))?;
        fs::create_dir_all(files.join("tmp"))?;
        // As images have it: engines give a file system the permissions of what is at its place.
        fs::set_permissions(files.join("tmp"), Permissions::from_mode(0o1777))?;
        let busybox = find("busybox").ok_or(io::ErrorKind::NotFound)?;
        fs::copy(busybox, files.join("bin/busybox"))?;
        for applet in APPLETS {
            symlink("busybox", files.join("bin").join(applet))?;
        }
        let archive = self.folder.join("image.tar");
        let packed = Command::new("tar")
            .arg("-C")
            .arg(&files)
            .arg("-cf")
            .arg(archive)
            .arg(".")
            .status()?;
        match packed.success() {
            true => fs::remove_dir_all(files),
            false => Err(io::Error::other("`tar` failed")),
        }
    }

    fn launch(&mut self) -> Result<(), EngineUnavailable> {
        let quoted: Vec<String> = self.words().iter().map(|word| quote(word)).collect();
        let (program, path) = (quoted.join(" "), quote(&self.path));
        let remove = format!(
            "export PATH={path}\nids=$(env {program} ps --all --quiet)\n[ -z \"$ids\" ] || env {program} rm --force --volumes $ids\n"
        );
        let script = self.folder.join("remove.sh");
        let log = self.folder.join("log.txt");
        let failed_to_start = |error: io::Error| failed("the engine cannot be started", error);
        fs::write(&script, remove).map_err(failed_to_start)?;
        let file = fs::File::create(&log).map_err(failed_to_start)?;
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(SUPERVISOR)
            .arg("supervisor")
            .arg(&self.folder)
            .arg(script);
        command.arg("env").args(self.service()).env("PATH", &self.path);
        // podman's monitor of a container writes into its working directory.
        command.current_dir(&self.folder);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        let mut child = child.map_err(failed_to_start)?;
        let input = child.stdin.take();
        self.process = input.map(|input| (child, input));
        for _ in 0..MAX_LOOKS {
            if UnixStream::connect(self.socket()).is_ok() {
                return Ok(());
            }
            if let Some((child, _)) = &mut self.process
                && !matches!(child.try_wait(), Ok(None))
            {
                break;
            }
            thread::sleep(LOOK_INTERVAL);
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        Err(failed(
            "the engine does not answer",
            log.lines().next_back().unwrap_or_default(),
        ))
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.process.take() {
            drop(input);
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn failed(what: &str, why: impl fmt::Display) -> EngineUnavailable {
    EngineUnavailable::new(format!("{what}: {why}"))
}

fn join(start: &str, rest: &OsStr) -> OsString {
    let mut word = OsString::from(start);
    word.push(rest);
    word
}

fn quote(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

/// Creates a folder. Its path is short, since that of a socket has at most 107 bytes.
fn temporary_folder() -> io::Result<PathBuf> {
    static N_FOLDERS: AtomicU64 = AtomicU64::new(0);
    loop {
        let n = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tp-ctr-{}-{n}", process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
