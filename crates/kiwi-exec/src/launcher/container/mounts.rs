//! What a container sees, in the words of engines. They mount what is on the host and nothing else, so everything that is
//! not of the host is first put into a folder there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kiwi_launcher::plan::{DEVICES, LINKS, Shown};
use kiwi_launcher::wire::{Raw, Report, Stage, Wall};

use super::{OURS, failed};

/// Where an engine puts the host's resolver, unless something else is there.
const RESOLVER: &str = "/etc/resolv.conf";

/// The same view, of things that an engine can mount.
pub fn prepare(folder: &Path, view: &[Shown]) -> Result<Vec<Shown>, Report> {
    let prepared = view.iter().enumerate().map(|(number, shown)| {
        let mountable = mountable(folder, view, number, shown).and_then(|mountable| {
            make_room(folder, view.get(..number).unwrap_or_default(), &mountable)?;
            Ok(mountable)
        });
        mountable.map_err(failed(Stage::Wall(Wall::Shown(number))))
    });
    prepared.collect()
}

fn mountable(folder: &Path, view: &[Shown], number: usize, shown: &Shown) -> io::Result<Shown> {
    let own = folder.join(number.to_string());
    let bind = |from: PathBuf, write| Shown::Bind { from: Raw::of(from), at: Raw::of(shown.at()), write };
    let empty = || {
        fs::create_dir(&own)?;
        Ok(bind(fs::canonicalize(&own)?, false))
    };
    match shown {
        Shown::Bind { .. } | Shown::Entries { .. } | Shown::Private { .. } => Ok(shown.clone()),
        Shown::Empty { .. } => empty(),
        Shown::File { text, .. } => {
            fs::write(&own, text)?;
            Ok(bind(fs::canonicalize(&own)?, false))
        }
        Shown::Copy { from, .. } => Ok(bind(from.as_path().to_owned(), false)),
        // What a link leads to is shown there as well, on the same terms.
        Shown::Link { to, .. } => {
            let beside = shown.at().parent().unwrap_or(Path::new("/"));
            let Ok(real) = fs::canonicalize(beside.join(to.as_path())) else { return empty() };
            let around = view.iter().filter(|other| other.from().is_some_and(|from| real.starts_with(from)));
            let nearest = around.max_by_key(|other| other.at().as_os_str().len());
            let write = nearest.is_some_and(Shown::is_writable);
            Ok(bind(real, write))
        }
    }
}

/// Makes what something is mounted on, where that lies in an empty folder: an engine finds it there already.
fn make_room(folder: &Path, before: &[Shown], mountable: &Shown) -> io::Result<()> {
    let around = before.iter().enumerate().filter(|(_, other)| mountable.at().starts_with(other.at()));
    let Some((number, nearest)) = around.max_by_key(|(_, other)| other.at().as_os_str().len()) else {
        return Ok(());
    };
    let (true, Ok(below)) =
        (matches!(nearest, Shown::Empty { .. }), mountable.at().strip_prefix(nearest.at()))
    else {
        return Ok(());
    };
    let place = folder.join(number.to_string()).join(below);
    if mountable.from().is_none_or(Path::is_dir) {
        return fs::create_dir_all(place);
    }
    fs::create_dir_all(place.parent().unwrap_or(folder))?;
    fs::write(place, "")
}

/// What it sees, and of ours what its first process needs.
pub fn words(view: &[Shown], folder: &Path) -> io::Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut bind = |from: &Path, at: &Path, write: bool| {
        words.extend([OsString::from("--mount"), bind_word(from, at, write)]);
    };
    // A folder of devices of ours keeps an engine from making its own, with more in it.
    let devices = folder.join("dev");
    fs::create_dir_all(devices.join("shm"))?;
    bind(&devices, Path::new("/dev"), false);
    for (at, to) in LINKS {
        symlink(to, devices.join(Path::new(at).file_name().unwrap_or_default()))?;
    }
    for device in DEVICES.map(Path::new) {
        fs::write(devices.join(device.file_name().unwrap_or_default()), "")?;
        bind(device, device, true);
    }
    for shown in view {
        if let Some(from) = shown.from() {
            bind(from, shown.at(), shown.is_writable());
        }
    }
    bind(&std::env::current_exe()?, &Path::new(OURS).join("launcher"), false);
    bind(&folder.join("socket"), &Path::new(OURS).join("socket"), false);
    let resolver = Path::new(RESOLVER);
    if !view.iter().any(|shown| resolver.starts_with(shown.at())) {
        let nothing = folder.join("resolver");
        fs::write(&nothing, "")?;
        bind(&nothing, resolver, false);
    }
    for shown in view.iter().filter(|shown| matches!(shown, Shown::Private { .. })) {
        let mut word = shown.at().as_os_str().to_owned();
        word.push(":rw,exec,nosuid,nodev,mode=1777");
        words.extend([OsString::from("--tmpfs"), word]);
    }
    Ok(words)
}

/// A line of comma-separated values, as engines read it.
fn bind_word(from: &Path, at: &Path, write: bool) -> OsString {
    let field = |name: &str, path: &Path| {
        let mut field = format!("\"{name}=").into_bytes();
        for byte in path.as_os_str().as_bytes() {
            field.extend(if *byte == b'"' { [*byte].repeat(2) } else { vec![*byte] });
        }
        field.push(b'"');
        OsString::from_vec(field)
    };
    let rest = if write { OsStr::new("") } else { OsStr::new(",readonly") };
    let parts =
        ["type=bind,".into(), field("source", from), ",".into(), field("target", at), rest.to_owned()];
    parts.into_iter().collect()
}
