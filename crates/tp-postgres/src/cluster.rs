//! Cluster in a temporary folder, and the process of its server.

use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    net::TcpListener,
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use crate::{
    ServerUnavailable,
    programs::{ServerUser, folder},
};

/// Name of the superuser.
pub(crate) const SUPERUSER: &str = "toolplane";
/// Number of looks for the end of the start, [`LOOK_INTERVAL`] apart: one minute.
const MAX_LOOKS: u32 = 3000;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Number of ports that are tried: another program may take a port between the look and the start.
const MAX_PORTS: u32 = 5;

/// Script that runs a program until that ends or its own input ends, which it does when the process of the tests ends,
/// however that ends. It then removes the folder, unless it is told to `keep` it.
const SUPERVISOR: &str = r#"
folder=$1
shift
exec 3<&0 </dev/null
"$@" 3<&- &
program=$!
{
    word=
    read -r word <&3
    [ "$word" = keep ] || : >"$folder/over"
    kill -QUIT $program
} 2>/dev/null &
watcher=$!
exec 3<&-
wait $program
status=$?
kill $watcher 2>/dev/null
[ ! -e "$folder/over" ] || rm -rf "$folder"
exit $status
"#;

/// Server with a cluster of its own. Dropped, it stops, and its folder is removed.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    user: ServerUser,
    port: u16,
    settings: Vec<String>,
    process: Option<(Child, ChildStdin)>,
}

/// Certificate of a server and its key, in PEM.
pub(crate) struct ServerCertificate<'a> {
    pub(crate) certificate: &'a str,
    pub(crate) key: &'a str,
}

