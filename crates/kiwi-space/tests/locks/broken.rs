//! Lockfiles that are there and cannot be used: always an error that names the file, never "there is none".

use kiwi_model::{ErrorKind, Explain as _, Space};
use kiwi_space::{LockProblem, SaveOutcome, Slot, SpaceError};
use std::fs;

use crate::common::{Ground, id, version};
use crate::store::*;

const FILE: &str = "lockfiles/data/a@1.0.0.lock.json";

/// Loading and listing both say what is wrong with the file; a hint names the tool.
#[track_caller]
fn refused(ground: &Ground, part: &str, hint: &str) {
    let spaces = ground.spaces();
    let error = spaces.locks().load("data", &id("a"), &version("1.0.0")).expect_err(part);
    assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
    let message = error.to_string();
    assert!(message.contains(&*ground.ai(FILE).to_string_lossy()), "{message} does not name the file");
    assert!(message.contains(part), "{message} does not say {part}");
    let said = error.hint().expect("hint");
    assert!(said.contains(hint) && !said.contains("TOOL"), "{said}");
    let listed = entries(ground);
    let entry = listed.iter().find(|entry| entry.key == "data/a@1.0.0").expect("listed");
    assert_eq!(entry.problem.as_ref().map(|fault| fault.message.as_str()), Some(message.as_str()));
    assert!(entry.chain_hash.is_empty());
    let of = spaces.locks().of(&id("a")).expect("of");
    assert!(of.iter().any(|entry| entry.problem.is_some()));
}

#[test]
fn what_is_wrong_is_said_with_the_file() {
    let good = lock("data", "a", "1.0.0");
    let text = good.to_text();
    let update = "`kiwi lockfile update a`";
    for (broken, part, hint) in [
        (format!("<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n"), "conflict markers", update),
        (text[..text.len() / 2].to_owned(), "line ", update),
        (String::new(), "line 1", update),
        (
            text.replace("\"lockfile_version\": 1", "\"lockfile_version\": 2"),
            "lockfile_version 2",
            "update Kiwi",
        ),
        (text.replace(&good.chain_hash, "3f9c"), "its chain_hash is 3f9c", update),
        (text.replacen("sha256:", "sha256:00", 1), "64 lowercase hex digits", update),
        (text.replace("\"tool_id\": \"subprocess\"", "\"tool_id\": \"a\""), "`a` twice", update),
        (lock("data", "b", "1.0.0").to_text(), "is for `b@1.0.0` in category `data`", "freeze a"),
        (lock("data", "a", "2.0.0").to_text(), "is for `a@2.0.0` in category `data`", "freeze a"),
        (lock("else", "a", "1.0.0").to_text(), "is for `a@1.0.0` in category `else`", "freeze a"),
        (lock("", "a", "1.0.0").to_text(), "is for `a@1.0.0` in no category", "freeze a"),
        (format!("\"{}\"", "a".repeat(5 << 20)), "more than 4194304 bytes", "freeze a"),
    ] {
        let ground = Ground::new();
        // The project's broken one is not passed over for a good one of the user.
        ground.write_user(FILE, &text);
        ground.write(FILE, broken);
        refused(&ground, part, hint);
    }
    let ground = Ground::new();
    ground.write(FILE, b"\xff\xfe");
    refused(&ground, "is not UTF-8", update);
    let ground = Ground::new();
    fs::create_dir_all(ground.ai(FILE)).expect("folder");
    let error = ground.spaces().locks().load("data", &id("a"), &version("1.0.0")).expect_err("folder");
    assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
    assert!(error.to_string().contains("is a folder"), "{error}");
}

#[test]
fn an_alternative_is_the_chain_its_name_says() {
    let ground = Ground::new();
    let (one, two) = (lock_of("", "a", "1.0.0", "one"), lock_of("", "a", "1.0.0", "two"));
    ground.write(&format!("lockfiles/a@1.0.0.{}.lock.json", one.chain_hash), two.to_text());
    let error = ground
        .spaces()
        .locks()
        .load_alternative("", &id("a"), &version("1.0.0"), &one.chain_hash)
        .expect_err("other chain");
    let SpaceError::Lockfile { problem: LockProblem::Misplaced { holds, says }, .. } = &error else {
        panic!("{error}")
    };
    assert!(holds.contains(&two.chain_hash) && says.contains(&one.chain_hash), "{error}");
    assert!(entries(&ground)[0].problem.is_some());
}

