//! Installed packages: written whole, and never quietly something else afterwards.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, find, id, manifest, set_executable, version};
use kiwi_chain::{Identity, Tool};
use kiwi_model::{Digest, ErrorKind, Explain as _, FileEntry, Space};
use kiwi_space::{Install, Installed, NewFile, SpaceError, Spaces, Staged, package_of};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const AT: &str = "2026-01-24T12:00:00Z";

fn files(text: &str) -> Vec<NewFile<'_>> {
    let file = |path, bytes, is_executable| NewFile { path, bytes, is_executable };
    vec![
        file("tool.yaml", text.as_bytes(), false),
        file("main.sh", b"echo hello\n", true),
        file("data/deep/table.csv", b"a,b\n1,2\n", false),
    ]
}

fn install_into(
    spaces: &Spaces,
    space: Space,
    name: &str,
    number: &str,
    files: &[NewFile<'_>],
) -> Result<Installed, SpaceError> {
    let install = Install {
        id: &id(name),
        version: &version(number),
        files: Staged::Memory(files),
        source: "registry.example",
        at: AT,
        expected: None,
    };
    spaces.packages(space)?.install(&install)
}

fn installed(ground: &Ground) -> Installed {
    install_into(&ground.spaces(), Space::Project, "pack", "1.0.0", &files(&manifest("pack", "1.0.0")))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn record(ground: &Ground) -> PathBuf {
    ground.ai("packages/.records/pack@1.0.0.json")
}

fn note(ground: &Ground) -> PathBuf {
    ground
        .spaces()
        .packages(Space::Project)
        .expect("packages")
        .note_file(&id("pack"), &version("1.0.0"))
        .expect("note")
}

fn agrees(tool: &Tool) -> bool {
    matches!(&tool.identity, Identity::Recorded { integrity, .. } if *integrity == tool.integrity)
}

/// The package is refused, and the file that changed can be named.
#[track_caller]
fn changed(ground: &Ground, file: &str) {
    match ground.find("pack") {
        Err(fault) => {
            assert_eq!(fault.kind, ErrorKind::IntegrityMismatch, "{fault}");
            assert!(fault.message.contains(file), "{fault} does not name {file}");
            assert!(fault.message.starts_with("integrity mismatch for pack@1.0.0: "), "{fault}");
        }
        Ok(found) => {
            let tool = &found[0];
            let Identity::Recorded { integrity, files } = &tool.identity else {
                panic!("{:?}", tool.identity)
            };
            assert_ne!(*integrity, tool.integrity);
            let now: Vec<FileEntry> = tool.files.iter().map(|file| file.entry.clone()).collect();
            let changed: Vec<String> =
                kiwi_chain::changes(files, &now).iter().map(ToString::to_string).collect();
            assert!(changed.iter().any(|change| change.contains(file)), "{changed:?} does not name {file}");
        }
    }
}

#[test]
fn an_installed_package_is_what_its_record_says() {
    let ground = Ground::new();
    let Installed { tool, folder, record: written, warnings } = installed(&ground);
    assert_eq!(folder, ground.ai("packages/pack/1.0.0"));
    assert!(
        agrees(&tool) && warnings.is_empty() && tool.warnings.is_empty(),
        "{warnings:?} {:?}",
        tool.warnings
    );
    assert_eq!((tool.category.as_str(), tool.space), ("", Space::Project));
    let text = fs::read_to_string(record(&ground)).expect("record");
    let json: serde_json::Value = serde_json::from_str(&text).expect("json");
    assert_eq!(json["tool_id"], "pack");
    assert_eq!(
        (json["version"].as_str(), json["source"].as_str(), json["installed_at"].as_str()),
        (Some("1.0.0"), Some("registry.example"), Some(AT))
    );
    assert_eq!(json["integrity"], tool.integrity.to_string());
    let csv = &json["files"].as_array().expect("files")[0];
    assert_eq!(
        (csv["path"].as_str(), csv["size"].as_u64(), csv["is_executable"].as_bool()),
        (Some("data/deep/table.csv"), Some(8), Some(false))
    );
    assert_eq!(csv["sha256"], Digest::of(b"a,b\n1,2\n").to_string());
    assert_eq!(fs::read_to_string(note(&ground)).expect("note"), text);
    assert_eq!(written.integrity, tool.integrity);
    assert!(agrees(&ground.one("pack")));
    let left: Vec<_> = fs::read_dir(ground.ai("packages"))
        .expect("packages")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".staging")), "{left:?}");
}

