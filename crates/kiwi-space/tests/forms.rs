//! Every form a tool can have, and what is refused.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, candidates, find, id, manifest, paths, set_executable};
use kiwi_chain::{Catalog as _, Form, Identity};
use kiwi_model::{Content, Digest, ErrorKind, FileEntry, Space, integrity_of};
use kiwi_space::{Locations, Spaces};
use serde_json::json;

#[test]
fn a_folder_with_a_manifest() {
    let ground = Ground::new();
    ground.write("tools/data/etl/cleaner/tool.yaml", manifest("cleaner", "2.1.0"));
    set_executable(&ground.write("tools/data/etl/cleaner/main.sh", "echo\n"), true);
    ground.write("tools/data/etl/cleaner/deep/er/table.csv", "a,b\n");
    ground.write("tools/data/etl/cleaner/deep/kiwi.sig", "an ordinary file");
    let integrity = ground.one("cleaner").integrity;
    let item = ground.ai("tools/data/etl/cleaner");
    let (file, _) = ground.spaces().sign(Space::Project, &item, &integrity.to_string()).expect("signature");
    assert_eq!(file, item.join("kiwi.sig"));
    let tool = ground.one("cleaner");
    assert_eq!(tool.integrity, integrity);
    assert_eq!(paths(&tool), ["deep/er/table.csv", "deep/kiwi.sig", "main.sh", "tool.yaml"]);
    assert_eq!((tool.category.as_str(), tool.form, tool.space), ("data/etl", Form::Folder, Space::Project));
    assert_eq!(tool.path, ground.ai("tools/data/etl/cleaner/tool.yaml").display().to_string());
    assert!(tool.file("main.sh").is_some_and(|file| file.entry.is_executable));
    assert_eq!(tool.identity, Identity::Computed);
    assert!(tool.warnings.is_empty(), "{:?}", tool.warnings);
    let entries: Vec<FileEntry> = tool.files.iter().map(|file| file.entry.clone()).collect();
    let expect =
        integrity_of(&id("cleaner"), &common::version("2.1.0"), &tool.document, &entries).expect("integrity");
    assert_eq!(tool.integrity, expect);
    for file in &tool.files {
        let Content::Bytes(bytes) = &file.content else { panic!("small files are kept") };
        assert_eq!(Digest::of(bytes), file.entry.sha256);
    }
}

#[test]
fn one_file_tools_of_every_extension() {
    let ground = Ground::new();
    for (name, text, executor) in [
        ("a.py", "print('hi')\n", "python_runtime"),
        ("b.sh", "echo hi\n", "bash_runtime"),
        ("c.js", "console.log(1)\n", "node_runtime"),
        ("d.mjs", "console.log(1)\n", "node_runtime"),
        ("e.ts", "console.log(1)\n", "node_runtime"),
    ] {
        ground.write(&format!("tools/x/{name}"), text);
        let tool = ground.one(&name[..1]);
        assert_eq!(paths(&tool), [name]);
        assert_eq!(
            (tool.form, tool.document.clone(), tool.category.as_str()),
            (Form::OneFile, json!({}), "x")
        );
        assert_eq!(tool.manifest.version.to_string(), "0.0.0");
        assert_eq!(tool.warnings.len(), 1, "the version is assumed: {:?}", tool.warnings);
        assert_eq!(tool.manifest.executor.as_ref().map(|executor| executor.id.as_str()), Some(executor));
        assert_eq!(tool.manifest.entrypoint.as_deref(), Some(name));
    }
    ground.write("tools/f.yaml", manifest("f", "1.0.0"));
    ground.write("tools/g.yml", manifest("g", "1.0.0"));
    ground.write("tools/ns.tool.yaml", manifest("ns.tool", "1.0.0"));
    for (name, file) in [("f", "f.yaml"), ("g", "g.yml"), ("ns.tool", "ns.tool.yaml")] {
        let tool = ground.one(name);
        assert_eq!((paths(&tool), tool.category.as_str()), (vec![file], ""));
        assert!(tool.warnings.is_empty(), "{:?}", tool.warnings);
    }
}

