//! Many runs leave no descriptor, no zombie and no thread. Alone in its file, because it counts those of its process.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_exec::Unwatched;
use kiwi_model::Text;
use std::time::Duration;
use support::{Bench, block_on, file, folder, one_file, shell, wait_until};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn children() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

#[test]
fn two_hundred_runs_leave_nothing() {
    let bench = Bench::new();
    block_on(async {
        let run = async |number: usize| {
            let pause = if number % 6 == 3 { "sleep 60" } else { "" };
            let mut asked = shell(&format!("cat \"$1\" \"$2\" > /dev/null; sleep 0 & {pause}"));
            asked.args.extend([Text::literal("sh"), Text::file(0, "a/b"), Text::file(1, "runner")]);
            asked.packages =
                vec![folder(0, vec![file("a/b", b"b", false)]), one_file(1, file("runner", b"r", false))];
            asked.stdin = b"input".to_vec();
            match number % 6 {
                3 => asked.timeout = Duration::from_millis(2),
                4 => asked.program = Text::literal("/etc/passwd"),
                // Refused while its launcher is being loaded.
                5 => asked.program = Text::literal("no-such-program"),
                _ => {}
            }
            let run = bench.launcher.run(asked, &Unwatched, std::future::pending());
            if number % 6 == 2 {
                // Given up half way.
                let _ = tokio::time::timeout(Duration::from_millis(1), run).await;
            } else {
                assert_eq!(run.await.is_ok(), number % 6 < 3);
            }
        };
        let settle =
            || wait_until("all launchers have left", || children() == 0 && count("/proc/self/task") <= 2);
        for number in 0..10 {
            run(number).await;
        }
        settle();
        let before = count("/proc/self/fd");
        for number in 0..200 {
            run(number).await;
        }
        settle();
        assert_eq!(count("/proc/self/fd"), before);
    });
}
