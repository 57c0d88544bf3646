//! A log of ten thousand lines, changed at hundreds of places: each change shows, and where it was.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use super::super::head::Head;
use super::super::signed::Signed;
use super::*;

const LINES: usize = 10_000;

/// Numbers that look arbitrary and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Lines with their line breaks.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut lines) = (bytes, Vec::new());
    loop {
        let mut line = Vec::new();
        if rest.read_until(b'\n', &mut line).unwrap() == 0 {
            return lines;
        }
        lines.push(line);
    }
}

/// How many places of each kind: ordinary runs sample, soaks sample more.
#[expect(clippy::disallowed_methods, reason = "a test asks whether it is to soak")]
fn samples(full: usize) -> usize {
    if std::env::var_os("KIWI_SOAK").is_some() { full } else { full / 10 }
}

/// Ways to change a file.
const WAYS: usize = 10;

/// A file, changed in one of the ways, and the line (from 1) where that should show.
fn changed(whole: &[u8], way: usize, numbers: &mut Numbers) -> (&'static str, Vec<u8>, usize) {
    let all = lines(whole);
    let line = numbers.below(all.len());
    let other = (line + 1 + numbers.below(all.len() - 1)) % all.len();
    let at = |byte: usize| lines(&whole[..byte]).len().max(1);
    let mut new = all.clone();
    let what = match way {
        0 | 1 => {
            // Any byte, line breaks included.
            let byte = numbers.below(whole.len());
            let mut bytes = whole.to_vec();
            bytes[byte] ^= 1 << numbers.below(8);
            return ("an edit", bytes, at(byte + 1));
        }
        2 => {
            // Behind the last line there is none.
            new.remove(line);
            "a deletion"
        }
        3 => {
            new[line] = all[other].clone();
            "a replacement by another line"
        }
        4 => {
            new.insert(line, all[line].clone());
            "a duplication"
        }
        5 => {
            new.insert(line, all[other].clone());
            "an insertion of a line from elsewhere"
        }
        6 => {
            new.insert(line, b"{\"event\":\"enter\"}\n".to_vec());
            "an insertion"
        }
        7 => {
            new.swap(line, other);
            return ("a swap", new.concat(), line.min(other) + 1);
        }
        8 => {
            let line = 1 + numbers.below(all.len() - 1);
            return ("a truncation", all[..line].concat(), line + 1);
        }
        _ => {
            let byte = 1 + numbers.below(whole.len() - 1);
            return ("a truncation within a line", whole[..byte].to_vec(), at(byte));
        }
    };
    (what, new.concat(), line + 1)
}

