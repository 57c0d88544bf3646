//! A launcher that begins with walls before it has orders: whatever becomes of Kiwi or of itself meanwhile, nothing stays.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "somebody has to start the launcher")]

mod support;

use kiwi_launcher::procfs::{all, below};
use kiwi_launcher::wire::{Opening, Raw, frame};
use rustix::process::{Pid, test_kill_process};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use support::{example, wait_until};

/// A launcher, its first process, and where its orders come from.
fn begin() -> (Child, Pid, UnixStream) {
    let (orders, theirs) = UnixStream::pair().unwrap();
    let launcher = Command::new(example("launcher"))
        .args(["__launch", kiwi_launcher::WALLED])
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(launcher.id().cast_signed()).unwrap();
    wait_until("the first process is there", || !below(&[pid], &all()).is_empty());
    let first = below(&[pid], &all()).first().unwrap().pid;
    (launcher, first, orders)
}

fn wait_until_gone(first: Pid) {
    wait_until("the first process is gone", || test_kill_process(first).is_err());
}

#[test]
fn without_orders_it_leaves() {
    let (mut launcher, first, orders) = begin();
    drop(orders);
    assert!(launcher.wait().unwrap().success());
    wait_until_gone(first);
}

#[test]
fn it_removes_the_folder_it_was_told_of() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("snapshot");
    let (mut launcher, first, mut orders) = begin();
    let opening = frame(&Opening { snapshot: Some(Raw::of(&folder)) }).unwrap();
    orders.write_all(&opening).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), "").unwrap();
    drop(orders);
    assert!(launcher.wait().unwrap().success());
    wait_until_gone(first);
    assert!(!folder.exists());
}

#[test]
fn what_is_no_order_ends_it() {
    let (mut launcher, first, mut orders) = begin();
    orders.write_all(&[1, 0, 0, 0, 255]).unwrap();
    assert!(!launcher.wait().unwrap().success());
    wait_until_gone(first);
    assert_eq!(orders.read(&mut [0]).unwrap(), 0);
}

/// The first process may have taken the order; then nobody else can tell Kiwi that it is lost.
#[test]
fn without_its_launcher_the_first_process_leaves() {
    let (mut launcher, first, mut orders) = begin();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    orders.write_all(&frame(&Opening { snapshot: None }).unwrap()).unwrap();
    wait_until_gone(first);
    // It was closed with something unread, or with nothing.
    assert!(orders.read(&mut [0]).map_or(true, |count| count == 0));
}
