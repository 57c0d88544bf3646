//! Stopped between any two writes, and after any byte.

use super::super::head::Head;
use super::*;

/// The bytes of the three kinds of files.
struct State {
    head: Vec<u8>,
    journal: Vec<u8>,
    file: Vec<u8>,
}

impl Ground {
    fn state(&self) -> State {
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        let file = self.files().first().map(|path| read(path)).unwrap_or_default();
        State { head: read(&self.place.head), journal: read(&self.place.journal), file }
    }

    fn put(&self, head: &[u8], journal: &[u8], file: &[u8]) {
        std::fs::write(&self.place.head, head).unwrap();
        std::fs::write(&self.place.journal, journal).unwrap();
        std::fs::write(&self.files()[0], file).unwrap();
    }
}

/// A log of four lines, as it is before and after two more are written in one group.
fn before_and_after() -> (Ground, State, State) {
    let ground = Ground::new();
    let session = Session::start();
    let mut writer = ground.writer();
    writer.commit(&mut [item(session, 0), item(session, 1)]).unwrap();
    writer.commit(&mut [item(session, 2), item(session, 3)]).unwrap();
    let before = ground.state();
    writer.commit(&mut [item(session, 4), item(session, 5)]).unwrap();
    let mut after = ground.state();
    drop(writer);
    // As it stands once the next group follows, or the log is closed.
    after.head.extend(b"done\n");
    (ground, before, after)
}

/// Where a killed writer's group begins, and where its `done` does.
fn undone(after: &State) -> &[u8] {
    after.head.strip_suffix(b"done\n").unwrap()
}

#[test]
fn killed_while_it_writes_the_head_nothing_has_happened() {
    let (ground, before, after) = before_and_after();
    for cut in (before.head.len()..undone(&after).len()).step_by(7) {
        ground.put(&after.head[..cut], &before.journal, &before.file);
        let verified = ground.verify();
        assert_eq!(verified.findings, [], "{cut}");
        // The first of the two lines may have been written whole.
        assert!((4..=5).contains(&verified.records), "{cut}");
        ground.fill(&[Session::start()], 1, 1);
        assert_eq!(ground.verify().findings, [], "{cut}");
        for file in ground.files().iter().skip(1) {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn killed_while_it_writes_the_files_the_next_one_completes_them() {
    let (ground, before, after) = before_and_after();
    let cuts = |before: &[u8], after: &[u8]| {
        (before.len()..=after.len()).step_by(37).chain([after.len()]).collect::<Vec<_>>()
    };
    let lines = cuts(&before.file, &after.file).into_iter().map(|cut| (cut, before.journal.len()));
    let entries = cuts(&before.journal, &after.journal).into_iter().map(|cut| (after.file.len(), cut));
    for (file, journal) in lines.chain(entries) {
        ground.put(undone(&after), &after.journal[..journal], &after.file[..file]);
        let verified = ground.verify();
        assert_eq!((verified.findings.as_slice(), verified.records), ([].as_slice(), 6), "{file} {journal}");
        let now = ground.state();
        assert_eq!((now.file, now.journal), (after.file.clone(), after.journal.clone()), "{file} {journal}");
        let head = Head::parse(&now.head, ground.writer().boot()).unwrap();
        assert_eq!(head.base.restored > 0, file < after.file.len(), "what was put back is noted");
    }
    // Killed again while it completes them.
    ground.put(undone(&after), &after.journal, &after.file[..before.file.len()]);
    ground.holds(6);
    ground.put(undone(&after), &before.journal, &after.file);
    ground.fill(&[Session::start()], 1, 1);
    ground.holds(7);
}

#[test]
fn once_it_is_done_the_same_loss_is_tampering() {
    let (ground, before, after) = before_and_after();
    ground.put(&after.head, &after.journal, &before.file);
    assert_eq!(ground.verify().findings[0].kind, "cut_off");
    ground.put(&after.head, &before.journal, &after.file);
    assert_eq!(ground.verify().findings[0].kind, "cut_off");
    // And so it is for what was done before the last group, while that one is open.
    let shorter = before.file.len() - 5;
    ground.put(undone(&after), &after.journal, &before.file[..shorter]);
    assert_eq!(ground.verify().findings[0].kind, "cut_off");
    let mut edited = after.file.clone();
    edited[20] ^= 1;
    ground.put(undone(&after), &after.journal, &edited);
    assert_eq!(ground.verify().findings[0].kind, "edited");
    ground.put(&after.head, &after.journal, &after.file);
    ground.holds(6);
}

/// The head as another boot of the machine has left it.
fn of_another_boot(ground: &Ground, head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(head.to_vec()).unwrap();
    let other = text.replacen(ground.writer().boot(), "another", 1);
    assert_ne!(other, text);
    other.into_bytes()
}

#[test]
fn after_a_power_loss_whatever_was_not_synced_comes_back() {
    let (ground, _, after) = before_and_after();
    let head = of_another_boot(&ground, &after.head);
    let zeros = |bytes: &[u8], from: usize| [&bytes[..from], &vec![0; bytes.len() - from]].concat();
    for cut in (0..after.file.len()).step_by(53) {
        let journal = after.journal.len().saturating_sub(cut);
        for (file, journal) in [
            (after.file[..cut].to_vec(), after.journal[..journal].to_vec()),
            (zeros(&after.file, cut), zeros(&after.journal, journal)),
        ] {
            ground.put(&head, &journal, &file);
            ground.holds(6);
            let now = ground.state();
            assert_eq!((now.file, now.journal), (after.file.clone(), after.journal.clone()), "{cut}");
        }
    }
    // The end of the head that was not synced may be anything.
    for tail in [&b"done\n"[..], b"\0\0\0\0", b"\0\0\0\n\0\n", b"entry {}\n", b"don"] {
        ground.put(
            &[undone(&State { head: head.clone(), ..ground.state() }), tail].concat(),
            &after.journal,
            &after.file,
        );
        ground.holds(6);
    }
    // Then it goes on, and from then on this boot is the one that counts.
    ground.fill(&[Session::start()], 2, 1);
    ground.holds(8);
    let file = ground.files()[0].clone();
    std::fs::write(&file, &after.file[..10]).unwrap();
    assert_eq!(ground.verify().findings[0].kind, "cut_off");
}

#[test]
fn a_power_loss_excuses_no_line_that_nobody_wrote_and_none_behind_the_checkpoint() {
    let (ground, _, after) = before_and_after();
    let head = of_another_boot(&ground, &after.head);
    let last = after.file.split_inclusive(|byte| *byte == b'\n').next_back().unwrap();
    let longer = [&after.file[..], last].concat();
    ground.put(&head, &after.journal, &longer);
    assert_eq!(ground.verify().findings[0].kind, "foreign");
    let longer = [&after.journal[..], &after.journal].concat();
    ground.put(&head, &longer, &after.file);
    assert!(!ground.verify().findings.is_empty());
    // A checkpoint: everything before it was synced where it is.
    let ground = Ground::new();
    ground.fill(&[Session::start()], 300, 1);
    let now = ground.state();
    let head = of_another_boot(&ground, &now.head);
    ground.put(&head, &now.journal, &now.file[..100]);
    assert_eq!(ground.verify().findings[0].kind, "cut_off");
}

#[test]
fn killed_between_a_checkpoint_and_its_rename_nothing_is_lost() {
    let ground = Ground::new();
    ground.fill(&[Session::start()], 10, 3);
    std::fs::write(ground.place.head.with_extension("new"), "base {half of").unwrap();
    ground.holds(10);
    ground.fill(&[Session::start()], 600, 100);
    ground.holds(610);
}