#[test]
fn metadata_in_comments() {
    let ground = Ground::new();
    ground.write("tools/net/ping.sh", "#!/bin/sh\n# A tool.\n# kiwi: version: \"1.2.3\"\n# kiwi: description: Ping a host\n# kiwi: parameters:\n# kiwi:   type: object\n\n# kiwi: tags: [net]\necho\n# kiwi: version: \"9.9.9\"\n");
    let tool = ground.one("ping");
    assert_eq!(
        tool.document,
        json!({"version": "1.2.3", "description": "Ping a host", "parameters": {"type": "object"}, "tags": ["net"]})
    );
    ground.write("tools/web.ts", "// kiwi: version: \"2.0.0\"\n//kiwi: tool_type: node\nconsole.log(1)\n");
    assert_eq!(ground.one("web").document, json!({"version": "2.0.0", "tool_type": "node"}));

    ground.write("tools/bad.sh", "#!/bin/sh\n# hello\n# kiwi: version: \"1.0.0\"\n# kiwi: tags: 12:30\n");
    let fault = ground.fault("bad");
    assert_eq!(fault.kind, ErrorKind::InvalidManifest);
    assert!(fault.message.contains("bad.sh:4:15: "), "{fault}");
    ground.write("tools/bad.sh", "# kiwi: version: 1.0\n");
    assert!(ground.fault("bad").message.contains("bad.sh:1:18: "), "{}", ground.fault("bad"));
    ground.write("tools/bad.sh", "#!/bin/sh\n# kiwi:\n#   version: 1.0.0\n");
    let fault = ground.fault("bad");
    assert!(fault.message.contains("bad.sh:2:8: nothing stands behind `kiwi:`"), "{fault}");
    assert!(fault.hint.unwrap().contains("# kiwi: version: 1.0.0"));
}

#[test]
fn scripts_are_read_like_tools() {
    let ground = Ground::new();
    ground.write("scripts/old/report.py", "__version__ = '1.0.0'\n");
    ground.write("scripts/lib/shared.py", "x = 1\n");
    assert_eq!(ground.one("report").category, "old");
    assert!(ground.find("shared").expect("lookup").is_empty());
}

#[test]
fn what_is_not_a_tool_is_passed_over() {
    let ground = Ground::new();
    for path in [
        "tools/lib/helper.py",
        "tools/_private.py",
        "tools/.hidden.py",
        "tools/x/__init__.py",
        "tools/README.md",
        "tools/.git/a.py",
        "tools/node_modules/b.js",
        "tools/types.d.ts",
    ] {
        ground.write(path, "x\n");
    }
    assert!(ground.listed().is_empty(), "{:?}", ground.listed());
    // A folder called `lib` deeper down is a category like any other.
    ground.write("tools/x/lib/deep.sh", "echo\n");
    assert_eq!(ground.one("deep").category, "x/lib");
}

#[test]
fn a_declared_category_wins_and_a_difference_is_said() {
    let ground = Ground::new();
    ground.write("tools/data/a.yaml", manifest("a", "1.0.0") + "category: reports\n");
    let tool = ground.one("a");
    assert_eq!(tool.category, "reports");
    assert!(
        tool.warnings.iter().any(|warning| warning.contains("`reports`") && warning.contains("`data`")),
        "{:?}",
        tool.warnings
    );
    ground.write("tools/data/a.yaml", manifest("a", "1.0.0") + "category: data\n");
    assert!(ground.one("a").warnings.is_empty());
}

#[test]
fn shared_modules_are_hashed_into_a_tool() {
    let ground = Ground::new();
    let tool_yaml = manifest("uses", "1.0.0") + "lib_imports: [helper, shapes, pkg.inner, data/list.txt]\n";
    ground.write("tools/uses/tool.yaml", tool_yaml);
    ground.write("tools/uses/main.sh", "echo\n");
    let fault = ground.fault("uses");
    assert_eq!(fault.kind, ErrorKind::InvalidManifest);
    assert!(fault.message.contains("`helper`"), "{fault}");
    ground.write("tools/lib/helper.py", "a = 1\n");
    ground.write("tools/lib/shapes/__init__.py", "");
    ground.write("tools/lib/shapes/round.py", "");
    ground.write("tools/lib/pkg/__init__.py", "");
    ground.write("tools/lib/pkg/inner.py", "");
    ground.write("tools/lib/pkg/other.py", "");
    ground.write("tools/lib/data/list.txt", "");
    let spaces = ground.spaces();
    let first = find(&spaces, "uses", Space::Project).expect("found").remove(0);
    assert_eq!(
        paths(&first),
        [
            "main.sh",
            "tool.yaml",
            "lib/data/list.txt",
            "lib/helper.py",
            "lib/pkg/__init__.py",
            "lib/pkg/inner.py",
            "lib/shapes/__init__.py",
            "lib/shapes/round.py"
        ]
    );
    // The same answer from memory, another one as soon as a module changes.
    assert_eq!(find(&spaces, "uses", Space::Project).expect("found")[0].integrity, first.integrity);
    ground.write("tools/lib/helper.py", "a = 2\n");
    let second = find(&spaces, "uses", Space::Project).expect("found").remove(0);
    assert_ne!(first.integrity, second.integrity);
    ground.write("tools/lib/helper.py", "a = 1\n");
    assert_eq!(find(&spaces, "uses", Space::Project).expect("found")[0].integrity, first.integrity);
    // A tool that brings the module along has the same files, and so the same integrity.
    for name in [
        "data/list.txt",
        "helper.py",
        "pkg/__init__.py",
        "pkg/inner.py",
        "shapes/__init__.py",
        "shapes/round.py",
    ] {
        ground.write(
            &format!("tools/uses/lib/{name}"),
            std::fs::read(ground.ai(&format!("tools/lib/{name}"))).expect("module"),
        );
    }
    assert_eq!(ground.one("uses").integrity, first.integrity);

    for name in ["../x", "/etc/passwd", "a\\0b", ""] {
        ground.write(
            "tools/uses/tool.yaml",
            manifest("uses", "1.0.0") + &format!("lib_imports: [\"{name}\"]\n"),
        );
        assert_eq!(ground.fault("uses").kind, ErrorKind::InvalidManifest, "{name}");
    }
    ground.write("tools/py.py", "print()\n");
    ground.write("tools/sh.sh", "# kiwi: lib_imports: [helper]\n");
    assert_eq!(paths(&ground.one("sh")), ["sh.sh", "lib/helper.py"]);
}