#[test]
fn the_same_files_have_the_same_integrity_wherever_they_lie() {
    let ground = Ground::new();
    let tool = installed(&ground).tool;
    let from = ground.path().join("staged");
    fs::create_dir_all(&from).expect("folder");
    for file in files(&manifest("pack", "1.0.0")) {
        let path = common::write(&from.join(file.path), file.bytes);
        set_executable(&path, file.is_executable);
    }
    fs::write(from.join("kiwi.sig"), "signature").expect("signature");
    let spaces = ground.spaces();
    let install = Install {
        id: &id("pack"),
        version: &version("1.0.0"),
        files: Staged::Folder(&from),
        source: "x",
        at: AT,
        expected: Some(tool.integrity),
    };
    let user = spaces
        .packages(Space::User)
        .expect("packages")
        .install(&install)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(user.tool.integrity, tool.integrity);
    assert!(user.folder.join("kiwi.sig").is_file());
    assert!(ground.user_ai("packages/.noted/user/pack@1.0.0.json").is_file());
    fs::create_dir_all(ground.ai("tools/x")).expect("folder");
    fs::rename(&from, ground.ai("tools/x/pack")).expect("rename");
    fs::remove_dir_all(ground.ai("packages/pack")).expect("remove");
    assert_eq!(ground.one("pack").integrity, tool.integrity);
}

#[test]
fn any_changed_byte_shows_and_names_its_file() {
    let ground = Ground::new();
    let folder = installed(&ground).folder;
    for name in ["tool.yaml", "main.sh", "data/deep/table.csv"] {
        let path = folder.join(name);
        let good = fs::read(&path).expect("file");
        for at in 0..good.len() {
            for flip in [0x01, 0x20, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                fs::write(&path, &bad).expect("write");
                changed(&ground, name);
            }
        }
        fs::write(&path, &good[..good.len() - 1]).expect("write");
        changed(&ground, name);
        fs::write(&path, [good.as_slice(), b"\n"].concat()).expect("write");
        changed(&ground, name);
        fs::write(&path, b"").expect("write");
        changed(&ground, name);
        fs::write(&path, &good).expect("write");
        assert!(agrees(&ground.one("pack")));
        set_executable(&path, name != "main.sh");
        changed(&ground, name);
        set_executable(&path, name == "main.sh");
        fs::remove_file(&path).expect("remove");
        changed(&ground, name);
        fs::write(&path, &good).expect("write");
        set_executable(&path, name == "main.sh");
    }
    for extra in ["extra", "data/extra.py", "__pycache__/x.pyc", ".hidden"] {
        let path = common::write(&folder.join(extra), "x");
        changed(&ground, extra);
        fs::remove_file(path).expect("remove");
    }
    assert!(agrees(&ground.one("pack")));
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).expect("link");
    changed(&ground, "link");
    fs::remove_file(folder.join("link")).expect("remove");
    // Another package, whole and valid, under this one's name.
    fs::write(folder.join("tool.yaml"), manifest("pack", "1.0.0") + "title: other\n").expect("write");
    changed(&ground, "tool.yaml");
    fs::write(folder.join("tool.yaml"), manifest("pack", "2.0.0")).expect("write");
    changed(&ground, "tool.yaml");
}