impl Cluster {
    /// Makes a cluster and starts its server.
    pub(crate) fn start(
        password: &str,
        certificate: Option<&ServerCertificate<'_>>,
    ) -> Result<Self, ServerUnavailable> {
        let (programs, user) = (folder()?, ServerUser::find()?);
        let mut cluster = Self {
            folder: temporary_folder()?,
            programs,
            user,
            port: 0,
            settings: Vec::new(),
            process: None,
        };
        cluster.initialize(password)?;
        if let Some(certificate) = certificate {
            cluster.install(certificate)?;
        }
        let mut attempt = 1;
        loop {
            cluster.port = free_port().map_err(|error| failed("no port is free", &error))?;
            match cluster.run() {
                Ok(()) => return Ok(cluster),
                Err(error) if attempt == MAX_PORTS => return Err(error),
                Err(_) => attempt += 1,
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server at once, as if its machine lost power. The cluster stays.
    pub(crate) fn stop(&mut self) {
        if let Some((mut process, mut input)) = self.process.take() {
            // If the script has ended already, there is nothing to stop.
            let _ = input.write_all(b"keep\n");
            let _ = process.wait();
        }
    }

    /// Starts the server on its port, and waits until it accepts connections.
    pub(crate) fn run(&mut self) -> Result<(), ServerUnavailable> {
        self.stop();
        let pid_file = self.data().join("postmaster.pid");
        let _ = fs::remove_file(&pid_file);
        let mut words = vec![
            self.programs.join("postgres").into_os_string(),
            "-D".into(),
            self.data().into(),
        ];
        words.extend(self.settings().into_iter().map(OsString::from));
        self.process = Some(self.supervise(&words)?);
        for _ in 0..MAX_LOOKS {
            let state = fs::read_to_string(&pid_file).unwrap_or_default();
            if state.lines().nth(7).is_some_and(|line| line.trim() == "ready") {
                return Ok(());
            }
            if let Some((process, _)) = &mut self.process
                && !matches!(process.try_wait(), Ok(None))
            {
                break;
            }
            thread::sleep(LOOK_INTERVAL);
        }
        self.stop();
        Err(ServerUnavailable::new(format!(
            "PostgreSQL does not start: {}",
            self.end_of_log()
        )))
    }

    /// Starts a program as the user of the server, under the script.
    fn supervise(&self, words: &[OsString]) -> Result<(Child, ChildStdin), ServerUnavailable> {
        let open = || File::options().create(true).append(true).open(self.log());
        let (output, errors) = open()
            .and_then(|output| Ok((output, open()?)))
            .map_err(|error| failed("the log cannot be written", &error))?;
        let mut process = Command::new("/bin/sh")
            .args(["-c", SUPERVISOR, "sh"])
            .arg(&self.folder)
            .args(self.user.prefix())
            .args(words)
            // The folder of the caller may be closed to the other user.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            // Signals of a terminal are for the tests, whose end ends the program.
            .process_group(0)
            .spawn()
            .map_err(|error| failed("`/bin/sh` cannot be run", &error))?;
        let input = process.stdin.take().expect("it is piped");
        Ok((process, input))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn end_of_log(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn initialize(&self, password: &str) -> Result<(), ServerUnavailable> {
        let data = self.data();
        DirBuilder::new()
            .mode(0o700)
            .create(&data)
            .map_err(|error| failed("the folder of the cluster cannot be made", &error))?;
        self.user.own(&data)?;
        let password_file = self.write("password", password)?;
        let words = [
            self.programs.join("initdb").into_os_string(),
            "--pgdata".into(),
            data.into(),
            "--pwfile".into(),
            password_file.into(),
            "--username".into(),
            SUPERUSER.into(),
            "--auth=scram-sha-256".into(),
            "--encoding=UTF8".into(),
            "--locale=C".into(),
            "--no-sync".into(),
        ];
        let (mut process, input) = self.supervise(&words)?;
        let ended = process.wait();
        drop(input);
        match ended {
            Ok(status) if status.success() => Ok(()),
            _ => Err(ServerUnavailable::new(format!(
                "`initdb` failed: {}",
                self.end_of_log()
            ))),
        }
    }

    fn install(&mut self, certificate: &ServerCertificate<'_>) -> Result<(), ServerUnavailable> {
        let certificate_file = self.write("certificate.pem", certificate.certificate)?;
        let key_file = self.write("key.pem", certificate.key)?;
        self.settings = vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate_file.display()),
            format!("ssl_key_file={}", key_file.display()),
        ];
        Ok(())
    }

    /// Writes a file that only the user of the server may read.
    fn write(&self, name: &str, content: &str) -> Result<PathBuf, ServerUnavailable> {
        let path = self.folder.join(name);
        OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .map_err(|error| failed(&format!("`{name}` cannot be written"), &error))?;
        self.user.own(&path)?;
        Ok(path)
    }

    fn settings(&self) -> Vec<String> {
        let port = format!("port={}", self.port);
        let fixed = [
            port.as_str(),
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            "shared_buffers=16MB",
            // A cluster of a test need not survive a power cut. It survives the end of its server.
            "fsync=off",
            "full_page_writes=off",
        ];
        let settings = fixed.into_iter().chain(self.settings.iter().map(String::as_str));
        settings
            .flat_map(|setting| ["-c".to_owned(), setting.to_owned()])
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((mut process, input)) = self.process.take() {
            drop(input);
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a random password.
pub(crate) fn password() -> Result<String, ServerUnavailable> {
    random::<16>()
}

/// Returns the hexadecimal digits of random bytes.
fn random<const N: usize>() -> Result<String, ServerUnavailable> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| failed("`/dev/urandom` cannot be read", &error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a name that nothing else has: also what a process with the same number left behind has another one.
pub(crate) fn unique_name() -> Result<String, ServerUnavailable> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    Ok(format!("tp_{}_{number}_{}", std::process::id(), random::<4>()?))
}

fn temporary_folder() -> Result<PathBuf, ServerUnavailable> {
    let folder = env::temp_dir().join(unique_name()?);
    DirBuilder::new()
        // The user of the server passes through.
        .mode(0o711)
        .create(&folder)
        .map_err(|error| failed("a temporary folder cannot be made", &error))?;
    Ok(folder)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn failed(what: &str, error: &io::Error) -> ServerUnavailable {
    ServerUnavailable::new(format!("{what}: {error}"))
}
