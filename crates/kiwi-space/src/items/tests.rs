use super::*;
use crate::spaces::Locations;
use std::os::unix::fs::symlink;
use std::path::Path;

const DIRECTIVE: &str = "# Deploy\n\n```xml\n<directive name=\"deploy\" version=\"1.2.0\">\n  <metadata><description>Deploy\n  it</description><category>ops</category></metadata>\n  <inputs><input name=\"branch\" type=\"string\" required=\"true\">Which branch</input></inputs>\n  <process/>\n</directive>\n```\n";
const KNOWLEDGE: &str = "---\nid: colours\ntitle: About colours\nversion: \"1.0.0\"\ntags: [red, blue]\nreferences: [other]\n---\n# Colours\nRed is warm.\n";

fn spaces(folder: &Path, files: &[(&str, &str)]) -> Spaces {
    let project = folder.join("project");
    std::fs::create_dir_all(project.join(".ai")).expect("folder");
    for (path, text) in files {
        let path = project.join(".ai").join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(path, text).expect("file");
    }
    Spaces::open(Locations { project: Some(project.clone()), cwd: project, user: Some(folder.join("home")) })
        .expect("spaces")
}

#[test]
fn directives_and_knowledge_say_who_they_are() {
    let folder = tempfile::tempdir().expect("folder");
    let skill = "---\nname: review\ndescription: Review code\n---\nRead it.\n";
    let files = [
        ("directives/ops/deploy.md", DIRECTIVE),
        ("directives/code/review/SKILL.md", skill),
        ("knowledge/art/colours.md", KNOWLEDGE),
        ("knowledge/plain.md", "# Plain\nNo header.\n"),
    ];
    let spaces = spaces(folder.path(), &files);
    let deploy = spaces.text(TextKind::Directive, "deploy", None).expect("directive");
    assert_eq!(
        (deploy.version.as_deref(), deploy.description.as_deref()),
        (Some("1.2.0"), Some("Deploy it"))
    );
    assert_eq!((deploy.category.as_str(), deploy.inputs.len()), ("ops", 1));
    assert_eq!(deploy.sha256, Digest::of(DIRECTIVE.as_bytes()));
    let input = deploy.inputs.first().expect("input");
    assert_eq!(
        (input.name.as_str(), input.required, input.description.as_str()),
        ("branch", true, "Which branch")
    );
    let review = spaces.text(TextKind::Directive, "review", None).expect("skill");
    assert_eq!((review.category.as_str(), review.description.as_deref()), ("code", Some("Review code")));
    let colours = spaces.text(TextKind::Knowledge, "colours", None).expect("knowledge");
    assert_eq!((colours.tags.len(), colours.category.as_str()), (2, "art"));
    assert_eq!(colours.metadata["references"], serde_json::json!(["other"]));
    let plain = spaces.text(TextKind::Knowledge, "plain", None).expect("knowledge");
    assert_eq!(plain.description.as_deref(), Some("Plain"));
    assert!(spaces.text(TextKind::Knowledge, "colours", Some(Space::User)).is_err());
}

#[test]
fn what_is_broken_is_told_and_breaks_nothing_else() {
    let folder = tempfile::tempdir().expect("folder");
    let bomb =
        "<!DOCTYPE d [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><directive name=\"bomb\">&b;</directive>";
    let inner = "<directive name=\"inner\"><!DOCTYPE d [<!ENTITY a \"x\">]>&a;</directive>";
    let files = [
        ("directives/good.md", &DIRECTIVE.replace("deploy", "good") as &str),
        ("directives/other.md", DIRECTIVE),
        ("directives/bomb.md", bomb),
        ("directives/inner.md", inner),
        ("directives/none.md", "nothing here"),
        ("directives/open.md", "<directive name=\"open\">"),
        ("knowledge/open.md", "---\nid: open\n"),
        ("knowledge/list.md", "---\n- a\n---\n"),
        ("knowledge/named.md", "---\nid: else\n---\n"),
        ("knowledge/a/twin.md", "one"),
        ("knowledge/b/twin.md", "two"),
        ("knowledge/large.md", &"x".repeat((1 << 20) + 1)),
    ];
    let spaces = spaces(folder.path(), &files);
    let ai = folder.path().join("project/.ai");
    std::fs::write(folder.path().join("secret.md"), "secret").expect("file");
    symlink(folder.path().join("secret.md"), ai.join("knowledge/secret.md")).expect("link");
    std::fs::write(ai.join("knowledge/binary.md"), [0xff, 0xfe]).expect("file");
    let listed = |kind| -> Vec<(String, Option<ErrorKind>)> {
        let all = spaces.texts(kind, Space::Project).into_iter();
        all.map(|it| (it.id_hint, it.result.err().map(|fault| fault.kind))).collect()
    };
    let invalid = Some(ErrorKind::InvalidManifest);
    let name = |name: &str| name.to_owned();
    assert_eq!(
        listed(TextKind::Directive),
        [
            // The document type stands outside the block and is not read.
            (name("bomb"), invalid),
            (name("good"), None),
            (name("inner"), invalid),
            (name("none"), invalid),
            (name("open"), invalid),
            (name("other"), invalid),
        ]
    );
    for (id, kind) in listed(TextKind::Knowledge) {
        assert!(kind.is_some(), "{id}");
    }
    assert_eq!(
        spaces.text(TextKind::Knowledge, "twin", None).map_err(|it| it.kind),
        Err(ErrorKind::Ambiguous)
    );
    assert!(spaces.text(TextKind::Knowledge, "secret", None).is_err());
}
