//! A stand-in for Kiwi that tests can kill: `caller LAUNCHER SCRATCH SCRIPT` runs a shell script that has a package
//! folder of its own as `$1`; a fourth argument names the backend of a sandbox around it. It fails when the script does.
//!
//! With a fifth it stays: once a spare is ready it has a shell of the host run that, and only then runs its own script,
//! without the package; not if it is empty. All further ones are folders in which the script may write.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "only tests call it, with the right arguments"
)]

use kiwi_exec::{Backend, Confinement, Launcher, Package, PackageForm, Process, Unwatched};
use kiwi_model::{Content, Digest, File, FileEntry, Isolation, Piece, Text};
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let launcher = Launcher::new(&arguments[1], &arguments[2]).with_grace(Duration::from_millis(300));
    let entry = FileEntry { path: "sub/data".into(), sha256: Digest::of(b"data"), is_executable: false };
    let file = File { entry, content: Content::Bytes(b"data".as_slice().into()) };
    let (isolation, backend) = match arguments.get(4).map(String::as_str) {
        Some("Native") => (Isolation::Restricted, Backend::Native),
        Some(_) => (Isolation::Restricted, Backend::Bubblewrap),
        None => (Isolation::Standard, Backend::Auto),
    };
    let process = Process {
        program: Text::literal("sh"),
        args: vec![
            Text::literal("-c"),
            Text::literal(&arguments[3]),
            Text::literal("sh"),
            Text(vec![Piece::Folder { link: 0 }]),
        ],
        env: vec![("PATH".into(), Text::literal("/usr/bin:/bin"))],
        cwd: "/".into(),
        stdin: Vec::new(),
        timeout: Duration::from_mins(1),
        output_cap: 1 << 20,
        isolation,
        confinement: Confinement {
            backend,
            write: arguments.iter().skip(6).map(Into::into).collect(),
            ..Confinement::default()
        },
        has_secrets: false,
        packages: vec![Package { link: 0, files: vec![file], form: PackageForm::Folder }],
        search_path: "/usr/bin:/bin".into(),
        project: "/".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let process = match arguments.get(5).filter(|between| !between.is_empty()) {
        Some(between) => {
            let process = Process { args: process.args[..2].to_vec(), packages: Vec::new(), ..process };
            launcher.keep_spares();
            let mut before = process.clone();
            before.args[1] = Text::literal("true");
            while launcher.ready_spares() == 0 {
                let run = launcher.run(before.clone(), &Unwatched, std::future::pending());
                runtime.block_on(run).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
            let status = std::process::Command::new("sh").args(["-c", between]).status().unwrap();
            assert!(status.success(), "what was to be done between failed");
            process
        }
        None => process,
    };
    let finished = runtime.block_on(launcher.run(process, &Unwatched, std::future::pending())).unwrap();
    assert!(finished.exit.is_success(), "the script failed");
}
