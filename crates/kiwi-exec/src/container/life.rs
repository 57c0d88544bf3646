//! Whose a container is, told by its name alone.

use kiwi_model::Digest;
use rustix::process::Pid;
use std::fs;

use kiwi_launcher::procfs::Proc;

/// The process that a container belongs to: which machine, which start of it, which process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    machine: String,
    boot: String,
    /// Process numbers mean something in one namespace only.
    namespace: String,
    pid: i32,
    /// Clock ticks after boot: together with the number it is one process for ever.
    started: u64,
}

impl Life {
    /// This process.
    pub fn own() -> Option<Self> {
        let me = Proc::read(rustix::process::getpid())?;
        let machine = fs::read_to_string("/etc/machine-id").ok().filter(|id| !id.trim().is_empty());
        let machine =
            machine.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self {
            machine: short(&machine),
            boot: short(&boot),
            namespace: namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect(),
            pid: me.pid.as_raw_nonzero().get(),
            started: me.started,
        })
    }

    /// The name of this process's container for a call.
    pub fn container(&self, call: &str) -> String {
        let Self { machine, boot, namespace, pid, started } = self;
        format!("kiwi-{call}.{machine}.{boot}.{namespace}.{pid}.{started}")
    }

    /// The process that a container's name tells of.
    pub fn of_container(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("kiwi-")?.split('.').skip(1).map(str::to_owned);
        Some(Self {
            machine: parts.next()?,
            boot: parts.next()?,
            namespace: parts.next()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        })
    }

    /// Whether this process has ended, as far as `own` can know. Processes of other machines and of other namespaces
    /// are none of our business.
    pub fn is_over(&self, own: &Self) -> bool {
        if self.machine != own.machine {
            return false;
        }
        if self.boot != own.boot {
            return true;
        }
        let now = Pid::from_raw(self.pid).and_then(Proc::read).filter(|_| !is_zombie(self.pid));
        self.namespace == own.namespace && now.is_none_or(|now| now.started != self.started)
    }
}

/// Ended, and nobody took leave of it: the first process of a container often takes leave of nobody.
fn is_zombie(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = String::from_utf8_lossy(&stat).rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

fn short(text: &str) -> String {
    Digest::of(text.trim().as_bytes()).hex().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whose_it_is() {
        let own = Life::own().unwrap();
        let name = own.container("00ff");
        assert_eq!(Life::of_container(&name), Some(own.clone()), "{name}");
        assert!(!own.is_over(&own), "this process runs");
        assert!(Life { started: own.started + 1, ..own.clone() }.is_over(&own), "another with its number");
        assert!(Life { boot: "0".into(), ..own.clone() }.is_over(&own), "the machine was started anew");
        assert!(!Life { machine: "0".into(), boot: "0".into(), ..own.clone() }.is_over(&own));
        assert!(!Life { namespace: "0".into(), started: 0, ..own.clone() }.is_over(&own));
        for other in ["postgres", "kiwi-x", "kiwi-x.a.b.c.d.e"] {
            assert_eq!(Life::of_container(other), None, "{other}");
        }
    }
}
