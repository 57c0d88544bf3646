//! What the tests of this crate share: a launcher, processes to run, and a way to find what they leave behind.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses a part of it; a test may stop at the first surprise"
)]

pub mod packages;
pub mod sandbox;
pub mod spares;

use kiwi_exec::{Confinement, ExecError, Finished, Launcher, Package, PackageForm, Process, Unwatched};
use kiwi_model::{Content, Digest, File, FileEntry, Isolation, Text};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A scratch folder with a launcher that uses it. Dropping it checks that no run left anything in the scratch folder.
pub struct Bench {
    pub home: tempfile::TempDir,
    pub launcher: Launcher,
}

impl Bench {
    pub fn new() -> Self {
        // Not below `/tmp`: a sandbox has one of its own, where a tool may do anything, and what is allowed elsewhere would
        // not show.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let launcher = Launcher::new(example("launcher"), home.path().join("scratch"));
        let launcher = launcher.with_grace(Duration::from_millis(300));
        Self { home, launcher }
    }

    /// One that keeps spares, and whose launcher has a path that nobody else's has.
    pub fn with_spares() -> Self {
        let mut bench = Self::new();
        let kiwi = bench.home.path().join("launcher");
        std::os::unix::fs::symlink(example("launcher"), &kiwi).unwrap();
        bench.launcher = Launcher::new(kiwi, &bench.launcher.scratch).with_grace(bench.launcher.grace);
        bench.launcher.keep_spares();
        bench
    }

    pub fn run(&self, process: Process) -> Result<Finished, ExecError> {
        block_on(self.launcher.run(process, &Unwatched, std::future::pending()))
    }

    /// Runs and expects exit code 0; the output as text.
    pub fn output(&self, process: Process) -> String {
        let finished = self.run(process).unwrap();
        assert!(
            finished.exit.is_success(),
            "{} {}",
            finished.exit,
            String::from_utf8_lossy(&finished.stderr)
        );
        String::from_utf8(finished.stdout).unwrap()
    }

    pub fn snapshots(&self) -> usize {
        std::fs::read_dir(&self.launcher.scratch).map_or(0, Iterator::count)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.snapshots(), 0, "a snapshot was left behind");
        }
    }
}

/// An example program of this crate, built by `cargo test` next to the tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo test -p kiwi-exec` or build the examples",
        path.display()
    );
    path
}

/// Threads of the runtime's pool that have nothing to do leave at once: whoever counts threads counts what Kiwi left, and
/// does not wait for these as long as it is patient.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().thread_keep_alive(Duration::from_millis(100));
    runtime.build().unwrap().block_on(future)
}

pub fn process(program: &str, args: &[&str]) -> Process {
    Process {
        program: Text::literal(program),
        args: args.iter().map(|text| Text::literal(*text)).collect(),
        env: vec![("PATH".into(), Text::literal("/usr/bin:/bin"))],
        cwd: "/".into(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(20),
        output_cap: 1 << 20,
        isolation: Isolation::Standard,
        confinement: Confinement::default(),
        has_secrets: false,
        packages: Vec::new(),
        search_path: "/usr/bin:/bin".into(),
        project: "/".into(),
    }
}

pub fn shell(script: &str) -> Process {
    process("sh", &["-c", script])
}

pub fn file(path: &str, bytes: &[u8], is_executable: bool) -> File {
    let entry = FileEntry { path: path.into(), sha256: Digest::of(bytes), is_executable };
    File { entry, content: Content::Bytes(bytes.into()) }
}

pub fn one_file(link: usize, file: File) -> Package {
    Package { link, files: vec![file], form: PackageForm::OneFile }
}

pub fn folder(link: usize, files: Vec<File>) -> Package {
    Package { link, files, form: PackageForm::Folder }
}

/// A number of seconds to sleep that no other process sleeps.
pub fn marker() -> String {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    format!("98765.{}", u64::from_ne_bytes(bytes))
}

/// What [`marked`] finds when nothing is left.
pub const NOBODY: [i32; 0] = [];

/// Processes with the marker in their command line. Zombies have none.
pub fn marked(marker: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
        .collect()
}

/// Waits until so many processes have the marker.
pub fn wait_for_marked(marker: &str, count: usize) -> Vec<i32> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let found = marked(marker);
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < deadline, "{} processes carry the marker, not {count}", found.len());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
