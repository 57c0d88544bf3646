use super::*;
use crate::document::{Document, Item, KeyHash, Kind};
use crate::embed::StaticEmbedder;

fn embedder() -> Arc<dyn Embedder> {
    Arc::new(StaticEmbedder::new())
}

pub(crate) fn item(id: &str, description: &str) -> Item {
    Item {
        kind: Kind::Tool,
        id: id.into(),
        title: None,
        version: Some("1.0.0".into()),
        description: description.into(),
        parameters: vec![("path".into(), "where it lies".into())],
        signature: "(path: string)".into(),
        tags: vec![],
        category: "data/etl".into(),
        tool_type: Some("bash".into()),
        runtime: None,
        is_support: false,
        is_alone: false,
        body: String::new(),
    }
}

fn document(id: &str, stamp: u64) -> Document {
    Document {
        key: format!("tools/{id}.yaml"),
        group: "tools".into(),
        stamp,
        item: Some(item(id, "reads something")),
    }
}

fn put(index: &Index, documents: &[Document]) {
    let mut writer = index.write().unwrap();
    let prepared = index.prepare(documents).unwrap();
    writer.add(prepared).unwrap();
    writer.commit(true).unwrap();
    writer.finish().unwrap();
}

#[test]
fn what_is_put_is_known_until_it_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (index, damage) = Index::open(folder.path(), embedder()).unwrap();
    assert!(damage.is_none() && index.view().unwrap().is_empty() && !index.view().unwrap().is_complete());
    put(&index, &[document("a", 1), document("b", 1), document("a", 2)]);
    put(&index, &[Document { item: None, ..document("c", 7) }]);
    let (other, _) = Index::open(folder.path(), embedder()).unwrap();
    for index in [&index, &other] {
        let view = index.view().unwrap();
        assert_eq!(view.counts().unwrap(), Counts { items: 2, refused: 1 });
        assert_eq!(view.known().stamp(KeyHash::of("tools/a.yaml")), Some(2));
        assert!(view.is_complete());
        let known = |key: &str| view.at(KeyHash::of(key)).map(|item| item.map(|item| item.id));
        assert_eq!(known("tools/a.yaml"), Some(Some("a".to_owned())));
        assert_eq!((known("tools/c.yaml"), known("tools/d.yaml")), (Some(None), None));
    }
    let mut writer = index.write().unwrap();
    writer.forget(KeyHash::of("tools/a.yaml")).unwrap();
    writer.commit(false).unwrap();
    drop(writer);
    let view = other.view().unwrap();
    assert_eq!((view.len(), view.is_complete()), (2, false));
    assert_eq!(other.check(&mut |_| ()).unwrap(), Check { documents: 2, faults: vec![] });
}

#[test]
fn segments_that_are_merged_keep_their_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    for round in 0..12 {
        let ids = (0..20).map(|number| format!("tool_{round}_{number}"));
        let documents: Vec<Document> = ids
            .map(|id| Document {
                key: id.clone(),
                group: format!("round {round}"),
                stamp: round,
                item: Some(item(&id, &format!("the {id} of all {round}"))),
            })
            .collect();
        put(&index, &documents);
        if round > 0 {
            let mut writer = index.write().unwrap();
            writer.forget(KeyHash::of(&format!("tool_{}_3", round - 1))).unwrap();
            writer.commit(true).unwrap();
            writer.finish().unwrap();
        }
    }
    let view = index.view().unwrap();
    assert!(view.vectors.len() < 12, "{} segments", view.vectors.len());
    assert_eq!(index.check(&mut |_| ()).unwrap(), Check { documents: 12 * 20 - 11, faults: vec![] });
    assert_eq!(view.known_in("round 3").unwrap().len(), 19);
    assert_eq!(view.known_in("round 11").unwrap().len(), 20);
    assert!(view.known_in("round 12").unwrap().is_empty());
}

#[test]
fn damage_is_found_and_what_cannot_be_opened_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    put(&index, &[document("a", 1), document("b", 1)]);
    let own = index.folder().unwrap().to_owned();
    drop(index);
    let rows = || {
        let files = std::fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.extension().is_some_and(|it| it == "rows")).unwrap()
    };
    let whole = std::fs::read(rows()).unwrap();
    let mut bent = whole.clone();
    bent[40] ^= 0x40;
    std::fs::write(rows(), &bent).unwrap();
    let (index, damage) = Index::open(folder.path(), embedder()).unwrap();
    assert!(damage.is_none());
    assert_eq!(index.check(&mut |_| ()).unwrap().faults.len(), 1);
    drop(index);
    for (path, bytes) in [(rows(), whole[..100].to_vec()), (own.join("meta.json"), b"{".to_vec())] {
        std::fs::write(path, bytes).unwrap();
        let (index, damage) = Index::open(folder.path(), embedder()).unwrap();
        assert!(damage.is_some());
        assert!(index.view().unwrap().is_empty());
        put(&index, &[document("a", 1), document("b", 1)]);
        assert!(index.check(&mut |_| ()).unwrap().faults.is_empty());
    }
}