#[test]
fn a_record_that_is_gone_or_edited_is_not_trusted() {
    let ground = Ground::new();
    let tool = installed(&ground).tool;
    let good = fs::read_to_string(record(&ground)).expect("record");
    let noted = note(&ground);
    let mismatch = |what: &str| {
        let fault = ground.fault("pack");
        assert_eq!(fault.kind, ErrorKind::IntegrityMismatch, "{what}: {fault}");
        assert!(fault.message.contains("pack@1.0.0"), "{what}: {fault}");
    };
    fs::remove_file(record(&ground)).expect("remove");
    assert_eq!(ground.one("pack").identity, Identity::RecordMissing { noted: tool.integrity });
    fs::remove_dir_all(ground.ai("packages/.records")).expect("remove");
    assert_eq!(ground.one("pack").identity, Identity::RecordMissing { noted: tool.integrity });
    fs::create_dir_all(ground.ai("packages/.records")).expect("folder");
    for (bad, what) in [
        (good.replace(&tool.integrity.to_string(), &Digest::of(b"other").to_string()), "another integrity"),
        (good.replace("table.csv", "chair.csv"), "another file"),
        (good.replace("\"is_executable\": true", "\"is_executable\": false"), "another mode"),
        (good.replace("\"pack\"", "\"other\""), "another tool"),
        (good.replace("1.0.0", "1.0.1"), "another version"),
        (good[..good.len() / 2].to_owned(), "half a record"),
        (String::new(), "an empty record"),
        ("null".to_owned(), "no record at all"),
    ] {
        assert_ne!(bad, good, "{what}");
        fs::write(record(&ground), bad).expect("write");
        mismatch(what);
    }
    fs::remove_file(record(&ground)).expect("remove");
    fs::create_dir(record(&ground)).expect("folder");
    mismatch("a folder in its place");
    fs::remove_dir(record(&ground)).expect("remove");
    std::os::unix::fs::symlink("/dev/null", record(&ground)).expect("link");
    mismatch("a link out of the space");
    fs::remove_file(record(&ground)).expect("remove");
    // Where it came from is not part of who it is.
    fs::write(record(&ground), good.replace("registry.example", "mirror.example")).expect("write");
    assert!(agrees(&ground.one("pack")));
    fs::write(&noted, "{").expect("write");
    mismatch("a broken note");
    // Without a note the record alone counts: this is a project somebody cloned.
    fs::remove_file(&noted).expect("remove");
    fs::write(record(&ground), &good).expect("write");
    assert!(agrees(&ground.one("pack")));
    // The files and the record changed together, while the note is still there.
    installed(&ground);
    let path = ground.ai("packages/pack/1.0.0/main.sh");
    fs::write(&path, "rm -rf /\n").expect("write");
    let forged =
        good.replace(&Digest::of(b"echo hello\n").to_string(), &Digest::of(b"rm -rf /\n").to_string());
    fs::write(record(&ground), forged).expect("write");
    mismatch("forged");
}

#[test]
fn a_package_put_there_by_hand_is_said_to_be() {
    let ground = Ground::new();
    ground.write("packages/pack/1.0.0/tool.yaml", manifest("pack", "1.0.0"));
    let tool = ground.one("pack");
    assert_eq!(tool.identity, Identity::Computed);
    assert!(tool.warnings.iter().any(|warning| warning.contains("by hand")), "{:?}", tool.warnings);
    // Folder and manifest must agree.
    ground.write("packages/pack/1.1.0/tool.yaml", manifest("pack", "1.0.0"));
    let fault = ground.fault("pack");
    assert_eq!(fault.kind, ErrorKind::InvalidManifest);
    assert!(fault.message.contains("`1.1.0`") && fault.message.contains("`1.0.0`"), "{fault}");
    // Other names are no versions: not found, but reported.
    fs::remove_dir_all(ground.ai("packages/pack/1.1.0")).expect("remove");
    ground.write("packages/pack/latest/tool.yaml", manifest("pack", "1.0.0"));
    ground.write("packages/Other/1.0.0/tool.yaml", manifest("other", "1.0.0"));
    ground.one("pack");
    let broken: Vec<_> = ground
        .listed()
        .into_iter()
        .filter(|listed| listed.result.is_err())
        .map(|listed| listed.id_hint)
        .collect();
    assert_eq!(broken, ["Other", "latest"]);
    // A package brings its shared modules along.
    ground.write("tools/lib/helper.py", "");
    ground.write("packages/pack/1.0.0/tool.yaml", manifest("pack", "1.0.0") + "lib_imports: [helper]\n");
    assert_eq!(ground.fault("pack").kind, ErrorKind::InvalidManifest);
    ground.write("packages/pack/1.0.0/lib/helper.py", "");
    ground.one("pack");
}

