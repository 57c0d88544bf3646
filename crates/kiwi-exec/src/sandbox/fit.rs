//! Whether what was built ahead serves a process: only where it comes to the same as building it anew.

use std::path::Path;

use super::plan::{Builder, Sandbox, Shown};

impl Sandbox {
    /// What is still to be shown, by its number in the view, where `prepared` stands already. `None`: it is of no use here.
    ///
    /// Things are put in place parents first, and a thing that is put there later must find what it would have found. So
    /// nothing may still be missing around something that is there, nor behind a link that could not be followed before.
    pub fn beyond<'a>(&'a self, prepared: &Self) -> Option<Vec<(usize, &'a Shown)>> {
        let mut there = prepared.view.iter().peekable();
        let mut missing = Vec::new();
        for (number, shown) in self.view.iter().enumerate() {
            if there.next_if(|it| *it == shown).is_none() {
                missing.push((number, shown));
            }
        }
        let is_whole = there.next().is_none();
        let is_alike = self.builder == prepared.builder
            && self.sockets == prepared.sockets
            && self.has_settings() == prepared.has_settings();
        let is_too_late = |at: &Path| {
            prepared.view.iter().any(|it| {
                it.at().starts_with(at) || (matches!(it, Shown::Link { .. }) && at.starts_with(it.at()))
            })
        };
        let can_follow = match self.builder {
            Builder::Native => !missing.iter().any(|(_, shown)| is_too_late(shown.at())),
            // They take their whole view when they start.
            Builder::Bubblewrap(_) | Builder::Container(_) => missing.is_empty(),
        };
        (is_whole && is_alike && can_follow).then_some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Raw;

    fn sandbox(builder: Builder, view: &[Shown]) -> Sandbox {
        Sandbox::new(builder, false, false, view.to_vec())
    }

    fn bind(at: &str) -> Shown {
        Shown::Bind { from: Raw::of(at), at: Raw::of(at), write: false }
    }

    fn empty(at: &str) -> Shown {
        Shown::Empty { at: Raw::of(at) }
    }

    #[test]
    fn only_what_comes_to_the_same_is_used() {
        let link = Shown::Link { at: Raw::of("/bin"), to: Raw::of("usr/bin") };
        let home = Shown::Private { at: Raw::of("/home/kiwi") };
        let prepared = [link.clone(), home.clone(), bind("/usr")];
        let beyond = |view: &[Shown]| {
            let wanted = sandbox(Builder::Native, view);
            let missing = wanted.beyond(&sandbox(Builder::Native, &prepared))?;
            Some(missing.into_iter().map(|(number, _)| number).collect::<Vec<_>>())
        };
        let [first, second, third] = &prepared;
        let with = |other: Shown| {
            let mut view = vec![first.clone(), second.clone(), third.clone(), other];
            view.sort_by(|a, b| a.at().cmp(b.at()));
            view
        };
        assert_eq!(beyond(&prepared), Some(vec![]));
        assert_eq!(beyond(&with(empty("/home/me/project"))), Some(vec![2]));
        assert_eq!(beyond(&with(bind("/usr/local/mine"))), Some(vec![3]));
        // Around something that is there, or behind a link.
        assert_eq!(beyond(&with(empty("/home"))), None);
        assert_eq!(beyond(&with(bind("/bin/mine"))), None);
        // Something that is not wanted, or wanted otherwise.
        assert_eq!(beyond(&[link.clone(), home.clone()]), None);
        assert_eq!(beyond(&[link, home, Shown::Private { at: Raw::of("/usr") }]), None);
    }

    /// What was allowed for all settings cannot be taken back.
    #[test]
    fn entries_among_settings_are_another_sandbox() {
        let prepared = sandbox(Builder::Native, &[bind("/usr")]);
        let entries = |at: &str| Shown::Entries { from: Raw::of(at), at: Raw::of(at) };
        let wanted = |at: &str| sandbox(Builder::Native, &[bind("/usr"), entries(at)]);
        assert!(wanted("/var/spool").beyond(&prepared).is_some());
        assert!(wanted("/etc/cron.d").beyond(&prepared).is_none());
    }

    #[test]
    fn another_builder_or_network_is_another_sandbox() {
        let view = [bind("/usr")];
        let native = sandbox(Builder::Native, &view);
        let bubblewrap = |path: &str, view: &[Shown]| sandbox(Builder::Bubblewrap(Raw::of(path)), view);
        assert!(native.beyond(&native).is_some());
        assert!(native.beyond(&bubblewrap("/usr/bin/bwrap", &view)).is_none());
        assert!(native.beyond(&Sandbox { sockets: true, ..native.clone() }).is_none());
        let more = [bind("/usr"), bind("/usr/local")];
        let theirs = bubblewrap("/usr/bin/bwrap", &view);
        assert!(theirs.beyond(&theirs).is_some());
        assert!(theirs.beyond(&bubblewrap("/bin/bwrap", &view)).is_none());
        assert!(bubblewrap("/usr/bin/bwrap", &more).beyond(&theirs).is_none());
    }
}
