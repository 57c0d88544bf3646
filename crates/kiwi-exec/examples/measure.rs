//! Prints what a supervised start costs: `measure LAUNCHER [ROUNDS]` runs `/bin/true` through the launcher and, side by
//! side, without it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for developers"
)]
#![expect(clippy::disallowed_methods, reason = "compares with a plain start")]

use kiwi_exec::{Launcher, Process, Unwatched};
use kiwi_model::{Isolation, Text};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = arguments.get(2).map_or(500, |text| text.parse().unwrap());
    let launcher = Launcher::new(&arguments[1], std::env::temp_dir().join("kiwi-measure"));
    let process = Process {
        program: Text::literal("/bin/true"),
        args: Vec::new(),
        env: Vec::new(),
        cwd: "/".into(),
        stdin: b"{}".to_vec(),
        timeout: Duration::from_secs(10),
        output_cap: 1 << 20,
        isolation: Isolation::Standard,
        packages: Vec::new(),
        search_path: String::new(),
        project: "/".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let started = Instant::now();
        let run = launcher.run(process.clone(), &Unwatched, std::future::pending());
        assert!(runtime.block_on(run).unwrap().exit.is_success());
        times[0].push(started.elapsed());
        let started = Instant::now();
        assert!(std::process::Command::new("/bin/true").env_clear().output().unwrap().status.success());
        times[1].push(started.elapsed());
    }
    for (name, times) in ["through the launcher", "plain"].into_iter().zip(&mut times) {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!("{name}: median {:?}, p95 {:?}", at(50), at(95));
    }
}