/// Writes files changed, asks `verify` once, and puts them back: each change is found, where it was made.
#[track_caller]
fn check(
    ground: &Ground,
    files: &[(PathBuf, Vec<u8>)],
    mut change: impl FnMut(usize, &[u8]) -> (&'static str, Vec<u8>, usize),
) {
    let mut expected = Vec::new();
    for (number, (path, whole)) in files.iter().enumerate() {
        let (what, bytes, line) = change(number, whole);
        assert_ne!(bytes, *whole, "{what}");
        std::fs::write(path, bytes).unwrap();
        expected.push((what, ground.name(path), line as u64));
    }
    let findings = ground.verify().findings;
    for (what, name, line) in expected {
        assert!(is_located(&findings, &name, line), "{what} of {name} at line {line}: {findings:#?}");
    }
    for (path, whole) in files {
        std::fs::write(path, whole).unwrap();
    }
}

#[test]
fn any_change_shows_and_where() {
    let ground = Ground::new();
    let sessions: Vec<Session> = (0..7).map(|_| Session::start()).collect();
    ground.fill(&sessions, LINES, 250);
    ground.holds(LINES as u64);
    let mut numbers = Numbers(7);
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    let files: Vec<_> = ground.files().into_iter().map(read).collect();
    let journal = [read(ground.place.journal.clone())];
    assert_eq!(files.len(), sessions.len());
    for round in 0..samples(300) {
        check(&ground, &files, |number, whole| changed(whole, (round + number) % WAYS, &mut numbers));
        check(&ground, &journal, |_, whole| changed(whole, round % WAYS, &mut numbers));
    }
    for files in [&files[..], &journal] {
        check(&ground, files, |_, whole| {
            let all = lines(whole);
            ("a last line gone", all[..all.len() - 1].concat(), all.len())
        });
        check(&ground, files, |_, whole| {
            let all = lines(whole);
            ("a line more", [whole, &all[0]].concat(), all.len() + 1)
        });
        check(&ground, files, |_, _| ("an empty file", Vec::new(), 1));
    }
    for (path, whole) in files.iter().chain(&journal) {
        std::fs::remove_file(path).unwrap();
        let findings = ground.verify().findings;
        assert!(is_located(&findings, &ground.name(path), 1), "{findings:#?}");
        std::fs::write(path, whole).unwrap();
    }
    ground.holds(LINES as u64);
}

#[test]
fn an_older_copy_of_everything_shows_also_after_more_was_written() {
    let ground = Ground::new();
    let sessions = [Session::start(), Session::start()];
    ground.fill(&sessions, 301, 7);
    let logs = ground.place.folder.parent().unwrap().to_owned();
    let copy = ground.folder.path().join("copy");
    let files = |from: &Path| {
        let mut all = vec![from.join("audit.journal")];
        for day in std::fs::read_dir(from.join("audit")).unwrap().flatten() {
            all.extend(std::fs::read_dir(day.path()).unwrap().flatten().map(|file| file.path()));
        }
        all
    };
    for path in files(&logs) {
        let to = copy.join(path.strip_prefix(&logs).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&path, to).unwrap();
    }
    for more in [1, 40, 400] {
        ground.fill(&sessions, more, 7);
        let good: Vec<(PathBuf, Vec<u8>)> =
            files(&logs).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        for path in files(&copy) {
            std::fs::copy(&path, logs.join(path.strip_prefix(&copy).unwrap())).unwrap();
        }
        let findings = ground.verify().findings;
        assert!(is_located(&findings, "audit.journal", 302), "{more}: {findings:#?}");
        for (path, bytes) in good {
            std::fs::write(path, bytes).unwrap();
        }
        assert_eq!(ground.verify().findings, []);
    }
    // Going on after that does not heal it.
    for path in files(&copy) {
        std::fs::copy(&path, logs.join(path.strip_prefix(&copy).unwrap())).unwrap();
    }
    ground.fill(&[Session::start()], 300, 7);
    assert!(is_located(&ground.verify().findings, "audit.journal", 302));
}

#[test]
fn files_that_nobody_wrote_show_and_empty_ones_say_nothing() {
    let ground = Ground::new();
    assert_eq!(ground.verify(), Verification::default(), "a log that nobody began is whole");
    let session = Session::start();
    ground.fill(&[session], 3, 1);
    let day = ground.files()[0].parent().unwrap().to_owned();
    std::fs::write(day.join("empty.jsonl"), "").unwrap();
    std::fs::write(day.join("notes.txt"), "of no interest").unwrap();
    ground.holds(3);
    for path in
        [day.join("copy.jsonl"), ground.place.folder.join("copy.jsonl"), day.join("deep/er/copy.jsonl")]
    {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&ground.files()[0], &path)
            .unwrap_or_else(|_| std::fs::write(&path, "{}\n").map(|()| 3).unwrap());
        let findings = ground.verify().findings;
        assert_eq!(
            (findings.len(), findings[0].kind, &findings[0].file),
            (1, "foreign_file", &ground.name(&path))
        );
        std::fs::remove_file(path).unwrap();
    }
    ground.holds(3);
}

#[test]
fn a_head_that_is_gone_or_another_users_or_damaged_shows() {
    let ground = Ground::new();
    let session = Session::start();
    ground.fill(&[session], 5, 2);
    let head = std::fs::read(&ground.place.head).unwrap();
    let kinds = || ground.verify().findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    std::fs::remove_file(&ground.place.head).unwrap();
    assert_eq!(kinds(), ["head_missing"]);
    assert!(!ground.place.head.exists(), "looking does not make one");
    // Whoever goes on writing begins a head; what was before stays unproven.
    ground.fill(&[Session::start()], 300, 100);
    assert_eq!(kinds(), ["unproven"]);
    std::fs::write(&ground.place.head, "not a head\n").unwrap();
    assert_eq!(kinds(), ["head"]);
    let refused = ground.writer().commit(&mut [item(session, 9)]);
    assert!(refused.unwrap_err().contains("head of the log cannot be read"));
    std::fs::write(&ground.place.head, head).unwrap();
    assert!(!ground.verify().findings.is_empty(), "the head of an earlier time");
    let other = Ground::place(ground.folder.path(), "other");
    let findings = verify(&other).unwrap().findings;
    assert_eq!(findings[0].kind, "head_missing");
}