#[test]
fn versions_live_side_by_side_and_one_broken_one_hides_no_other() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    for number in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
        install_into(&spaces, Space::Project, "pack", number, &files(&manifest("pack", number)))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    fs::write(ground.ai("packages/pack/1.0.0/tool.yaml"), "broken").expect("write");
    let found = common::candidates(&spaces, "pack", Space::Project).expect("candidates");
    assert_eq!(
        found.iter().map(|candidate| candidate.version.to_string()).collect::<Vec<_>>(),
        ["1.0.0", "1.1.0", "2.0.0-rc.1"]
    );
    let loaded: Vec<bool> =
        found.iter().map(|candidate| kiwi_chain::Catalog::load(&spaces, candidate).is_ok()).collect();
    assert_eq!(loaded, [false, true, true]);
    spaces
        .packages(Space::Project)
        .expect("packages")
        .remove(&id("pack"), &version("1.0.0"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(!record(&ground).exists() && !note(&ground).exists());
    assert_eq!(find(&spaces, "pack", Space::Project).expect("found").len(), 2);
    // Removing twice is removing once.
    spaces
        .packages(Space::Project)
        .expect("packages")
        .remove(&id("pack"), &version("1.0.0"))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_cannot_be_installed_leaves_nothing_behind() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let text = manifest("pack", "1.0.0");
    let file = |path, is_executable| NewFile { path, bytes: b"x", is_executable };
    for path in ["../x", "/etc/x", "a/../../x", "", ".", "a//b", "a\0b", "main.sh"] {
        let mut files = files(&text);
        files.push(file(path, false));
        let error = install_into(&spaces, Space::Project, "pack", "1.0.0", &files).expect_err(path);
        assert_eq!(error.kind(), ErrorKind::InvalidManifest, "{error}");
    }
    let error = |name: &str, number: &str, files: &[NewFile<'_>]| {
        install_into(&spaces, Space::Project, name, number, files).expect_err("refused")
    };
    assert_eq!(error("pack", "2.0.0", &files(&text)).kind(), ErrorKind::InvalidManifest);
    assert_eq!(error("other", "1.0.0", &files(&text)).kind(), ErrorKind::InvalidManifest);
    assert_eq!(
        error("filesystem.x", "1.0.0", &files(&manifest("filesystem.x", "1.0.0"))).kind(),
        ErrorKind::SpaceViolation
    );
    assert_eq!(
        error("pack", "1.0.0", &files("tool_id: pack\nversion: \"1.0.0\"\ntool_type: primitive\n")).kind(),
        ErrorKind::InvalidManifest
    );
    assert_eq!(error("pack", "1.0.0", &[file("x", false)]).kind(), ErrorKind::InvalidManifest);
    let wrong = Install {
        id: &id("pack"),
        version: &version("1.0.0"),
        files: Staged::Memory(&files(&text)),
        source: "x",
        at: AT,
        expected: Some(Digest::of(b"")),
    };
    assert_eq!(
        spaces.packages(Space::Project).expect("packages").install(&wrong).expect_err("refused").kind(),
        ErrorKind::IntegrityMismatch
    );
    let left: Vec<_> = fs::read_dir(ground.ai("packages"))
        .expect("packages")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!ground.user_ai("packages").exists());
    assert!(ground.find("pack").expect("lookup").is_empty());
    assert!(spaces.packages(Space::System).is_err());
}

#[test]
fn installing_again_replaces() {
    let ground = Ground::new();
    let first = installed(&ground).tool;
    fs::write(ground.ai("packages/pack/1.0.0/main.sh"), "tampered").expect("write");
    fs::write(ground.ai("packages/pack/1.0.0/extra"), "x").expect("write");
    let again = installed(&ground).tool;
    assert!(agrees(&again) && again.integrity == first.integrity);
    let other = files(&(manifest("pack", "1.0.0") + "title: other\n"))
        .into_iter()
        .map(|file| (file.path.to_owned(), file.bytes.to_vec(), file.is_executable))
        .collect::<Vec<_>>();
    let other: Vec<NewFile<'_>> = other
        .iter()
        .map(|(path, bytes, is_executable)| NewFile { path, bytes, is_executable: *is_executable })
        .collect();
    let third = install_into(&ground.spaces(), Space::Project, "pack", "1.0.0", &other)
        .unwrap_or_else(|error| panic!("{error}"))
        .tool;
    assert!(agrees(&third) && third.integrity != first.integrity);
    assert!(agrees(&ground.one("pack")));
}

