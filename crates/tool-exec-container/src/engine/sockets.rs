use std::path::{Path, PathBuf};

/// Variables that name the engine, in the order in which they count.
const VARIABLES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Sockets at which an engine is looked for.
///
/// # Order
/// A written socket is the only one. Without it, `DOCKER_HOST` and then `CONTAINER_HOST` name the only one; without these, the
/// first of these sockets at which an engine answers is used: `/var/run/docker.sock`, `/run/podman/podman.sock`, and below
/// `XDG_RUNTIME_DIR` `docker.sock` and `podman/podman.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSockets {
    /// Sockets in the order in which they are tried.
    pub(super) paths: Vec<PathBuf>,
    /// Place that names the only socket, such as a variable.
    pub(super) named_by: Option<&'static str>,
    /// Value that names no socket.
    pub(super) unusable: Option<String>,
}

impl EngineSockets {
    /// Creates the list of a single socket, written in the settings `socket` of `container` in `defaults`.
    #[must_use]
    pub fn written(path: impl Into<PathBuf>) -> Self {
        Self {
            paths: vec![path.into()],
            named_by: Some("`socket` of `container` in `defaults`"),
            unusable: None,
        }
    }

    /// Selects the sockets by the variables of a process, each of which `variable` returns.
    #[must_use]
    pub fn by_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let given = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
        if let Some((name, value)) = VARIABLES.into_iter().find_map(given) {
            let path = value.strip_prefix("unix://").filter(|path| path.starts_with('/'));
            return Self {
                paths: path.map(PathBuf::from).into_iter().collect(),
                named_by: Some(name),
                unusable: path.is_none().then_some(value),
            };
        }
        let mut usual = Self::default();
        if let Some(directory) = variable("XDG_RUNTIME_DIR").filter(|directory| directory.starts_with('/')) {
            let of_user = ["docker.sock", "podman/podman.sock"];
            usual
                .paths
                .extend(of_user.map(|name| Path::new(&directory).join(name)));
        }
        usual
    }
}

impl Default for EngineSockets {
    /// Returns the usual sockets of the machine.
    fn default() -> Self {
        let of_machine = ["/var/run/docker.sock", "/run/podman/podman.sock"];
        Self {
            paths: of_machine.into_iter().map(PathBuf::from).collect(),
            named_by: None,
            unusable: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EngineSockets;

    #[test]
    fn the_order_of_sockets() {
        let by = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            let sockets =
                EngineSockets::by_variables(|name| find(name).map(|(_, value)| (*value).to_owned()));
            let paths: Vec<_> = sockets
                .paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            (paths.join(" "), sockets.unusable)
        };
        let usual = "/var/run/docker.sock /run/podman/podman.sock";
        assert_eq!(by(&[]).0, usual);
        let of_user = format!("{usual} /run/user/7/docker.sock /run/user/7/podman/podman.sock");
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        assert_eq!(by(&[runtime]).0, of_user);
        let (docker, podman) = (
            ("DOCKER_HOST", "unix:///a.sock"),
            ("CONTAINER_HOST", "unix:///b.sock"),
        );
        assert_eq!(by(&[podman, docker, runtime]).0, "/a.sock");
        assert_eq!(by(&[podman, ("DOCKER_HOST", "")]).0, "/b.sock");
        // Another place than the named one is never used instead of it.
        let remote = by(&[("DOCKER_HOST", "tcp://10.0.0.1:2375"), podman]);
        assert_eq!(remote, (String::new(), Some("tcp://10.0.0.1:2375".to_owned())));
    }
}