/// The files of an index, those of its segments.
fn files(own: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_stem().is_some_and(|name| name.len() == 32)).collect()
}

/// An index of some documents on disk, and where its files are.
fn on_disk() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    let documents: Vec<Document> = (0..300).map(|number| document(&format!("tool_{number}"), 1)).collect();
    put(&index, &documents);
    let own = index.folder().unwrap().to_owned();
    (folder, own)
}

#[test]
fn a_file_that_lost_its_end_is_noticed_when_the_index_is_opened() {
    let (_folder, own) = on_disk();
    for extension in files(&own).iter().filter_map(|file| file.extension()) {
        let (folder, own) = on_disk();
        let file = files(&own).into_iter().find(|file| file.extension() == Some(extension)).unwrap();
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() - whole.len() / 3]).unwrap();
        let (_, damage) = Index::open(folder.path(), embedder()).unwrap();
        assert!(damage.is_some(), "{}", file.display());
    }
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_found_by_reading_all() {
    let (_folder, own) = on_disk();
    for extension in files(&own).iter().filter_map(|file| file.extension()) {
        let (folder, own) = on_disk();
        let (index, _) = Index::open(folder.path(), embedder()).unwrap();
        index.check_files().unwrap();
        let file = files(&own).into_iter().find(|file| file.extension() == Some(extension)).unwrap();
        let mut bent = std::fs::read(&file).unwrap();
        bent[0] ^= 1;
        std::fs::write(&file, bent).unwrap();
        let damage = index.check_files().unwrap_err();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(matches!(&damage, SearchError::Damaged { why, .. } if why.contains(name)), "{damage}");
    }
}

#[test]
fn a_damaged_index_is_not_changed() {
    for extension in ["idx", "term", "fieldnorm", "fast"] {
        let (folder, own) = on_disk();
        let (index, _) = Index::open(folder.path(), embedder()).unwrap();
        let file = files(&own).into_iter().find(|file| file.extension().is_some_and(|it| it == extension));
        let file = file.unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        let most = bytes.len() / 2;
        bytes[..most].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let mut writer = index.write().unwrap();
        let refused = writer.forget(KeyHash::of("tools/tool_7.yaml")).unwrap_err();
        assert!(matches!(refused, SearchError::Damaged { .. }), "{extension}: {refused}");
    }
    let (folder, _) = on_disk();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    put(&index, &[document("tool_7", 2)]);
    assert_eq!(index.check(&mut |_| ()).unwrap(), Check { documents: 300, faults: vec![] });
}

#[test]
fn a_lock_that_cannot_be_had_is_told_in_words() {
    let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let told = |error| judged(Path::new("there"), TantivyError::LockFailure(error, None)).to_string();
    let shown = told(LockError::IoError(Arc::new(denied())));
    assert_eq!(shown, "the search index at `there` cannot be used: permission denied");
    assert!(told(LockError::LockBusy).ends_with("another process writes to it"));
}

#[test]
fn what_an_older_version_left_goes_and_what_other_embedders_have_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    let own = index.folder().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let older = own.replace(&format!("v{FORMAT}-"), "v1-");
    for name in [older.as_str(), "v1-another-embedder"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let there = |name: &str| folder.path().join(name).exists();
    // While an older Kiwi writes there, it is left alone, and nobody waits.
    let writing = turn(&folder.path().join(&older)).unwrap();
    Index::remove_older(folder.path(), index.embedder().as_ref());
    assert!(there(&older));
    drop(writing);
    Index::remove_older(&folder.path().join("nowhere"), index.embedder().as_ref());
    Index::remove_older(folder.path(), index.embedder().as_ref());
    assert_eq!((there(&own), there(&older), there("v1-another-embedder")), (true, false, true));
}

#[test]
fn files_of_a_commit_that_was_killed_are_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), embedder()).unwrap();
    put(&index, &[document("a", 1), document("b", 1)]);
    let own = index.folder().unwrap().to_owned();
    // A commit writes which documents are gone before it names them in `meta.json`. The next one counts on from there,
    // and so comes to the same names.
    let meta = index.tantivy.load_metas().unwrap();
    let segment = meta.segments[0].id().uuid_string();
    let left: Vec<String> = (1..9).map(|more| format!("{segment}.{}.del", meta.opstamp + more)).collect();
    let managed = own.join(".managed.json");
    let mut names: Vec<String> = serde_json::from_slice(&std::fs::read(&managed).unwrap()).unwrap();
    names.extend(left.clone());
    std::fs::write(&managed, serde_json::to_vec(&names).unwrap()).unwrap();
    for name in &left {
        std::fs::write(own.join(name), b"half").unwrap();
    }
    drop(index);
    let (index, damage) = Index::open(folder.path(), embedder()).unwrap();
    assert!(damage.is_none());
    put(&index, &[document("a", 2)]);
    assert_eq!(index.check(&mut |_| ()).unwrap(), Check { documents: 2, faults: vec![] });
}