#[test]
fn two_installers_at_once_leave_one_whole_package() {
    let ground = Ground::new();
    let texts: Vec<String> =
        (0..8).map(|i| manifest("pack", "1.0.0") + &format!("title: number {i}\n")).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            let ground = &ground;
            scope.spawn(move || {
                let spaces = ground.spaces();
                for _ in 0..5 {
                    let installed = install_into(&spaces, Space::Project, "pack", "1.0.0", &files(text));
                    let installed = installed.unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(installed.tool.integrity, installed.record.integrity);
                }
            });
        }
    });
    let tool: Arc<Tool> = ground.one("pack");
    assert!(agrees(&tool), "{:?}", tool.identity);
    let left: Vec<_> = fs::read_dir(ground.ai("packages"))
        .expect("packages")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_crash_between_the_steps_never_leaves_a_package_that_passes() {
    // The steps of an install, stopped after each: note, record, folder.
    let ground = Ground::new();
    installed(&ground);
    let (text, noted) = (fs::read(record(&ground)).expect("record"), note(&ground));
    let other = Ground::new();
    let other_note = other
        .spaces()
        .packages(Space::Project)
        .expect("packages")
        .note_file(&id("pack"), &version("1.0.0"))
        .expect("note");
    common::write(&other_note, &text);
    assert!(other.find("pack").expect("lookup").is_empty(), "only noted: not there");
    common::write(&record(&other), &text);
    assert!(other.find("pack").expect("lookup").is_empty(), "noted and recorded: not there");
    // An old folder under a new note is refused, whichever of the two came first.
    other.write("packages/pack/1.0.0/tool.yaml", manifest("pack", "1.0.0"));
    assert!(!agrees(&other.one("pack")));
    fs::remove_file(record(&other)).expect("remove");
    assert!(!agrees(&other.one("pack")));
    assert!(noted.is_file());
}

#[test]
fn folders_that_lead_out_of_the_space_are_not_written() {
    let ground = Ground::new();
    let elsewhere = ground.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("folder");
    let refused = |link: &str| {
        let text = manifest("pack", "1.0.0");
        let error = install_into(&ground.spaces(), Space::Project, "pack", "1.0.0", &files(&text));
        assert_eq!(error.expect_err(link).kind(), ErrorKind::InvalidManifest, "{link}");
        assert_eq!(fs::read_dir(&elsewhere).expect("folder").count(), 0, "{link}");
        fs::remove_file(ground.ai(link)).expect("remove");
    };
    std::os::unix::fs::symlink(&elsewhere, ground.ai("packages")).expect("link");
    refused("packages");
    fs::create_dir(ground.ai("packages")).expect("folder");
    for link in ["packages/.records", "packages/pack"] {
        std::os::unix::fs::symlink(&elsewhere, ground.ai(link)).expect("link");
        refused(link);
    }
    installed(&ground);
}

#[test]
fn a_tool_of_one_file_is_the_same_tool_as_a_package() {
    let ground = Ground::new();
    let script = "# kiwi: version: \"1.2.0\"\n# kiwi: description: Says it\necho it\n";
    ground.write("tools/say/told.sh", script);
    let own = ground.one("told");
    let files = [NewFile { path: "told.sh", bytes: script.as_bytes(), is_executable: false }];
    let read = package_of(&id("told"), &version("1.2.0"), &files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((read.integrity, &read.document), (own.integrity, &own.document));
    fs::remove_file(ground.ai("tools/say/told.sh")).expect("removed");
    let installed = install_into(&ground.spaces(), Space::Project, "told", "1.2.0", &files)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((installed.tool.integrity, installed.tool.form), (own.integrity, own.form));
    assert!(installed.tool.path.ends_with("packages/told/1.2.0/told.sh"), "{}", installed.tool.path);
    let found = ground.one("told");
    assert!(agrees(&found) && found.integrity == own.integrity);
    for (id_, number, path) in [("told", "1.3.0", "told.sh"), ("told", "1.2.0", "other.sh")] {
        let files = [NewFile { path, ..files[0] }];
        assert!(package_of(&id(id_), &version(number), &files).is_err(), "{number} {path}");
    }
}