#[test]
fn the_system_keeps_its_names_and_its_primitives() {
    let ground = Ground::new();
    ground.write("tools/filesystem.mine.sh", "echo\n");
    let fault = ground.fault("filesystem.mine");
    assert_eq!(fault.kind, ErrorKind::SpaceViolation);
    assert!(fault.message.contains("belongs to the system"), "{fault}");
    ground.write("tools/x/prim.yaml", "tool_id: prim\nversion: \"1.0.0\"\ntool_type: primitive\n");
    assert_eq!(ground.fault("prim").kind, ErrorKind::InvalidManifest);
    // Both are listed as broken, and break nothing else.
    ground.write("tools/good.sh", "echo\n");
    let kinds: Vec<_> = ground
        .listed()
        .into_iter()
        .map(|listed| (listed.id_hint, listed.result.map(|_| ()).map_err(|fault| fault.kind)))
        .collect();
    assert_eq!(
        kinds,
        [
            ("filesystem.mine".to_owned(), Err(ErrorKind::SpaceViolation)),
            ("good".to_owned(), Ok(())),
            ("prim".to_owned(), Err(ErrorKind::InvalidManifest)),
        ]
    );
}

#[test]
fn two_items_with_one_identity_are_ambiguous() {
    let ground = Ground::new();
    let a = ground.write("tools/a/twin.yaml", manifest("twin", "1.0.0"));
    let b = ground.write("tools/b/twin/tool.yaml", manifest("twin", "1.0.0"));
    let fault = ground.fault("twin");
    assert_eq!(fault.kind, ErrorKind::Ambiguous);
    for path in [&a, &b] {
        assert!(fault.message.contains(&path.display().to_string()), "{fault}");
    }
    let listed = ground.listed();
    assert_eq!(listed.len(), 2);
    assert!(
        listed
            .iter()
            .all(|listed| listed.result.as_ref().is_err_and(|fault| fault.kind == ErrorKind::Ambiguous))
    );
    ground.write("tools/a/twin.yaml", manifest("twin", "2.0.0"));
    let versions: Vec<String> =
        ground.find("twin").expect("found").iter().map(|tool| tool.manifest.version.to_string()).collect();
    assert_eq!(versions, ["1.0.0", "2.0.0"]);
    ground.write("packages/twin/2.0.0/tool.yaml", manifest("twin", "2.0.0"));
    assert_eq!(ground.fault("twin").kind, ErrorKind::Ambiguous);
}

#[test]
fn broken_manifests_break_only_themselves() {
    let ground = Ground::new();
    ground.write("tools/good.sh", "echo\n");
    ground.write("tools/bad.yaml", "tool_id: bad\nversion: 1.0\n");
    ground.write("tools/other.yaml", manifest("another", "1.0.0"));
    ground.write("tools/My-Tool.py", "print()\n");
    let oks: Vec<_> =
        ground.listed().into_iter().map(|listed| (listed.id_hint, listed.result.is_ok())).collect();
    assert_eq!(
        oks,
        [
            ("My-Tool.py".to_owned(), false),
            ("bad".to_owned(), false),
            ("good".to_owned(), true),
            ("other".to_owned(), false)
        ]
    );
    assert!(ground.one("good").warnings.len() == 1);
    let fault = ground.fault("other");
    assert!(fault.message.contains("`tool_id` is `another` but the file says `other`"), "{fault}");
    assert!(ground.fault("bad").message.contains("bad.yaml:2:10: "), "{}", ground.fault("bad"));
}

