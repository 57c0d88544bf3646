//! A process that stays makes calls that end in every way there is: in the end it has no descriptor, no thread, no child
//! and no zombie more than before. Alone in its file, because it counts those of its process, and because Kiwi ends
//! every young child that it did not start itself when a launcher is lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use kiwi_exec::{Stream, Watch};
use kiwi_gate::{Arguments, Caller, Cancel, Host, Kernel, Request, Session};
use kiwi_model::ToolRef;
use kiwi_space::{Locations, Spaces};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::storm::{Call, End, Storm};

/// One kernel for each search path, as a server has one for each project.
fn kernel(storm: &Storm, call: Call) -> Kernel {
    let (project, home) = (storm.env.project(), storm.env.home());
    let text = |path: &std::path::Path| path.display().to_string();
    let environment = BTreeMap::from([
        ("PATH".to_owned(), storm.search_path(call)),
        ("HOME".to_owned(), text(&home)),
        ("TMPDIR".to_owned(), text(&storm.env.tmp())),
    ]);
    let kiwi = env!("CARGO_BIN_EXE_kiwi").into();
    let host = Host {
        environment,
        kiwi,
        launcher: None,
        cwd: project.clone(),
        scratch: storm.env.tmp(),
        has_terminal: false,
        authorize: None,
    };
    let spaces = Spaces::open(Locations { project: None, cwd: project, user: Some(home) }).unwrap();
    Kernel::new(Arc::new(spaces), host).unwrap()
}

/// Does what is to be done as soon as the tool is in the middle of it.
struct Aim {
    end: End,
    cancel: Cancel,
}

impl Watch for Aim {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        if stream != Stream::Stdout || !bytes.starts_with(b"ready") {
            return;
        }
        match self.end {
            End::Cancelled => self.cancel.fire(),
            // All children of this process are launchers, and there is one.
            End::Lost => children().into_iter().for_each(|child| {
                let _ = kill_process(Pid::from_raw(child).unwrap(), Signal::KILL);
            }),
            _ => {}
        }
    }
}

async fn call(kernel: &Kernel, session: Session, call: Call, number: usize) {
    let tool = ToolRef::parse(&call.tool()).unwrap();
    let mut request = Request::new(tool, Arguments::default(), Caller::cli("storm"), session);
    request.isolation = Some(call.level.parse().unwrap());
    request.watch = Arc::new(Aim { end: call.end, cancel: request.cancel.clone() });
    if call.end == End::Killed {
        // This process is not to be killed: here the call is given up by whoever waits for it.
        let patience = Duration::from_millis(u64::try_from(number * 13 % 97).unwrap());
        let _ = tokio::time::timeout(patience, kernel.call(request)).await;
        return;
    }
    let outcome = kernel.call(request).await;
    let kind = outcome.error.as_ref().map(|fault| fault.kind.as_str());
    assert_eq!(kind, call.end.error().map(|(kind, _)| kind), "{call:?}: {:?}", outcome.error);
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Zombies too.
fn children() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Number, name, state and parent of each.
fn described(children: &[i32]) -> Vec<String> {
    let stat = |child: &i32| std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    children
        .iter()
        .map(|child| stat(child).split_whitespace().take(6).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Descriptors, children and threads, once whoever was given up has been seen off.
fn settled(expected: Option<(usize, usize, usize)>) -> (usize, usize, usize) {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let now = (count("/proc/self/fd"), children().len(), count("/proc/self/task"));
        let is_settled = expected.map_or(now.1 == 0 && now.2 <= 2, |expected| now == expected);
        if is_settled || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_process_that_stays_keeps_nothing_of_its_calls() {
    let storm = Storm::new();
    // A storm is a loop like no other; here it is the point.
    let patient = "[loops]\nwindow = 100\nrepeats = 100\ncycles = 50\nerrors = 100\ngrowth = 100\n";
    storm.env.write_user("config/kiwi.toml", patient);
    let calls = Call::all();
    // Every third: three divides none of the numbers of ends, levels, languages and sandboxes, so all take part.
    let step = if std::env::var_os("KIWI_SOAK").is_some() { 1 } else { 3 };
    let kernels = [false, true].map(|has_bwrap| {
        let call = *calls.iter().find(|call| call.has_bwrap == has_bwrap).unwrap();
        // One client each: the record of a session stays open as long as its kernel.
        (kernel(&storm, call), Session::start())
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_millis(100))
        .build()
        .unwrap();
    let make = |number: usize| {
        let asked = calls[number % calls.len()];
        let (kernel, session) = &kernels[usize::from(asked.has_bwrap)];
        runtime.block_on(call(kernel, *session, asked, number));
    };
    // Whatever is made once is made now.
    let warm = calls.iter().enumerate().filter(|(_, call)| matches!(call.end, End::Good | End::Lost));
    warm.for_each(|(number, _)| make(number));
    // The watch over what calls are planned from is begun once it was asked for often enough, and once more after a change.
    let is_watched = |kernel: &Kernel| (0..100).any(|_| kernel.spaces().lull().is_some());
    let watch = || assert!(kernels.iter().all(|(kernel, _)| is_watched(kernel)));
    watch();
    let before = settled(None);
    (0..calls.len()).step_by(step).for_each(make);
    // What was given up lets go when the runtime next comes by.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(300)).await });
    watch();
    assert_eq!(settled(Some(before)), before, "descriptors, children, threads: {:?}", described(&children()));
    storm.nothing_left();
}
