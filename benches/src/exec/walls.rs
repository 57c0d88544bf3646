//! What walls cost above the same start without them.

use anyhow::{Result, anyhow, bail};
use kiwi_exec::Backend;
use std::path::Path;
use std::process::{Command, Stdio};

use super::start::{Hold, PATH, Starter, TINY};
use crate::cold::find;
use crate::stats::{Samples, Side, rotate, side, time};

const TURNS: usize = 400;

/// Times of one tiny program, started in every way.
pub struct Walls {
    pub plain: Samples,
    pub standard: Samples,
    pub native: Samples,
    pub bubblewrap: Samples,
    pub native_proxy: Samples,
    pub bubblewrap_proxy: Samples,
    /// The same where nothing is there ahead, as `kiwi run` has it.
    pub standard_anew: Samples,
    pub native_anew: Samples,
    pub bubblewrap_anew: Samples,
    pub by_hand: Samples,
}

/// As many kinds of launchers are there ahead here.
const KINDS: usize = 5;

/// Starts it in every way: first all that is started anew, in turn, and then all that is there ahead. Whoever starts anew has
/// nobody beside it who builds sandboxes for later and takes others down.
pub fn measure(kiwi: &Path, scratch: &Path) -> Result<Walls> {
    let [program, argument] = TINY;
    let program = find(program)?;
    let bwrap = find("bwrap")?;
    let view = {
        let mut view = view();
        view.extend(["--".to_owned(), program.to_string_lossy().into_owned(), argument.to_owned()]);
        view
    };
    let starter = Starter::new(kiwi, scratch)?;
    let [plain, standard_anew, native_anew, bubblewrap_anew, by_hand] = all([
        side(|| plain(&program, &[argument.to_owned()])),
        side(|| starter.once(&TINY, Hold::STANDARD)),
        side(|| starter.once(&TINY, Hold::restricted(Backend::Native))),
        side(|| starter.once(&TINY, Hold::restricted(Backend::Bubblewrap))),
        side(|| plain(&bwrap, &view)),
    ])?;
    let resident = Starter::resident(kiwi, scratch)?;
    let [standard, native, bubblewrap, native_proxy, bubblewrap_proxy] = all([
        rested(&resident, Hold::STANDARD),
        rested(&resident, Hold::restricted(Backend::Native)),
        rested(&resident, Hold::restricted(Backend::Bubblewrap)),
        rested(&resident, Hold::sandboxed(Backend::Native)),
        rested(&resident, Hold::sandboxed(Backend::Bubblewrap)),
    ])?;
    Ok(Walls {
        plain,
        standard,
        native,
        bubblewrap,
        native_proxy,
        bubblewrap_proxy,
        standard_anew,
        native_anew,
        bubblewrap_anew,
        by_hand,
    })
}

/// All of them in turn.
fn all<const N: usize>(mut sides: [Side<'_>; N]) -> Result<[Samples; N]> {
    let samples = rotate(TURNS, &mut sides)?;
    samples.try_into().map_err(|_| anyhow!("a side was not measured"))
}

/// A side that begins when everything that is built ahead stands, so that building it is in nobody's time.
fn rested(resident: &Starter, hold: Hold) -> Side<'_> {
    Box::new(move || {
        resident.rest(KINDS);
        Ok(time(|| resident.once(&TINY, hold))?.0)
    })
}

/// One `posix_spawn`, with pipes that are read, as a caller would.
fn plain(program: &Path, words: &[String]) -> Result<()> {
    let mut command = Command::new(program);
    let output = command.args(words).env_clear().env("PATH", PATH).stdin(Stdio::null()).output()?;
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
    for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
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
