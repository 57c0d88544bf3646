//! What walls cost above the same start without them.

use anyhow::{Result, bail};
use kiwi_exec::Backend;
use std::path::Path;
use std::process::{Command, Stdio};

use super::start::{Hold, PATH, Starter, TINY};
use crate::cold::find;
use crate::stats::{Samples, Side, rotate, time};

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

/// Starts it in every way in turn.
pub fn measure(kiwi: &Path, scratch: &Path) -> Result<Walls> {
    let (starter, resident) = (Starter::new(kiwi, scratch)?, Starter::resident(kiwi, scratch)?);
    let held = |starter, hold| timed(&resident, move || Starter::once(starter, &TINY, &hold));
    let by_hand = |program, words: Vec<String>| timed(&resident, move || plain(program, &words));
    let [program, argument] = TINY;
    let program = find(program)?;
    let bwrap = find("bwrap")?;
    let view = {
        let mut view = view();
        view.extend(["--".to_owned(), program.to_string_lossy().into_owned(), argument.to_owned()]);
        view
    };
    let mut sides: Vec<Side<'_>> = vec![
        by_hand(&program, vec![argument.to_owned()]),
        held(&resident, Hold::STANDARD),
        held(&resident, Hold::restricted(Backend::Native)),
        held(&resident, Hold::restricted(Backend::Bubblewrap)),
        held(&resident, Hold::sandboxed(Backend::Native)),
        held(&resident, Hold::sandboxed(Backend::Bubblewrap)),
        held(&starter, Hold::STANDARD),
        held(&starter, Hold::restricted(Backend::Native)),
        held(&starter, Hold::restricted(Backend::Bubblewrap)),
        by_hand(&bwrap, view),
    ];
    let samples = rotate(TURNS, &mut sides)?;
    let Ok(
        [
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
        ],
    ) = <[Samples; 10]>::try_from(samples)
    else {
        bail!("a side was not measured");
    };
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

/// A side that begins when everything that is built ahead stands, so that building it is in nobody's time.
fn timed<'a>(resident: &'a Starter, mut work: impl FnMut() -> Result<()> + 'a) -> Side<'a> {
    Box::new(move || {
        resident.rest(KINDS);
        Ok(time(&mut work)?.0)
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