#[test]
fn a_broken_one_is_listed_among_the_others_and_mended_by_saving() {
    let ground = Ground::new();
    created(&ground, "data", "b", "1.0.0");
    ground.write(FILE, "<<<<<<< HEAD\n");
    for _ in 0..2 {
        let listed = entries(&ground);
        assert_eq!(keys(&listed), ["data/a@1.0.0", "data/b@1.0.0"]);
        assert!(listed[0].problem.is_some() && listed[1].problem.is_none());
        assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 1);
    }
    // An unfinished merge is replaced by whoever asks for that, and by nobody else.
    let mended = lock("data", "a", "1.0.0");
    let spaces = ground.spaces();
    let error = spaces.locks().save(Space::Project, &mended, Slot::Default).expect_err("a merge");
    assert!(error.hint().is_some_and(|hint| hint.contains("`kiwi lockfile update a`")), "{error}");
    let mut writer = spaces.locks().writer(Space::Project).expect("writer");
    assert_eq!(writer.replace(&mended, Slot::Default).expect("replaced").outcome, SaveOutcome::Rewritten);
    writer.finish().expect("finished");
    assert!(entries(&ground).iter().all(|entry| entry.problem.is_none()));
    // Whatever else cannot be read is replaced by saving.
    ground.write(FILE, "{");
    assert_eq!(save(&ground.spaces(), &mended).outcome, SaveOutcome::Rewritten);
    assert!(entries(&ground).iter().all(|entry| entry.problem.is_none()));
}

#[test]
fn a_folder_in_the_place_of_a_lockfile_is_a_broken_one_and_stays() {
    let ground = Ground::new();
    created(&ground, "data", "b", "1.0.0");
    fs::create_dir_all(ground.ai(FILE)).expect("folder");
    for _ in 0..2 {
        let listed = entries(&ground);
        assert_eq!(keys(&listed), ["data/a@1.0.0", "data/b@1.0.0"]);
        let problem = listed[0].problem.as_ref().expect("broken");
        assert!(problem.message.ends_with("is a folder, not a file"), "{problem}");
    }
    let spaces = ground.spaces();
    let mut writer = spaces.locks().writer(Space::Project).expect("writer");
    let made = lock("data", "a", "1.0.0");
    let refused = [writer.save(&made, Slot::Default), writer.replace(&made, Slot::Default)];
    for error in refused.map(|refused| refused.expect_err("a folder")) {
        assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
        assert!(error.hint().is_some_and(|hint| hint.contains("move the folder away")), "{error}");
    }
    assert!(ground.ai(FILE).is_dir());
}

#[test]
fn a_lockfile_of_a_newer_kiwi_is_never_written_over() {
    let ground = Ground::new();
    let text = "{\"lockfile_version\": 7, \"chains\": []}\n";
    let path = ground.write(FILE, text);
    let error = ground
        .spaces()
        .locks()
        .save(Space::Project, &lock("data", "a", "1.0.0"), Slot::Default)
        .expect_err("newer");
    assert!(error.to_string().contains("lockfile_version 7"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("update Kiwi; the file was not changed"));
    assert_eq!(fs::read_to_string(path).expect("text"), text);
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let mut empty = lock("data", "a", "1.0.0");
    empty.resolved_chain.clear();
    let mut wrong = lock("data", "a", "1.0.0");
    wrong.chain_hash = "000000000000".into();
    let mut huge = lock("data", "a", "1.0.0");
    huge.upstream = Some("x".repeat(5 << 20).into());
    for (lock, slot) in [
        (&empty, Slot::Default),
        (&wrong, Slot::Default),
        (&wrong, Slot::Alternative),
        (&huge, Slot::Default),
    ] {
        assert!(spaces.locks().save(Space::Project, lock, slot).is_err());
    }
    assert!(!spaces.locks().any());
}