#[test]
fn signatures_are_checked_and_what_they_say_must_be_in_the_journal() {
    let mut ground = Ground::new();
    ground.place.anchor = Some(ground.folder.path().join("anchor"));
    ground.fill(&[Session::start()], 600, 100);
    let verified = ground.verify();
    assert_eq!((verified.findings.len(), verified.records), (0, 600), "{verified:#?}");
    assert!(verified.checkpoints >= 4, "{verified:#?}");
    let anchor = ground.place.anchor.clone().unwrap();
    let change = |path: &Path, change: &dyn Fn(&str) -> String| {
        let before = std::fs::read_to_string(path).unwrap();
        let after = change(&before);
        assert_ne!(before, after);
        std::fs::write(path, after).unwrap();
        let findings = ground.verify().findings;
        std::fs::write(path, before).unwrap();
        findings.iter().map(|finding| (finding.kind, finding.file.clone())).collect::<Vec<_>>()
    };
    let forged = |text: &str| {
        let (before, after) = text.split_once("\"signature\":\"").unwrap();
        let digit = if after.starts_with('0') { "1" } else { "0" };
        format!("{before}\"signature\":\"{digit}{}", after.split_at(1).1)
    };
    assert_eq!(change(&ground.place.head, &forged), [("signature", "head".to_owned())]);
    assert_eq!(change(&anchor, &forged), [("signature", "anchor".to_owned())]);
    assert_eq!(
        change(&anchor, &|text| text.replacen("{\"root\"", "{\"toor\"", 1)),
        [("anchor", "anchor".to_owned())]
    );
    // Signed by somebody else, however well.
    let other = Ground::new();
    let stranger = other.place.keys.get_or_make(kiwi_space::KeyPurpose::User).unwrap();
    let head = Head::parse(&std::fs::read(&ground.place.head).unwrap(), ground.writer().boot()).unwrap();
    let signed = Signed::make(&stranger, &ground.place.root, head.n(), head.hash());
    let line = serde_json::to_string(&signed).unwrap();
    assert_eq!(change(&anchor, &|text| format!("{text}{line}\n")), [("signature", "anchor".to_owned())]);
    // Signed by the user, of a chain that was longer than this, or another.
    let key = ground.place.keys.get(kiwi_space::KeyPurpose::User).unwrap().unwrap();
    for (n, hash) in [(601, head.hash()), (300, head.hash()), (0, head.hash())] {
        let line = serde_json::to_string(&Signed::make(&key, &ground.place.root, n, hash)).unwrap();
        assert_eq!(change(&anchor, &|text| format!("{text}{line}\n")), [("signature", "anchor".to_owned())]);
    }
    // The checkpoints of another space are none of ours.
    let line = serde_json::to_string(&Signed::make(&key, "/elsewhere", 9, None)).unwrap();
    assert_eq!(change(&anchor, &|text| format!("{text}{line}\n")), []);
    std::fs::remove_file(anchor).unwrap();
    assert_eq!(ground.verify().findings[0].kind, "anchor");
}

#[test]
fn who_rewrites_all_of_it_and_its_head_cannot_rewrite_the_anchor() {
    let mut ground = Ground::new();
    let anchor = ground.folder.path().join("anchor");
    ground.place.anchor = Some(anchor);
    ground.fill(&[Session::start()], 5, 1);
    // With the user's key: everything anew.
    std::fs::remove_dir_all(&ground.place.folder).unwrap();
    std::fs::remove_file(&ground.place.journal).unwrap();
    std::fs::remove_file(&ground.place.head).unwrap();
    let anchored = ground.place.anchor.take();
    ground.fill(&[Session::start()], 9, 1);
    ground.holds(9);
    ground.place.anchor = anchored;
    assert_eq!(ground.verify().findings[0].file, "anchor");
}
