//! What a stranger could put into a space. Nothing here may block, leave the space, or break another tool.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, find, manifest, paths};
use kiwi_model::{Content, Digest, ErrorKind, Space};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().expect("folder")).expect("folder");
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from(0o644)).expect("fifo");
}

/// The tool is refused as a bad manifest whose message names `named`, and the tool beside it still works.
#[track_caller]
fn refused(ground: &Ground, id: &str, named: &str) {
    let fault = ground.fault(id);
    assert_eq!(fault.kind, ErrorKind::InvalidManifest, "{fault}");
    assert!(fault.message.contains(named), "{fault}");
    ground.write("tools/beside.sh", "echo\n");
    ground.one("beside");
    assert!(ground.listed().iter().any(|listed| listed.id_hint == "beside" && listed.result.is_ok()));
    assert!(ground.listed().iter().any(|listed| listed.id_hint == id && listed.result.is_err()));
}

#[test]
fn symlinks_that_leave_the_space() {
    let ground = Ground::new();
    let outside = common::write(&ground.project().join("outside.sh"), "echo\n");
    fs::create_dir_all(ground.ai("tools/pack")).expect("folder");
    for target in
        [outside.clone(), "../../outside.sh".into(), "/etc/passwd".into(), "/proc/self/environ".into()]
    {
        let _ = fs::remove_file(ground.ai("tools/out.sh"));
        symlink(&target, ground.ai("tools/out.sh")).expect("link");
        refused(&ground, "out", "leaves its space");
    }
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    symlink("../../../outside.sh", ground.ai("tools/pack/main.sh")).expect("link");
    refused(&ground, "pack", "tools/pack/main.sh");
    fs::remove_file(ground.ai("tools/pack/main.sh")).expect("remove");
    symlink("/", ground.ai("tools/pack/all")).expect("link");
    refused(&ground, "pack", "leaves its space");
    // The manifest itself, a whole tool, a whole tree.
    fs::remove_dir_all(ground.ai("tools/pack")).expect("remove");
    common::write(&ground.project().join("elsewhere/tool.yaml"), manifest("pack", "1.0.0"));
    symlink("../../elsewhere", ground.ai("tools/pack")).expect("link");
    refused(&ground, "pack", "leaves its space");
    fs::remove_file(ground.ai("tools/pack")).expect("remove");
    fs::create_dir(ground.ai("tools/pack")).expect("folder");
    symlink("../../../elsewhere/tool.yaml", ground.ai("tools/pack/tool.yaml")).expect("link");
    refused(&ground, "pack", "leaves its space");
    symlink(ground.project().join("elsewhere"), ground.ai("scripts")).expect("link");
    assert!(
        ground.listed().iter().any(|listed| listed.path.ends_with(".ai/scripts") && listed.result.is_err())
    );
    ground.one("beside");
}

#[test]
fn symlinks_inside_the_space_are_followed_and_hashed_by_content() {
    let ground = Ground::new();
    ground.write("tools/lib/impl.sh", "echo inside\n");
    symlink("lib/impl.sh", ground.ai("tools/rel.sh")).expect("link");
    symlink(ground.ai("tools/lib/impl.sh"), ground.ai("tools/abs.sh")).expect("link");
    for id in ["rel", "abs"] {
        assert_eq!(ground.one(id).files[0].entry.sha256, Digest::of(b"echo inside\n"));
    }
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    ground.write("tools/lib/shared/a.txt", "a");
    symlink("../lib/shared", ground.ai("tools/pack/shared")).expect("link");
    symlink("../lib/impl.sh", ground.ai("tools/pack/main.sh")).expect("link");
    assert_eq!(paths(&ground.one("pack")), ["main.sh", "shared/a.txt", "tool.yaml"]);
    // A linked folder is a tool if it holds a manifest, never a category.
    symlink("pack", ground.ai("tools/linked")).expect("link");
    assert_eq!(ground.fault("linked").kind, ErrorKind::InvalidManifest, "its manifest gives another id");
    ground.write("tools/real/cat/inner.sh", "echo\n");
    symlink("real", ground.ai("tools/alias")).expect("link");
    assert_eq!(ground.one("inner").category, "real/cat");
    assert!(ground.find("alias").expect("lookup").is_empty());
    assert!(ground.listed().iter().any(|listed| listed.id_hint == "alias" && listed.result.is_err()));
}

#[test]
fn links_in_circles_and_links_to_nowhere() {
    let ground = Ground::new();
    symlink("loop.sh", ground.ai("tools/loop.sh")).expect("link");
    refused(&ground, "loop", "leads back to itself");
    symlink("nothing.sh", ground.ai("tools/lost.sh")).expect("link");
    refused(&ground, "lost", "leads nowhere");
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    symlink(".", ground.ai("tools/pack/again")).expect("link");
    refused(&ground, "pack", "leads back to itself");
    symlink("..", ground.ai("tools/up")).expect("link");
    ground.one("beside");
}

#[test]
fn special_files_are_refused_without_waiting() {
    let ground = Ground::new();
    fifo(&ground.ai("tools/pipe.sh"));
    refused(&ground, "pipe", "neither a file nor a folder");
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    fifo(&ground.ai("tools/pack/data"));
    refused(&ground, "pack", "tools/pack/data");
    fs::remove_file(ground.ai("tools/pack/data")).expect("remove");
    let _socket = std::os::unix::net::UnixListener::bind(ground.ai("tools/pack/s")).expect("socket");
    refused(&ground, "pack", "tools/pack/s");
    let _other = std::os::unix::net::UnixListener::bind(ground.ai("tools/sock.sh")).expect("socket");
    refused(&ground, "sock", "neither a file nor a folder");
    fifo(&ground.ai("tools/manifest/tool.yaml"));
    refused(&ground, "manifest", "neither a file nor a folder");
    fifo(&ground.ai("tools/linked/target"));
    symlink("linked/target", ground.ai("tools/via.sh")).expect("link");
    refused(&ground, "via", "neither a file nor a folder");
    fifo(&ground.ai("config/kiwi.toml"));
    assert!(ground.spaces().config().is_err());
    fs::create_dir_all(ground.ai("tools/dir.sh")).expect("folder");
    ground.one("beside");
}

