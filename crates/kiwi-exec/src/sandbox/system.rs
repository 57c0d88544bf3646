//! The fixed list: what every program needs of the system to start at all, and nothing that is anybody's own.

use kiwi_model::Isolation;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs, the loader and libraries. On most systems all but the first are links into it.
pub const PROGRAMS: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Settings without secrets. Of `/etc/ssl` only what is public: a private key may lie beside it. Each costs a mount, or
/// where it is a small file a copy, so the list is short.
pub const SETTINGS: [&str; 9] = [
    "/etc/alternatives",
    "/etc/ca-certificates/extracted",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
/// Small settings, of which a copy is cheaper.
const COPIED: [&str; 2] = ["/etc/nsswitch.conf", "/etc/timezone"];
/// So many bytes at most are copied.
pub const SMALL: u64 = 64 << 10;
/// Where names are resolved; of no use where there is no network.
const RESOLVER: &str = "/etc/resolv.conf";

/// A private `HOME`.
pub const HOME: &str = "/home/kiwi";
/// A private folder for temporary files.
pub const TEMPORARY: &str = "/tmp";
/// Folders of the tool's own.
pub const PRIVATE: [&str; 3] = [TEMPORARY, HOME, "/dev/shm"];

/// Small files: copies, and what would otherwise tell about the host.
pub fn files(level: Isolation) -> Vec<(&'static str, String)> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // Of two lines for one number the first counts.
    let passwd = format!(
        "root:x:0:0:root:/root:/bin/sh\nkiwi:x:{user}:{group}:kiwi:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    let groups = format!("root:x:0:\nkiwi:x:{group}:\nnogroup:x:65534:\n");
    let mut files = vec![
        ("/etc/passwd", passwd),
        ("/etc/group", groups),
        ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n".into()),
        ("/etc/hostname", "kiwi\n".into()),
    ];
    let resolver = (level == Isolation::Sandboxed).then_some(RESOLVER);
    let copied = COPIED.into_iter().chain(resolver);
    files.extend(copied.filter_map(|path| Some((path, fs::read_to_string(path).ok()?))));
    files
}

/// The parts of an installation that programs need. Whatever else lies beside them may be personal.
const PARTS: [&str; 6] = ["bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg"];

/// What a program outside the fixed list needs to run: itself, and the installation it belongs to.
///
/// A link is followed step by step, because the environment that holds the link and the interpreter behind it both
/// count. `personal` folders, and those around them, are never taken for an installation.
pub fn installation(program: &Path, personal: &[&Path]) -> Vec<PathBuf> {
    let mut steps = vec![program.to_owned()];
    while let Some((last, target)) = steps.last().and_then(|last| Some((last, fs::read_link(last).ok()?))) {
        if steps.len() > 16 {
            break;
        }
        steps.push(last.parent().unwrap_or(Path::new("/")).join(target));
    }
    steps.extend(fs::canonicalize(program));
    let needed = |step: PathBuf| match prefix(&step, personal) {
        Some(prefix) => {
            // A link out of the installation is not part of it, whoever made it.
            let root = fs::canonicalize(&prefix).unwrap_or_default();
            let is_inside = |part: &PathBuf| fs::canonicalize(part).is_ok_and(|real| real.starts_with(&root));
            PARTS.iter().map(|part| prefix.join(part)).filter(is_inside).collect()
        }
        None => Vec::from_iter(is_program(&step).then_some(step)),
    };
    steps.into_iter().flat_map(needed).collect()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The folder that a language was installed into, when a program lies in its `bin`.
fn prefix(program: &Path, personal: &[&Path]) -> Option<PathBuf> {
    let prefix = program.parent().filter(|folder| folder.ends_with("bin"))?.parent()?;
    let is_installation = prefix.join("pyvenv.cfg").is_file() || prefix.join("lib").is_dir();
    let is_personal = personal.iter().any(|folder| folder.starts_with(prefix));
    (is_installation && !is_personal && prefix.parent().is_some()).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_found_and_a_home_is_none() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        for folder in ["base/bin", "base/lib", "venv/bin", "home/bin", "home/lib"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("venv/pyvenv.cfg"), "").unwrap();
        for file in ["base/bin/python3.9", "home/bin/tool"] {
            fs::write(root.join(file), "").unwrap();
            fs::set_permissions(root.join(file), fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("base/include")).unwrap();
        std::os::unix::fs::symlink("python3.9", root.join("base/bin/python3")).unwrap();
        std::os::unix::fs::symlink(root.join("base/bin/python3"), root.join("venv/bin/python")).unwrap();
        let home = root.join("home");
        let found = installation(&root.join("venv/bin/python"), &[&home]);
        assert!(
            found.contains(&root.join("venv/pyvenv.cfg")) && found.contains(&root.join("base/lib")),
            "{found:?}"
        );
        assert!(!found.contains(&root.join("base/include")), "{found:?}");
        let tool = root.join("home/bin/tool");
        assert_eq!(installation(&tool, &[&home]), [tool.clone(), tool]);
    }
}
