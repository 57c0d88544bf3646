//! Many sandboxes leave no process, descriptor, thread, folder, mount or control group. Alone in its file, because it
//! counts those of its process. `KIWI_SOAK=1` makes it a thousand.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "the length of the test is chosen by who runs it")]

mod support;

use kiwi_exec::Unwatched;
use kiwi_model::Text;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::sandbox::{Wall, all_containers, containers, is_root, walled, walls};
use support::{Bench, block_on, file, folder, marked, marker, one_file, shell, wait_until};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn children() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

/// A control group for this process alone, so that nobody else's groups are counted; whoever is not root has none.
struct Groups(Option<PathBuf>);

impl Groups {
    fn enter() -> Self {
        let parent = Path::new("/sys/fs/cgroup/pids");
        let own = parent.join(format!("leaks-{}", std::process::id()));
        if !(is_root() && parent.is_dir()) {
            return Self(None);
        }
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("cgroup.procs"), "0").unwrap();
        Self(Some(own))
    }

    fn count(&self) -> usize {
        let is_group = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let entries = self.0.iter().flat_map(|own| std::fs::read_dir(own).unwrap().flatten());
        entries.filter(is_group).count()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Some(own) = &self.0 {
            let _ = std::fs::write("/sys/fs/cgroup/pids/cgroup.procs", "0");
            let _ = std::fs::remove_dir(own);
        }
    }
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

fn rounds() -> usize {
    if std::env::var_os("KIWI_SOAK").is_some() { 1000 } else { 100 }
}

#[test]
fn many_sandboxes_leave_nothing() {
    let patience = Duration::from_millis(5);
    many(&Bench::new(), &walls(), rounds(), patience);
}

#[test]
fn many_containers_leave_nothing() {
    let bench = Bench::new();
    let patience = Duration::from_millis(300);
    many(&bench, &containers(), rounds() / 2, patience);
    let scratch = bench.launcher.scratch.display().to_string();
    wait_until("all containers are gone", || !all_containers().contains(&scratch));
}

fn many(bench: &Bench, walls: &[Wall], rounds: usize, patience: Duration) {
    let groups = Groups::enter();
    let marker = marker();
    block_on(async {
        let run = async |number: usize| {
            let pause = if number % 5 == 3 { "sleep 60" } else { "" };
            let mut asked = shell(&format!("cat \"$1\" \"$2\" > /dev/null; sleep 0 & {pause} # {marker}"));
            asked = walled(asked, walls.get(number % walls.len()).unwrap());
            asked.args.extend([Text::literal("sh"), Text::file(0, "a/b"), Text::file(1, "runner")]);
            asked.packages =
                vec![folder(0, vec![file("a/b", b"b", false)]), one_file(1, file("runner", b"r", false))];
            asked.stdin = b"input".to_vec();
            asked.confinement.network.hosts = vec!["example.org".into()];
            if groups.0.is_some() {
                asked.confinement.limits.pids = Some(50);
            }
            if number % 5 == 3 {
                asked.timeout = patience;
            }
            let run = bench.launcher.run(asked, &Unwatched, std::future::pending());
            if number % 5 == 2 {
                // Given up half way.
                let _ = tokio::time::timeout(patience.mul_f64(0.4), run).await;
            } else {
                assert_eq!(run.await.is_ok(), number % 5 != 3, "{number}");
            }
        };
        let settle =
            || wait_until("all launchers have left", || children() == 0 && count("/proc/self/task") <= 2);
        for number in 0..10 {
            run(number).await;
        }
        settle();
        // Tasks that were given up let go of what they hold when the runtime next comes by.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let left = || (count("/proc/self/fd"), mounts(), groups.count());
        let before = left();
        for number in 0..rounds {
            run(number).await;
        }
        settle();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(left(), before, "descriptors, mounts, groups");
        assert!(marked(&marker).is_empty());
    });
}
