//! Container engines for the tests: a Docker service and a Podman of their own, with one small image each.

use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::shell::Shell;

/// Tells the tests where the engines are.
pub const VARIABLE: &str = "KIWI_TEST_CONTAINERS";
/// The image both engines have.
const IMAGE: &str = "kiwi-test:1";
/// A Docker service of its own is ready in about a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Running engines; dropped, they stop and leave nothing.
pub struct Engines {
    folder: PathBuf,
    service: Child,
}

impl Engines {
    /// Starts them in a scratch folder.
    pub fn start() -> Result<Self> {
        // A short path: the name of a socket has little room.
        let folder = std::env::temp_dir().join(format!("kiwi-engines-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("daemon.json"), "{}")?;
        fs::write(folder.join("containers.conf"), PODMAN)?;
        let podman = folder.join("podman");
        let storage = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{0}/root\"\nrunroot = \"{0}/run\"\n",
            podman.display()
        );
        fs::write(folder.join("storage.conf"), storage)?;
        let log = fs::File::create(folder.join("dockerd.log"))?;
        let service = Command::new("dockerd")
            .arg("--config-file")
            .arg(folder.join("daemon.json"))
            .args(["-H", &docker_host(&folder), "--data-root"])
            .arg(folder.join("root"))
            .arg("--exec-root")
            .arg(folder.join("exec"))
            .arg("--pidfile")
            .arg(folder.join("docker.pid"))
            .args(["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"])
            .args(["--bridge=none", "--storage-driver=overlay2"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start `dockerd`")?;
        let mut engines = Self { folder, service };
        engines.await_service()?;
        engines.import()?;
        println!("   docker and podman are ready with `{IMAGE}`");
        Ok(engines)
    }

    /// The value of [`VARIABLE`].
    pub fn folder(&self) -> &str {
        self.folder.to_str().unwrap_or_default()
    }

    fn await_service(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.client("docker", &["version"]).is_ok_and(|it| it.success()) {
            if self.service.try_wait()?.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.folder.join("dockerd.log")).unwrap_or_default();
                bail!("`dockerd` does not start; it needs root. Its last words:\n{}", tail(&log));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// A root file system with busybox in it, as an image of each engine. No registry is asked.
    fn import(&self) -> Result<()> {
        let root = self.folder.join("rootfs");
        for name in ["bin", "tmp", "etc"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        let busybox = crate::shell::find("busybox").context("`busybox` is not here")?;
        fs::copy(&busybox, root.join("bin/busybox"))?;
        for applet in Shell::new(&busybox)?.args(["--list"]).read()?.lines().filter(|name| *name != "busybox")
        {
            symlink("busybox", root.join("bin").join(applet))?;
        }
        let archive = self.folder.join("rootfs.tar");
        Shell::new("tar")?
            .args([Path::new("-C"), &root, Path::new("-cf"), &archive, Path::new(".")])
            .run()?;
        let archive = archive.to_str().context("the scratch folder is not UTF-8")?;
        for engine in ["docker", "podman"] {
            if !self.client(engine, &["import", archive, IMAGE])?.success() {
                bail!("`{engine} import` failed");
            }
        }
        Ok(())
    }

    fn client(&self, engine: &str, words: &[&str]) -> Result<std::process::ExitStatus> {
        let mut command = Command::new(engine);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
            .env("DOCKER_HOST", docker_host(&self.folder))
            .env("CONTAINERS_CONF", self.folder.join("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.folder.join("storage.conf"));
        command.status().with_context(|| format!("cannot start `{engine}`"))
    }
}

/// Runs one command with the engines: `cargo xtask engines cargo test -p kiwi --test container`.
pub fn run(program: &str, words: &[&str]) -> Result<()> {
    let engines = Engines::start()?;
    Shell::new(program)?.args(words).env(VARIABLE, engines.folder()).run()
}

impl Drop for Engines {
    fn drop(&mut self) {
        let _ = self.client("podman", &["rm", "--all", "--force"]);
        let stop = Command::new("kill").arg(self.service.id().to_string()).status();
        if stop.is_ok_and(|status| status.success()) {
            let _ = self.service.wait();
        }
        // Podman leaves its storage mounted.
        let mounted = self.folder.join("podman/root/overlay");
        let _ = Command::new("umount").arg(mounted).stderr(Stdio::null()).status();
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("   {} could not be removed: {error}", self.folder.display());
        }
    }
}

fn docker_host(folder: &Path) -> String {
    format!("unix://{}/docker.sock", folder.display())
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(8)).copied().collect::<Vec<_>>().join("\n")
}

/// `crun` refuses cgroup v1 with a v2 tree beside it, and a journal may not be there.
const PODMAN: &str = "\
[containers]
default_ulimits = [\"nofile=20000:20000\", \"nproc=32768:32768\"]
[engine]
cgroup_manager = \"cgroupfs\"
events_logger = \"file\"
runtime = \"runc\"
";
