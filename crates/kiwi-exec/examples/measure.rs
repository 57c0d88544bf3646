//! Prints what a supervised start costs: `measure LAUNCHER [ROUNDS]` runs `/bin/true` through the launcher, in
//! sandboxes of both backends and, side by side, without any of it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for developers"
)]
#![expect(clippy::disallowed_methods, reason = "compares with a plain start")]

use kiwi_exec::{Backend, Confinement, Launcher, Process, Unwatched};
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
        confinement: Confinement::default(),
        has_secrets: false,
        packages: Vec::new(),
        search_path: "/usr/bin:/bin".into(),
        project: "/".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let kinds = [
        ("standard", Isolation::Standard, Backend::Auto),
        ("restricted, native", Isolation::Restricted, Backend::Native),
        ("restricted, bwrap", Isolation::Restricted, Backend::Bubblewrap),
        ("sandboxed, native", Isolation::Sandboxed, Backend::Native),
        ("sandboxed, bwrap", Isolation::Sandboxed, Backend::Bubblewrap),
    ];
    let mut times = vec![Vec::new(); kinds.len() + 1];
    for _ in 0..rounds {
        for ((_, isolation, backend), times) in kinds.iter().zip(&mut times) {
            let confinement = Confinement { backend: *backend, ..Confinement::default() };
            let process = Process { isolation: *isolation, confinement, ..process.clone() };
            let started = Instant::now();
            let run = launcher.run(process, &Unwatched, std::future::pending());
            assert!(runtime.block_on(run).unwrap().exit.is_success());
            times.push(started.elapsed());
        }
        let started = Instant::now();
        assert!(std::process::Command::new("/bin/true").env_clear().output().unwrap().status.success());
        times.last_mut().unwrap().push(started.elapsed());
    }
    for (name, times) in kinds.iter().map(|kind| kind.0).chain(["plain"]).zip(&mut times) {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!("{name}: median {:?}, p95 {:?}", at(50), at(95));
    }
}
