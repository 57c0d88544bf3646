//! A path that was judged is the path that is opened: whoever swaps a link in between gets a refusal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use kiwi_model::Isolation;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::sandbox::{BACKENDS, real, shell_in, walled};
use support::{Bench, shell};

const SECRET: &str = "the-secret-of-the-house";

#[test]
fn a_link_that_is_swapped_in_shows_nothing() {
    let bench = Bench::new();
    let root = real(bench.home.path());
    for (folder, text) in [("project/src", "harmless"), ("elsewhere", SECRET)] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
        std::fs::write(root.join(folder).join("file"), text).unwrap();
    }
    symlink(root.join("elsewhere"), root.join("project/link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (stop, project) = (Arc::clone(&stop), root.join("project"));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // The folder goes away and a link takes its name, and back.
                let _ = std::fs::rename(project.join("src"), project.join("kept"));
                let _ = std::fs::rename(project.join("link"), project.join("src"));
                std::thread::yield_now();
                let _ = std::fs::rename(project.join("src"), project.join("link"));
                let _ = std::fs::rename(project.join("kept"), project.join("src"));
                std::thread::yield_now();
            }
        })
    };
    let (mut shown, mut refused) = (0, 0);
    for backend in BACKENDS {
        for _ in 0..60 {
            let script = "cat src/file 2>&1; cat src/* /proc/self/mountinfo 2>/dev/null | grep -c house";
            let mut asked =
                walled(shell_in(&root.join("project"), script), (Isolation::Sandboxed, backend.clone()));
            asked.confinement.read = vec![root.join("project/src/file")];
            match bench.run(asked) {
                Ok(finished) => {
                    let said = String::from_utf8_lossy(&finished.stdout).into_owned();
                    assert!(!said.contains(SECRET), "{backend:?}: {said}");
                    shown += usize::from(said.contains("harmless"));
                }
                Err(_) => refused += 1,
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(refused > 0, "nothing was ever swapped in between: {shown} shown");
}

#[test]
fn entries_are_made_replaced_and_removed_and_nothing_is_read() {
    let bench = Bench::new();
    // Not below `/tmp`: what lies there is below the tool's own, where landlock allows everything.
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = real(home.path());
    std::fs::create_dir_all(root.join("project/hidden")).unwrap();
    for backend in BACKENDS {
        for (file, text) in [("old", "old"), ("beside", SECRET), ("hidden/x", SECRET)] {
            std::fs::write(root.join("project").join(file), text).unwrap();
        }
        let script = "rm old && echo new > .part && mv .part old && mkdir -p a/b && echo x > a/b/c; \
                      cat beside hidden/x; ls hidden; echo y > hidden/y";
        let mut asked =
            walled(shell_in(&root.join("project"), script), (Isolation::Sandboxed, backend.clone()));
        asked.confinement.entries = vec![root.join("project/old"), root.join("project/a/b/c")];
        asked.confinement.hidden = vec![root.join("project/hidden")];
        asked.confinement.links = vec![(root.join("name"), root.join("project/old"))];
        let finished = bench.run(asked).unwrap();
        let said = String::from_utf8_lossy(&[finished.stdout, finished.stderr].concat()).into_owned();
        assert!(!said.contains(SECRET), "{backend:?}: {said}");
        assert_eq!(
            std::fs::read_to_string(root.join("project/old")).unwrap(),
            "new\n",
            "{backend:?}: {said}"
        );
        assert!(root.join("project/a/b/c").is_file() && !root.join("project/hidden/y").exists(), "{said}");
        std::fs::remove_dir_all(root.join("project/a")).unwrap();
        // A link leads to what is declared, under the name it was given.
        let mut asked = walled(shell("cat \"$0\""), (Isolation::Sandboxed, backend.clone()));
        asked.args.push(kiwi_model::Text::literal(root.join("name").to_string_lossy()));
        asked.confinement.read = vec![root.join("project/old")];
        asked.confinement.links = vec![(root.join("name"), root.join("project/old"))];
        assert_eq!(bench.output(asked), "new\n");
    }
}
