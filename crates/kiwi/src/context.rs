//! What every command starts from: the environment read once, the spaces opened, the kernel built.

use camino::Utf8Path;
use kiwi_gate::{Caller, Host, Kernel};
use kiwi_model::{ErrorKind, Explain, Fault};
use kiwi_space::{Locations, Spaces};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::browser::Browser;

/// The surroundings of a command.
pub struct Context {
    /// Where Kiwi was started.
    pub cwd: PathBuf,
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Kiwi's own environment.
    pub environment: BTreeMap<String, String>,
    /// The running program.
    pub kiwi: PathBuf,
    /// Where a person gives access to servers.
    pub browser: Arc<Browser>,
}

impl Context {
    /// Reads the environment and opens the spaces.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn new(project: Option<&Utf8Path>) -> Result<Self, Fault> {
        let cwd =
            std::env::current_dir().map_err(|error| internal("the current folder cannot be read", &error))?;
        // Variables that are not text cannot be named in a manifest either.
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let user = ["KIWI_USER_SPACE", "HOME"]
            .iter()
            .find_map(|name| environment.get(*name).filter(|value| !value.is_empty()));
        let user = user.map(|user| cwd.join(user));
        Self::at(
            Locations { project: project.map(|project| cwd.join(project.as_std_path())), cwd, user },
            environment,
        )
    }

    /// Opens the spaces at given places.
    pub fn at(locations: Locations, environment: BTreeMap<String, String>) -> Result<Self, Fault> {
        let kiwi = std::env::current_exe()
            .map_err(|error| internal("the running program cannot be found", &error))?;
        let cwd = locations.cwd.clone();
        let spaces = Arc::new(Spaces::open(locations).map_err(|error| error.fault())?);
        let browser = Arc::new(Browser::new(Self::is_interactive()));
        let host = Host {
            environment: environment.clone(),
            kiwi: kiwi.clone(),
            launcher: None,
            cwd: cwd.clone(),
            scratch: std::env::temp_dir(),
            has_terminal: std::io::stderr().is_terminal(),
            authorize: Some(Arc::clone(&browser) as Arc<_>),
        };
        let kernel = Arc::new(Kernel::new(spaces, host)?);
        Ok(Self { cwd, kernel, environment, kiwi, browser })
    }

    /// Whether a person is at this terminal who can be asked.
    pub fn is_interactive() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// A path as a person here would type it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }

    /// Waits for what takes its time.
    pub fn wait<T>(work: impl Future<Output = T>) -> Result<T, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| internal("the runtime does not start", &error))?;
        Ok(runtime.block_on(work))
    }

    /// The time, for what is written down or grows old.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place of the program that reads the clock"
    )]
    pub fn now() -> SystemTime {
        SystemTime::now()
    }

    /// The person at this terminal. Where nobody has logged in, as in containers and services, the system knows the name.
    pub fn caller(&self) -> Caller {
        let named = ["USER", "LOGNAME"].iter().find_map(|name| self.environment.get(*name));
        Caller::cli(&named.filter(|name| !name.is_empty()).cloned().unwrap_or_else(kiwi_exec::account))
    }
}

fn internal(what: &str, error: &std::io::Error) -> Fault {
    Fault::new(ErrorKind::Internal, format!("{what}: {error}"))
}
