//! Many callers, few syncs.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::session::MOST_OPEN;
use super::super::{AuditLog, Durability, lock};
use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn callers_that_come_together_share_a_sync() {
    static SYNCS: AtomicUsize = AtomicUsize::new(0);
    let ground = Ground::new();
    let log = AuditLog::new(Some(ground.place.clone()));
    lock(&log.shared.writer).as_mut().unwrap().sync = |file: &File| {
        SYNCS.fetch_add(1, Ordering::Relaxed);
        file.sync_data()
    };
    runtime().block_on(async {
        let callers = (0..8).map(|_| {
            let log = log.clone();
            tokio::spawn(async move {
                let session = Session::start();
                for number in 0..25 {
                    log.append(session, record(session, number), Durability::OnDisk).await.unwrap();
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
    });
    assert!(SYNCS.load(Ordering::Relaxed) <= 60, "{SYNCS:?} syncs for 200 records of 8 callers");
    drop(log);
    ground.holds(200);
    assert_eq!(ground.files().len(), 8);
}

#[test]
fn a_caller_alone_needs_one_sync_and_no_thread() {
    static SYNCS: AtomicUsize = AtomicUsize::new(0);
    static STRANGERS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static HERE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    HERE.set(true);
    let ground = Ground::new();
    let session = Session::start();
    ground.fill(&[session], 1, 1);
    let log = AuditLog::new(Some(ground.place.clone()));
    lock(&log.shared.writer).as_mut().unwrap().sync = |file: &File| {
        SYNCS.fetch_add(1, Ordering::Relaxed);
        STRANGERS.fetch_add(usize::from(!HERE.get()), Ordering::Relaxed);
        file.sync_data()
    };
    runtime().block_on(log.append(session, record(session, 1), Durability::OnDisk)).unwrap();
    assert_eq!((SYNCS.load(Ordering::Relaxed), STRANGERS.load(Ordering::Relaxed)), (1, 0));
    drop(log);
    ground.holds(2);
}

#[test]
fn nobody_waits_for_company_that_cannot_come() {
    let ground = Ground::new();
    let log = AuditLog::new(Some(ground.place.clone()));
    let session = Session::start();
    let is_written_at_once = |number| {
        let mut append = Box::pin(log.append(session, record(session, number), Durability::OnDisk));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        append.as_mut().poll(&mut context).is_ready()
    };
    runtime().block_on(async {
        assert!(!is_written_at_once(0), "nobody said who there is");
        let one = log.attend();
        assert!(is_written_at_once(1));
        let other = log.attend();
        assert!(!is_written_at_once(2));
        drop(one);
        assert!(is_written_at_once(3));
        drop(other);
        assert!(!is_written_at_once(4));
    });
    drop(log);
    ground.holds(5);
}

#[test]
fn a_record_is_written_also_by_a_caller_who_gives_up_and_from_a_drop() {
    let ground = Ground::new();
    let log = AuditLog::new(Some(ground.place.clone()));
    let session = Session::start();
    runtime().block_on(async {
        let append = log.append(session, record(session, 0), Durability::OnDisk);
        // Polled once: it leads, lets others join, and is dropped.
        let mut append = Box::pin(append);
        std::future::poll_fn(|context| {
            assert!(append.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(append);
    });
    log.append_now(session, record(session, 1));
    drop(log);
    ground.holds(2);
}

#[test]
fn one_record_that_cannot_be_written_does_not_refuse_the_others() {
    let ground = Ground::new();
    let session = Session::start();
    let mut bad = item(session, 1);
    std::sync::Arc::make_mut(&mut bad.record).params = Some(json!(u64::MAX));
    let mut group = [item(session, 0), bad, item(session, 2)];
    ground.writer().commit(&mut group).unwrap();
    assert_eq!(group.each_ref().map(|item| item.problem.is_some()), [false, true, false]);
    ground.holds(2);
}

#[test]
fn many_sessions_keep_few_files_open_and_each_log_goes_on() {
    let ground = Ground::new();
    let sessions: Vec<Session> = (0..100).map(|_| Session::start()).collect();
    let mut writer = ground.writer();
    for round in 0..2 {
        for session in &sessions {
            writer.commit(&mut [item(*session, round)]).unwrap();
        }
        assert!(writer.open_files() <= MOST_OPEN);
    }
    // Also where more of them come together than are kept open.
    let mut group: Vec<Item> = sessions.iter().map(|session| item(*session, 2)).collect();
    writer.commit(&mut group).unwrap();
    drop(writer);
    ground.holds(300);
    assert_eq!(ground.files().len(), 100);
}

#[test]
fn a_session_goes_on_in_a_file_of_the_new_day_and_not_back() {
    let ground = Ground::new();
    let session = Session::start();
    let mut writer = ground.writer();
    for day in [|| "2026-01-31".to_owned(), || "2026-02-01".to_owned(), || "2026-01-31".to_owned()] {
        writer.day = day;
        writer.commit(&mut [item(session, 0), item(session, 1)]).unwrap();
    }
    drop(writer);
    ground.holds(6);
    let lengths: Vec<_> =
        ground.files().iter().map(|file| std::fs::read_to_string(file).unwrap().lines().count()).collect();
    assert_eq!(lengths, [2, 4]);
}

#[test]
fn several_writers_take_turns() {
    let ground = Ground::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Each with a journal of its own to lock, as another process would have.
            scope.spawn(|| {
                let session = Session::start();
                let mut writer = ground.writer();
                for number in 0..150 {
                    writer.commit(&mut [item(session, number)]).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                assert_eq!(ground.verify().findings, []);
            }
        });
    });
    ground.holds(600);
}
