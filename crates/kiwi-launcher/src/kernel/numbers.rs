//! The numbers of processes. A process namespace that has few has room for few processes: this binds the system's root too,
//! which no limit of single processes does.

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Result;

const FILE: &str = "/proc/sys/kernel/pid_max";

/// Gives the process namespace, of which this process is the first, so many numbers that about a thousand processes and
/// threads find one. The kernel gives those below 300 only once.
const FEW: &[u8] = b"1324";

/// Bounds the numbers of the process namespace that this process is in. Asks nothing of the allocator.
pub fn keep_few() -> Result<()> {
    let file = rustix::fs::openat(CWD, FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, FEW).map(drop)
}

/// Whether every process namespace has its own bound, as it does since Linux 6.14. Before, the file is the whole system's.
pub fn are_bounded_apart() -> bool {
    rustix::system::uname().release().to_str().is_ok_and(is_apart)
}

fn is_apart(release: &str) -> bool {
    let mut parts = release.split(|part: char| !part.is_ascii_digit()).map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 14))
}

#[cfg(test)]
mod tests {
    use super::is_apart;

    #[test]
    fn since_a_release_every_namespace_has_its_own() {
        for old in ["5.15.0-91-generic", "6.13.9", "6.9", "4.19.0", "6", "x.y", ""] {
            assert!(!is_apart(old), "{old}");
        }
        for new in ["6.14.0", "6.18.44-fc-v595", "6.14-rc1", "7.0", "10.2.1"] {
            assert!(is_apart(new), "{new}");
        }
    }
}
