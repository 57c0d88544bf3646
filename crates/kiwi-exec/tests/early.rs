//! A launcher that is the first process of its sandbox, and begins with walls before it has orders: whatever becomes of Kiwi
//! or of itself meanwhile, nothing stays.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_launcher::inside::{Users, early};
use kiwi_launcher::kernel::processes::{Part, Program};
use kiwi_launcher::procfs::{all, below};
use kiwi_launcher::wire::{Opening, Raw, frame, send};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, test_kill_process, waitpid};
use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use support::{example, wait_until};

/// A launcher, who makes its network, and where its orders come from.
struct Begun {
    launcher: Pid,
    helper: Pid,
    orders: UnixStream,
}

impl Begun {
    fn new() -> Self {
        let (orders, theirs) = UnixStream::pair().unwrap();
        let path = CString::new(example("launcher").as_os_str().as_bytes()).unwrap();
        let [user, group] = Users::own().words();
        let words = ["kiwi", "__launch", early::ROLE, &user, &group];
        let null = std::fs::File::open("/dev/null").unwrap();
        let program = Program {
            path,
            arguments: words.iter().map(|word| CString::new(*word).unwrap()).collect(),
            environment: Vec::new(),
            part: Part::Launcher {
                streams: [theirs.as_fd(), null.as_fd(), null.as_fd()],
                first_in: Some(early::BORN_IN),
            },
        };
        let launcher = program.start().unwrap();
        wait_until("somebody makes a network", || !below(&[launcher], &all()).is_empty());
        let helper = below(&[launcher], &all()).first().unwrap().pid;
        Self { launcher, helper, orders }
    }

    /// How the launcher ended; nobody else is left then.
    fn end(&self) -> WaitStatus {
        let (_, status) = waitpid(Some(self.launcher), WaitOptions::empty()).unwrap().unwrap();
        assert!(test_kill_process(self.helper).is_err(), "the launcher takes everybody along");
        status
    }
}

#[test]
fn without_orders_it_leaves() {
    let begun = Begun::new();
    begun.orders.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(begun.end().exit_status(), Some(0));
}

/// It cannot see it any more, but it has a hold of the folder around it.
#[test]
fn the_folder_of_the_run_goes_with_it() {
    let root = tempfile::tempdir().unwrap();
    let opening = frame(&Opening { folder: Some(Raw::of("run")) }).unwrap();
    let begun = Begun::new();
    let around = std::fs::File::open(root.path()).unwrap();
    assert_eq!(send(&begun.orders, &opening, &[around.as_fd()]).unwrap(), opening.len());
    std::fs::create_dir_all(root.path().join("run/deeper")).unwrap();
    std::fs::write(root.path().join("run/deeper/file"), "").unwrap();
    std::fs::write(root.path().join("another"), "").unwrap();
    begun.orders.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(begun.end().exit_status(), Some(0));
    let left: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["another"]);
}

#[test]
fn a_folder_that_it_has_no_hold_of_is_none_of_its() {
    let mut begun = Begun::new();
    let opening = frame(&Opening { folder: Some(Raw::of("run")) }).unwrap();
    begun.orders.write_all(&opening).unwrap();
    assert_eq!(begun.end().exit_status(), Some(1));
}

#[test]
fn what_is_no_order_ends_it() {
    let mut begun = Begun::new();
    begun.orders.write_all(&[1, 0, 0, 0, 255]).unwrap();
    assert_eq!(begun.end().exit_status(), Some(1));
    // It was closed with something unread, or with nothing.
    assert!(begun.orders.read(&mut [0]).map_or(true, |count| count == 0));
}

#[test]
fn whoever_kills_it_ends_all() {
    let mut begun = Begun::new();
    begun.orders.write_all(&frame(&Opening { folder: None }).unwrap()).unwrap();
    kill_process(begun.launcher, Signal::KILL).unwrap();
    assert_eq!(begun.end().terminating_signal(), Some(Signal::KILL.as_raw()));
}
