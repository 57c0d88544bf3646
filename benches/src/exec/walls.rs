//! What walls cost above the same start without them.

use anyhow::{Result, bail};
use kiwi_exec::Backend;
use std::path::Path;
use std::process::{Command, Stdio};

use super::start::{Hold, PATH, Starter, TINY};
use crate::cold::find;
use crate::stats::{Samples, Side, rotate, side};

const TURNS: usize = 400;

/// Times of one tiny program, started in every way.
pub struct Walls {
    pub plain: Samples,
    pub standard: Samples,
    pub native: Samples,
    pub bubblewrap: Samples,
    pub native_proxy: Samples,
    pub bubblewrap_proxy: Samples,
    pub by_hand: Samples,
}

/// Starts it in every way in turn.
pub fn measure(kiwi: &Path, scratch: &Path) -> Result<Walls> {
    let starter = Starter::new(kiwi, scratch)?;
    let held = |hold: Hold| {
        side({
            let starter = &starter;
            move || starter.once(&TINY, hold)
        })
    };
    let [program, argument] = TINY;
    let program = find(program)?;
    let (bwrap, view) = (find("bwrap")?, view());
    let mut sides: Vec<Side<'_>> = vec![
        side(|| plain(Command::new(&program).arg(argument))),
        held(Hold::STANDARD),
        held(Hold::restricted(Backend::Native)),
        held(Hold::restricted(Backend::Bubblewrap)),
        held(Hold::sandboxed(Backend::Native)),
        held(Hold::sandboxed(Backend::Bubblewrap)),
        side(|| plain(Command::new(&bwrap).args(&view).arg("--").arg(&program).arg(argument))),
    ];
    let samples = rotate(TURNS, &mut sides)?;
    let Ok([plain, standard, native, bubblewrap, native_proxy, bubblewrap_proxy, by_hand]) =
        <[Samples; 7]>::try_from(samples)
    else {
        bail!("a side was not measured");
    };
    Ok(Walls { plain, standard, native, bubblewrap, native_proxy, bubblewrap_proxy, by_hand })
}

/// One `posix_spawn`, with pipes that are read, as a caller would.
fn plain(command: &mut Command) -> Result<()> {
    let output = command.env_clear().env("PATH", PATH).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The walls of `restricted` as a person would ask `bwrap` for them. What they cannot ask of it is missing: the filter of
/// system calls, the rules of landlock, small files of the sandbox's own.
fn view() -> Vec<String> {
    let mut words: Vec<String> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--unshare-cgroup-try",
        "--as-pid-1",
        "--hostname",
        "kiwi",
        "--cap-drop",
        "ALL",
        "--proc",
        "/proc",
    ]
    .map(str::to_owned)
    .into();
    let mut put = |flag: &str, from: &str, at: &str| words.extend([flag, from, at].map(str::to_owned));
    for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
        put("--dev-bind", device, device);
    }
    for path in ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        match std::fs::read_link(path) {
            Ok(target) => put("--symlink", &target.to_string_lossy(), path),
            Err(_) => put("--ro-bind-try", path, path),
        }
    }
    for path in
        ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"]
    {
        put("--ro-bind-try", path, path);
    }
    for path in ["/tmp", "/home/kiwi", "/dev/shm"] {
        words.extend(["--tmpfs", path].map(str::to_owned));
    }
    words.extend(["--remount-ro", "/proc", "--remount-ro", "/", "--chdir", "/"].map(str::to_owned));
    words
}
