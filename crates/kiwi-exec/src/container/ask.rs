//! Asking an engine's client something and hearing the answer.

use kiwi_model::{Isolation, Text};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use super::{Containers, Engine};
use crate::begin::Held;
use crate::environment::{Lines, Progress, last_words};
use crate::error::ExecError;
use crate::process::{Finished, Package, Process};

/// A question is answered at once or not at all.
const QUESTION: Duration = Duration::from_mins(1);
/// Large images over a slow line take long.
const WORK: Duration = Duration::from_mins(30);
const OUTPUT_CAP: u64 = 16 << 20;

/// One run of a client.
#[derive(Default)]
pub struct Errand<'a> {
    pub args: Vec<Text>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Files the arguments refer to.
    pub packages: Vec<Package>,
    /// Told what the client writes; such an errand may take long.
    pub progress: Option<Progress<'a>>,
    /// Stays locked until the client has ended.
    pub lock: Option<BorrowedFd<'a>>,
}

impl<'a> Errand<'a> {
    /// Plain words.
    pub fn of(words: &[&str]) -> Self {
        Self { args: words.iter().map(|word| Text::literal(*word)).collect(), ..Self::default() }
    }

    /// The same, told to somebody.
    pub fn told(self, progress: Progress<'a>) -> Self {
        Self { progress: Some(progress), ..self }
    }
}

impl Containers {
    /// Runs the client to its end.
    pub(super) async fn ask(&self, engine: &Engine, errand: Errand<'_>) -> Result<Finished, ExecError> {
        let process = Process {
            program: Text::literal(engine.program.to_string_lossy()),
            args: errand.args,
            env: self.env.iter().map(|(name, value)| (name.clone(), Text::literal(value))).collect(),
            cwd: PathBuf::from("/"),
            stdin: errand.stdin,
            timeout: if errand.progress.is_some() { WORK } else { QUESTION },
            output_cap: OUTPUT_CAP,
            // A rootless engine needs its setuid helpers; what it runs is confined by the container.
            isolation: Isolation::Trusted,
            confinement: crate::confinement::Confinement::default(),
            has_secrets: false,
            packages: errand.packages,
            search_path: String::new(),
            project: PathBuf::from("/"),
        };
        let quiet = |_: &str| {};
        let lines = Lines::new(errand.progress.unwrap_or(&quiet));
        let held = Held { lock: errand.lock, scrap: None };
        self.launcher.run_holding(process, held, &lines, std::future::pending()).await
    }
}

/// The last line a client wrote that says something.
pub fn last_line(finished: &Finished) -> String {
    telling(&last_words(finished)).unwrap_or("it said nothing").to_owned()
}

/// The last line that says something: not where to read on.
pub fn telling(words: &str) -> Option<&str> {
    let said = |line: &&str| !line.is_empty() && !line.starts_with("Run '") && !line.starts_with("See '");
    words.lines().rev().map(str::trim).find(said)
}
