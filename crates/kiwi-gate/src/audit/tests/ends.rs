//! Heads of which a writer reads the ends alone.

use super::super::head::Head;
use super::super::writer::Patience;
use super::*;

/// More than is read of a head at once.
const MANY: usize = 100;

impl Ground {
    /// One line, by a process of its own.
    fn add(&self) {
        self.fill(&[Session::start()], 1, 1);
    }

    fn head(&self) -> Head {
        Head::parse(&std::fs::read(&self.place.head).unwrap(), self.writer().boot()).unwrap()
    }

    /// How many lines a process leaves out that comes now.
    fn skipped(&self) -> u64 {
        let mut writer = self.writer();
        writer.hold(Patience::Waits).unwrap();
        writer.refresh().unwrap();
        let skipped = writer.skipped();
        writer.release();
        skipped
    }
}

#[test]
fn whoever_goes_on_is_told_the_same_as_by_all_of_it() {
    let ground = Ground::new();
    for count in 1..=MANY as u64 {
        ground.add();
        let head = ground.head();
        assert_eq!((head.n(), head.skipped, head.done as u64), (count, 0, count));
        assert!(head.is_signed(), "{count}");
    }
    assert!(ground.skipped() > MANY as u64 / 2, "{}", ground.skipped());
    ground.holds(MANY as u64);
}

#[test]
fn a_checkpoint_knows_of_lines_that_were_left_out() {
    let ground = Ground::new();
    for _ in 0..300 {
        ground.add();
    }
    let head = ground.head();
    assert_eq!((head.base.n, head.n()), (256, 300));
    assert_eq!(head.base.journal, {
        let journal = std::fs::read_to_string(&ground.place.journal).unwrap();
        journal.split_inclusive('\n').take(256).map(str::len).sum::<usize>() as u64
    });
    ground.holds(300);
    // Settled, a line is no longer put back: not by the head, which has forgotten it.
    std::fs::remove_file(&ground.files()[0]).unwrap();
    assert!(!ground.verify().findings.is_empty());
}

#[test]
fn what_was_open_behind_lines_that_were_left_out_is_completed() {
    for lost in ["the line", "the entry"] {
        let ground = Ground::new();
        let session = Session::start();
        ground.fill(&[session], MANY, 1);
        let read = |path: &Path| std::fs::read(path).unwrap();
        let (file, journal) = (ground.files()[0].clone(), ground.place.journal.clone());
        let path = if lost == "the line" { &file } else { &journal };
        let mut writer = ground.writer();
        writer.commit(&mut [item(session, MANY)]).unwrap();
        let short = read(path);
        writer.commit(&mut [item(session, MANY + 1)]).unwrap();
        let open = read(&ground.place.head);
        let whole = read(path);
        drop(writer);
        std::fs::write(&ground.place.head, &open).unwrap();
        std::fs::write(path, &short).unwrap();
        ground.add();
        assert!(read(path).starts_with(&whole), "{lost}");
        ground.holds(MANY as u64 + 3);
    }
}

#[test]
fn a_group_of_another_process_is_read_behind_lines_that_were_left_out() {
    let ground = Ground::new();
    ground.fill(&[Session::start()], MANY, 1);
    let (mut one, mut other) = (ground.writer(), ground.writer());
    for number in 0..200 {
        one.commit(&mut [item(Session::start(), number)]).unwrap();
        other.commit(&mut [item(Session::start(), number)]).unwrap();
    }
    drop((one, other));
    ground.holds(MANY as u64 + 400);
}

#[test]
fn after_a_power_loss_all_of_it_is_read() {
    let ground = Ground::new();
    ground.fill(&[Session::start()], MANY, 1);
    let head = std::fs::read_to_string(&ground.place.head).unwrap();
    std::fs::write(&ground.place.head, head.replacen(ground.writer().boot(), "another", 1)).unwrap();
    let file = ground.files()[0].clone();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 3]).unwrap();
    ground.add();
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    ground.holds(MANY as u64 + 1);
}

#[test]
fn a_change_in_what_was_left_out_shows_at_once_and_is_not_built_upon() {
    let ground = Ground::new();
    ground.fill(&[Session::start()], MANY, 1);
    let mut head = std::fs::read(&ground.place.head).unwrap();
    let middle = head.len() / 2;
    head[middle] ^= 1;
    std::fs::write(&ground.place.head, &head).unwrap();
    assert_eq!(ground.verify().findings[0].kind, "head");
    // Nothing is settled on it: who comes to the checkpoint reads it, and from then on every record is refused.
    let mut writer = ground.writer();
    let refused = (0..256).find_map(|number| writer.commit(&mut [item(Session::start(), number)]).err());
    assert!(refused.unwrap().contains("head of the log cannot be read"));
}
