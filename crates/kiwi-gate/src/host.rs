//! What the gate knows about the machine: handed in by the face, never looked up.

use kiwi_mcp::Authorize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The variables a tool always gets, where the host has them.
const PASSED: [&str; 5] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR"];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Facts about the machine.
#[derive(Clone, Default)]
pub struct Host {
    /// Kiwi's own environment.
    pub environment: BTreeMap<String, String>,
    /// The running binary, which is also the launcher, and carries one along that starts sooner.
    pub kiwi: PathBuf,
    /// A program that is to be the launcher instead of both.
    pub launcher: Option<PathBuf>,
    /// Where a call without a project works.
    pub cwd: PathBuf,
    /// Where private copies of tools are made for the length of a call.
    pub scratch: PathBuf,
    /// Whether a person sits before it, who can be asked to unlock a keyring.
    pub has_terminal: bool,
    /// Who asks that person for access to an upstream server.
    pub authorize: Option<Arc<dyn Authorize>>,
}

impl Host {
    /// The search path for programs.
    pub fn search_path(&self) -> &str {
        self.environment.get("PATH").map_or(DEFAULT_PATH, String::as_str)
    }

    /// Whether nobody watches: a build machine says so of itself.
    pub(crate) fn is_unattended(&self) -> bool {
        self.environment.get("CI").is_some_and(|value| value == "true" || value == "1")
    }

    /// Whether every project is trusted: build machines clone what they were told to clone.
    pub(crate) fn trusts_everything(&self) -> bool {
        self.environment.get("KIWI_TRUST").is_some_and(|value| value == "1")
    }

    /// Where the bus of the desktop's session is said to be: by its own variable, else where sessions have it.
    pub(crate) fn session_bus(&self) -> Option<String> {
        let set = |name: &str| self.environment.get(name).filter(|value| !value.is_empty());
        set("DBUS_SESSION_BUS_ADDRESS")
            .cloned()
            .or_else(|| set("XDG_RUNTIME_DIR").map(|folder| format!("unix:path={folder}/bus")))
    }

    /// What stands for a variable where machines are compared: its value is this machine's own, and may be a secret.
    pub(crate) fn symbol(name: &str) -> String {
        if name == "HOME" { "<home>".to_owned() } else { format!("<env:{name}>") }
    }

    /// What a tool's environment starts from: next to nothing, or everything where its manifest says `trusted`.
    pub(crate) fn base_environment(&self, everything: bool) -> BTreeMap<String, String> {
        let mut base: BTreeMap<String, String> = if everything {
            self.environment.clone()
        } else {
            let passed = PASSED
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), self.environment.get(*name)?.clone())));
            passed.collect()
        };
        base.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
        base
    }
}

/// Variables that the builder of an environment, and only it, inherits beside the usual ones.
const BUILDER_PREFIXES: [&str; 4] = ["PIP_", "UV_", "npm_config_", "NPM_CONFIG_"];
const BUILDER_NAMES: [&str; 11] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];

impl Host {
    /// The environment of the program that installs language packages: it must find the same index as its user.
    pub(crate) fn builder_environment(&self) -> Vec<(String, String)> {
        let mut environment = self.base_environment(false);
        let wanted = |name: &str| {
            BUILDER_NAMES.contains(&name) || BUILDER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        environment.extend(
            self.environment
                .iter()
                .filter(|(name, _)| wanted(name))
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        environment.into_iter().collect()
    }
}

/// Variables by which the clients of container engines find their service, their storage and their registries.
const ENGINE_PREFIXES: [&str; 4] = ["DOCKER_", "CONTAINER_", "CONTAINERS_", "BUILDAH_"];
const ENGINE_NAMES: [&str; 6] = [
    "REGISTRY_AUTH_FILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "STORAGE_DRIVER",
];

impl Host {
    /// The environment of a container engine's client: it must find the same engine as its user. What runs in a
    /// container gets none of it.
    pub(crate) fn engine_environment(&self) -> Vec<(String, String)> {
        let wanted = |name: &str| {
            ENGINE_NAMES.contains(&name)
                || BUILDER_NAMES.contains(&name)
                || ENGINE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut environment = self.base_environment(false);
        let more = self.environment.iter().filter(|(name, _)| wanted(name));
        environment.extend(more.map(|(name, value)| (name.clone(), value.clone())));
        environment.into_iter().collect()
    }
}
