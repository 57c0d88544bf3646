//! Disks that fail.

use std::fs::File;

use super::*;

fn broken(_: &File) -> std::io::Result<()> {
    Err(std::io::Error::other("the disk is on fire"))
}

#[test]
fn after_a_failed_sync_everything_is_written_again_before_anything_else_is_accepted() {
    let ground = Ground::new();
    let session = Session::start();
    let mut writer = ground.writer();
    writer.commit(&mut [item(session, 0), item(session, 1)]).unwrap();
    writer.sync = broken;
    for _ in 0..3 {
        assert_eq!(writer.commit(&mut [item(session, 2)]).unwrap_err(), "the disk is on fire");
    }
    // What may not be on disk is written again: here it is gone altogether.
    let journal = std::fs::read(&ground.place.journal).unwrap();
    let file = ground.files()[0].clone();
    let lines = std::fs::read(&file).unwrap();
    std::fs::write(&ground.place.journal, "").unwrap();
    std::fs::write(&file, &lines[..10]).unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let before = inode(&ground.place.head);
    writer.sync = File::sync_data;
    writer.commit(&mut [item(session, 3)]).unwrap();
    assert_ne!(inode(&ground.place.head), before, "the head is a new file");
    assert!(std::fs::read(&ground.place.journal).unwrap().starts_with(&journal));
    assert!(std::fs::read(&file).unwrap().starts_with(&lines));
    drop(writer);
    ground.holds(3);
}

#[test]
fn a_group_that_does_not_get_into_its_files_is_taken_back() {
    let ground = Ground::new();
    let (first, second) = (Session::start(), Session::start());
    let mut writer = ground.writer();
    writer.commit(&mut [item(first, 0), item(second, 1)]).unwrap();
    // The file of one session cannot be written any more: it is a folder.
    let path =
        ground.files().into_iter().find(|path| ground.name(path).contains(&second.to_string())).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    drop(writer);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let mut writer = ground.writer();
    let mut group = [item(first, 2), item(second, 3)];
    writer.commit(&mut group).unwrap();
    assert_eq!(
        group.each_ref().map(|item| item.problem.is_some()),
        [false, true],
        "each caller is told of its own"
    );
    drop(writer);
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    ground.holds(3);
}

#[test]
fn what_the_anchor_could_not_vouch_for_is_not_written() {
    let mut ground = Ground::new();
    let session = Session::start();
    ground.fill(&[session], 2, 1);
    let folder = ground.folder.path().join("elsewhere");
    let anchor = folder.join("anchor");
    ground.place.anchor = Some(anchor.clone());
    let said = |ground: &Ground| ground.verify().findings[0].message.clone();
    let mut writer = ground.writer();
    for _ in 0..2 {
        let why = writer.commit(&mut [item(session, 2)]).unwrap_err();
        assert!(why.contains(&anchor.display().to_string()), "{why}");
    }
    assert!(said(&ground).contains("every call is refused"), "{}", said(&ground));
    std::fs::create_dir_all(&anchor).unwrap();
    assert!(writer.commit(&mut [item(session, 2)]).is_err(), "a folder is no anchor");
    assert!(said(&ground).contains("cannot be read"), "{}", said(&ground));
    std::fs::remove_dir(&anchor).unwrap();
    std::os::unix::fs::symlink("/dev/null", &anchor).unwrap();
    let why = writer.commit(&mut [item(session, 2)]).unwrap_err();
    assert!(why.contains("is no file"), "nor is what keeps nothing, or is waited for: {why}");
    std::fs::remove_file(&anchor).unwrap();
    assert!(said(&ground).ends_with("the next call begins one"), "{}", said(&ground));
    writer.commit(&mut [item(session, 2)]).unwrap();
    drop(writer);
    ground.holds(3);
    assert!(std::fs::read_to_string(&anchor).unwrap().contains("signature"));
}

#[test]
fn without_a_user_space_every_call_is_refused() {
    let log = super::super::AuditLog::new(None);
    let session = Session::start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let append = log.append(session, record(session, 0), super::super::Durability::OnDisk);
    let fault = runtime.block_on(append).unwrap_err();
    assert_eq!(fault.kind, kiwi_model::ErrorKind::Denied);
    assert_eq!(fault.details["reason"]["kind"], "policy");
    assert_eq!(fault.details["reason"]["policy_id"], "audit");
}