#[test]
fn names_that_are_not_text() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    let name = OsStr::from_bytes(b"bad\xff.txt");
    fs::write(ground.ai("tools/pack").join(name), "x").expect("file");
    refused(&ground, "pack", "not UTF-8");
    fs::write(ground.ai("tools").join(OsStr::from_bytes(b"bad\xff.py")), "x").expect("file");
    fs::create_dir(ground.ai("tools").join(OsStr::from_bytes(b"cat\xff"))).expect("folder");
    fs::create_dir_all(ground.ai("packages").join(OsStr::from_bytes(b"pk\xff"))).expect("folder");
    let odd = ground.listed().into_iter().filter(|listed| listed.result.is_err()).count();
    assert_eq!(odd, 4);
    ground.one("beside");
    // A name that would move the cursor is shown escaped.
    ground.write("tools/pack/\u{1b}[2J.txt", "x");
    fs::remove_file(ground.ai("tools/pack").join(name)).expect("remove");
    ground.one("pack");
    fifo(&ground.ai("tools/pack/\u{1b}[31m"));
    assert!(!ground.fault("pack").message.contains('\u{1b}'));
}

#[test]
fn large_files_stay_on_disk_and_their_change_shows() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    let mut big = vec![7_u8; 6 << 20];
    let path = ground.write("tools/pack/big.bin", &big);
    for i in 0..4 {
        ground.write(&format!("tools/pack/mid{i}.bin"), vec![i; 2 << 20]);
    }
    let spaces = ground.spaces();
    let load = || find(&spaces, "pack", Space::Project).expect("found").remove(0);
    let tool = load();
    let file = tool.file("big.bin").expect("file");
    assert!(matches!(&file.content, Content::OnDisk(at) if *at == path), "{:?}", file.content);
    assert_eq!(file.entry.sha256, Digest::of(&big));
    for i in 0..4 {
        let file = tool.file(&format!("mid{i}.bin")).expect("file");
        assert!(matches!(&file.content, Content::Bytes(bytes) if Digest::of(bytes) == file.entry.sha256));
        assert_eq!(file.entry.sha256, Digest::of(&vec![i; 2 << 20]));
    }
    // Same length, straight after being hashed: times alone would not tell.
    for round in 0..20 {
        big[round] ^= 1;
        fs::write(&path, &big).expect("write");
        assert_eq!(load().file("big.bin").expect("file").entry.sha256, Digest::of(&big), "round {round}");
    }
    // Once it has settled the digest is remembered, until it changes again.
    std::thread::sleep(std::time::Duration::from_millis(60));
    load();
    let before = spaces.counters()["large_file_hits"];
    load();
    assert!(spaces.counters()["large_file_hits"] > before);
    big[0] ^= 1;
    fs::write(&path, &big).expect("write");
    assert_eq!(load().file("big.bin").expect("file").entry.sha256, Digest::of(&big));
}

#[test]
fn more_than_a_tool_may_have() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    let sparse = fs::File::create(ground.ai("tools/pack/huge")).expect("file");
    sparse.set_len((1 << 30) + 1).expect("length");
    refused(&ground, "pack", "more than 1073741824 bytes");
    fs::remove_file(ground.ai("tools/pack/huge")).expect("remove");
    for i in 0..20_001 {
        fs::File::create(ground.ai(&format!("tools/pack/{i}"))).expect("file");
    }
    refused(&ground, "pack", "more than 20000 files");
    let script = fs::File::create(ground.ai("tools/long.py")).expect("file");
    script.set_len(5 << 20).expect("length");
    refused(&ground, "long", "more than 4194304 bytes");
    let yaml = fs::File::create(ground.ai("tools/wide.yaml")).expect("file");
    yaml.set_len((1 << 20) + 1).expect("length");
    refused(&ground, "wide", "wide.yaml");
    let mut deep = ground.ai("tools/nested");
    common::write(&deep.join("tool.yaml"), manifest("nested", "1.0.0"));
    for _ in 0..70 {
        deep.push("d");
    }
    common::write(&deep.join("x"), "x");
    refused(&ground, "nested", "nested too deeply");
}

#[test]
fn a_manifest_is_kept_however_much_stands_before_it() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    for i in 0..12 {
        ground.write(&format!("tools/pack/a{i}.bin"), vec![0; 3 << 20]);
    }
    let tool = ground.one("pack");
    let kept: usize = tool
        .files
        .iter()
        .map(|file| if let Content::Bytes(bytes) = &file.content { bytes.len() } else { 0 })
        .sum();
    assert!(kept <= (32 << 20) + 4096, "{kept}");
}

#[test]
fn categories_nested_without_end_are_left_alone() {
    let ground = Ground::new();
    let mut deep = ground.ai("tools");
    for _ in 0..40 {
        deep.push("c");
    }
    common::write(&deep.join("far.sh"), "echo\n");
    ground.write("tools/near.sh", "echo\n");
    ground.one("near");
    assert!(ground.find("far").expect("lookup").is_empty());
    assert!(ground.listed().iter().any(|listed| {
        listed.result.as_ref().is_err_and(|fault| fault.message.contains("nested too deeply"))
    }));
}
