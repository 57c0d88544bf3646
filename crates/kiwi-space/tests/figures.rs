//! Prints the figures of this crate: `cargo test --release -p kiwi-space --test figures -- --ignored --nocapture`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, candidates, manifest};
use kiwi_model::Space;
use kiwi_space::Spaces;
use std::fs;
use std::time::{Duration, Instant};

/// The median time of `rounds` calls.
fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[rounds / 2]
}

fn look_up(spaces: &Spaces, name: &str, space: Space) -> usize {
    candidates(spaces, name, space).expect("lookup").len()
}

fn ground(tools: usize) -> Ground {
    let ground = Ground::new();
    for i in 0..tools {
        let folder = ground.ai(&format!("tools/c{}", i / 10_000));
        fs::create_dir_all(&folder).expect("folder");
        fs::write(folder.join(format!("tool_{i}.sh")), "# kiwi: version: \"1.0.0\"\necho hello\n")
            .expect("tool");
    }
    std::thread::sleep(Duration::from_millis(50));
    ground
}

#[test]
#[ignore = "prints figures; run it alone, in release mode"]
fn lookups() {
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "tools", "build index", "cold hit", "warm hit", "warm miss", "after change"
    );
    for count in [10, 1000, 10_000, 100_000] {
        let ground = ground(count);
        let start = Instant::now();
        look_up(&ground.spaces(), "tool_7", Space::Project);
        let build = start.elapsed();
        let cold = median(200, || assert_eq!(look_up(&ground.spaces(), "tool_7", Space::Project), 1));
        let spaces = ground.spaces();
        let hit = median(2000, || assert_eq!(look_up(&spaces, "tool_7", Space::Project), 1));
        let miss = median(2000, || assert_eq!(look_up(&spaces, "python_runtime", Space::Project), 0));
        ground.write("tools/c0/tool_new.sh", "echo\n");
        std::thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        look_up(&spaces, "tool_new", Space::Project);
        println!(
            "{count:>10} {build:>12.1?} {cold:>12.1?} {hit:>12.1?} {miss:>12.1?} {:>12.1?}",
            start.elapsed()
        );
    }
}

#[test]
#[ignore = "prints figures; run it alone, in release mode"]
fn loads() {
    let ground = Ground::new();
    let python = "__version__ = '1.0.0'\nCONFIG_SCHEMA = {'type': 'object', 'properties': {'name': {'type': 'string'}}}\n".to_owned();
    ground.write("tools/py.py", python + &"def f(x):\n    return x + 1\n".repeat(60));
    ground.write("tools/sh.sh", "# kiwi: version: \"1.0.0\"\necho hello\n");
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    for i in 0..10 {
        ground.write(&format!("tools/pack/file{i}.py"), "x = 1\n".repeat(200));
    }
    std::thread::sleep(Duration::from_millis(50));
    look_up(&ground.spaces(), "sh", Space::Project);
    let open = median(200, || drop(ground.spaces()));
    println!("opening spaces {open:.1?}");
    for name in ["sh", "py", "pack"] {
        let cold = median(200, || assert_eq!(look_up(&ground.spaces(), name, Space::Project), 1));
        let spaces = ground.spaces();
        let warm = median(5000, || assert_eq!(look_up(&spaces, name, Space::Project), 1));
        println!("{name:>6} cold {cold:.1?} warm {warm:.1?}");
    }
    let spaces = ground.spaces();
    let ids: Vec<String> = spaces.list(Space::System).into_iter().map(|listed| listed.id_hint).collect();
    for name in &ids {
        let cold = median(50, || assert_eq!(look_up(&ground.spaces(), name, Space::System), 1));
        let warm = median(2000, || assert_eq!(look_up(&spaces, name, Space::System), 1));
        println!("system {name:>20} cold {cold:.1?} warm {warm:.1?}");
    }
}

#[test]
#[ignore = "prints figures; run it alone, in release mode"]
fn hashing() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    let big = ground.write("tools/pack/big.bin", vec![0x5a; 100 << 20]);
    let ours = median(9, || assert_eq!(look_up(&ground.spaces(), "pack", Space::Project), 1));
    let theirs = median(9, || {
        #[expect(clippy::disallowed_methods, reason = "the tool to compare with")]
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["dgst", "-sha256"]).arg(&big).stdout(std::process::Stdio::null());
        assert!(openssl.status().expect("openssl").success());
    });
    println!(
        "100 MiB: kiwi {ours:.1?}, openssl {theirs:.1?}, ratio {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    let spaces = ground.spaces();
    look_up(&spaces, "pack", Space::Project);
    let warm = median(200, || assert_eq!(look_up(&spaces, "pack", Space::Project), 1));
    println!("100 MiB warm: {warm:.1?}");
    for i in 0..4 {
        ground.write(&format!("tools/many/part{i}.bin"), vec![i; 25 << 20]);
    }
    ground.write("tools/many/tool.yaml", manifest("many", "1.0.0"));
    println!(
        "4 x 25 MiB: {:.1?}",
        median(9, || assert_eq!(look_up(&ground.spaces(), "many", Space::Project), 1))
    );
}