#[test]
fn spaces_are_looked_up_one_by_one_and_shadowing_is_told() {
    let ground = Ground::new();
    ground.write("tools/dup.yaml", manifest("dup", "2.0.0"));
    let below = ground.write_user("tools/dup.yaml", manifest("dup", "1.0.0"));
    ground.write_user("tools/mine.sh", "echo\n");
    let spaces = ground.spaces();
    let tool = find(&spaces, "dup", Space::Project).expect("found").remove(0);
    let shadowed = spaces.shadowed(&tool);
    assert_eq!(shadowed.len(), 1);
    assert_eq!(
        (shadowed[0].space, shadowed[0].version.to_string(), shadowed[0].path.clone()),
        (Space::User, "1.0.0".into(), below.display().to_string())
    );
    assert!(find(&spaces, "mine", Space::Project).expect("lookup").is_empty());
    assert_eq!(find(&spaces, "mine", Space::User).expect("lookup").len(), 1);
    let ids = spaces.ids();
    for name in ["dup", "mine"] {
        assert!(ids.contains(&id(name)), "{ids:?}");
    }
    assert!(ids.is_sorted());
}

#[test]
fn the_project_is_the_nearest_folder_that_is_not_the_users() {
    let ground = Ground::new();
    let open = |project: Option<&str>, cwd: &str, user: &str| {
        Spaces::open(Locations {
            project: project.map(Into::into),
            cwd: ground.path().join(cwd),
            user: Some(ground.path().join(user)),
        })
    };
    std::fs::create_dir_all(ground.project().join("src/deep")).expect("folder");
    std::fs::create_dir_all(ground.user().join("work")).expect("folder");
    assert_eq!(
        open(None, "project/src/deep", "home").expect("spaces").project_root(),
        Some(ground.project().as_path())
    );
    // The user's own `.ai` is no project, wherever one stands below it.
    let spaces = open(None, "home/work", "home").expect("spaces");
    assert_eq!(spaces.project_root(), None);
    assert_eq!(spaces.state_root().expect("state"), ground.user_ai(""));
    assert!(spaces.list(Space::Project).is_empty());
    assert_eq!(
        open(Some("../project"), "home", "home").expect("spaces").project_root(),
        Some(ground.project().as_path())
    );
    let error = open(Some("src"), "project", "home").expect_err("no .ai");
    assert_eq!(kiwi_model::Explain::kind(&error), ErrorKind::NotFound);
    assert!(kiwi_model::Explain::hint(&error).is_some_and(|hint| hint.contains("kiwi init")));
    assert!(open(Some("."), "home", "home").is_err());
    // Without any space there is nowhere for state to go, and everything else still answers.
    let nowhere = Spaces::open(Locations { project: None, cwd: "/".into(), user: None }).expect("spaces");
    assert!(nowhere.state_root().is_err() && nowhere.list(Space::User).is_empty());
    assert!(candidates(&nowhere, "x", Space::User).expect("lookup").is_empty());
    // A user space that does not exist yet is empty.
    let fresh = open(None, "project", "nobody").expect("spaces");
    assert!(fresh.list(Space::User).is_empty());
}

#[test]
fn caches_answer_the_second_time_and_never_a_stale_answer() {
    let ground = Ground::new();
    ground.write("tools/t.py", "__version__ = '1.0.0'\n");
    let spaces = ground.spaces();
    let first = find(&spaces, "t", Space::Project).expect("found").remove(0);
    let again = find(&spaces, "t", Space::Project).expect("found").remove(0);
    assert!(std::sync::Arc::ptr_eq(&first, &again));
    assert_eq!((spaces.counters()["tool_hits"], spaces.counters()["tool_misses"]), (1, 1));
    for round in 0..200 {
        let text = format!("__version__ = '1.0.{round}'\n");
        ground.write("tools/t.py", &text);
        let tool = find(&spaces, "t", Space::Project).expect("found").remove(0);
        assert_eq!(tool.manifest.version.to_string(), format!("1.0.{round}"));
        assert_eq!(tool.files[0].entry.sha256, Digest::of(text.as_bytes()));
    }
    set_executable(&ground.ai("tools/t.py"), true);
    assert!(find(&spaces, "t", Space::Project).expect("found")[0].files[0].entry.is_executable);
}

#[test]
fn spaces_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Spaces>();
}
