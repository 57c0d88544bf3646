//! Starting one program through the launcher, again and again, as a process that stays does.

use anyhow::{Context, Result, bail};
use kiwi_exec::{Backend, Confinement, Launcher, Network, Process, Unwatched};
use kiwi_model::{Isolation, Text};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// A program without libraries: what is left of its start is the kernel's own.
pub const TINY: [&str; 2] = ["busybox", "true"];
/// Where programs are looked for, so that this does not depend on who measures.
pub const PATH: &str = "/usr/bin:/bin";

/// A launcher, and the runtime it needs.
pub struct Starter {
    launcher: Launcher,
    runtime: Runtime,
}

/// How a program is held.
#[derive(Debug, Clone)]
pub struct Hold {
    pub level: Isolation,
    pub backend: Backend,
    /// Whether it has declared a host, so that Kiwi's proxy stands by.
    pub has_host: bool,
}

impl Hold {
    /// Without walls.
    pub const STANDARD: Self = Self { level: Isolation::Standard, backend: Backend::Auto, has_host: false };

    /// With the tightest walls, built by this backend.
    pub const fn restricted(backend: Backend) -> Self {
        Self { level: Isolation::Restricted, backend, has_host: false }
    }

    /// With walls that have one door.
    pub const fn sandboxed(backend: Backend) -> Self {
        Self { level: Isolation::Sandboxed, backend, has_host: true }
    }
}

impl Starter {
    /// The launcher is `kiwi` itself, as it is for a user.
    pub fn new(kiwi: &Path, scratch: &Path) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("no runtime")?;
        Ok(Self { launcher: Launcher::new(kiwi, scratch), runtime })
    }

    /// The same for a process that has time between starts, in which sandboxes are built ahead, as a server of Kiwi's does.
    pub fn resident(kiwi: &Path, scratch: &Path) -> Result<Self> {
        let starter = Self::new(kiwi, scratch)?;
        starter.launcher.keep_spares();
        Ok(starter)
    }

    /// Waits until no sandbox is being built any more, as far as one has been asked for.
    pub fn rest(&self, kinds: usize) {
        let patience = Instant::now() + Duration::from_millis(200);
        while self.launcher.ready_spares() < kinds && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts it, waits until it and everything around it has ended, and requires that it went well.
    pub fn once(&self, words: &[&str], hold: &Hold) -> Result<()> {
        let run = self.launcher.run(process(words, hold)?, &Unwatched, std::future::pending());
        let finished = self.runtime.block_on(run)?;
        if !finished.exit.is_success() {
            bail!("{words:?} under {hold:?} ended with {}", finished.exit);
        }
        Ok(())
    }
}

fn process(words: &[&str], hold: &Hold) -> Result<Process> {
    let (program, args) = words.split_first().context("nothing to start")?;
    let hosts = if hold.has_host { vec!["example.org".to_owned()] } else { Vec::new() };
    Ok(Process {
        program: Text::literal(*program),
        args: args.iter().map(|word| Text::literal(*word)).collect(),
        env: Vec::new(),
        cwd: "/".into(),
        stdin: b"{}".to_vec(),
        timeout: Duration::from_secs(10),
        output_cap: 1 << 20,
        isolation: hold.level,
        confinement: Confinement {
            backend: hold.backend.clone(),
            network: Network { hosts },
            ..Confinement::default()
        },
        has_secrets: false,
        packages: Vec::new(),
        search_path: PATH.into(),
        project: "/".into(),
    })
}
