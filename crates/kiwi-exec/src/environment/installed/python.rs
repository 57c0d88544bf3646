//! The packages of a virtual environment.

use kiwi_model::Pin;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::super::contents::Contents;
use super::pin;

/// Files of a `dist-info` folder that tell about the installation and not about the package.
const NOTES: [&str; 6] =
    ["INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"];

/// Every package that says of itself that it is installed.
pub fn list(folder: &Path) -> io::Result<Vec<Pin>> {
    let mut found = Vec::new();
    for version in fs::read_dir(folder.join("lib"))? {
        let packages = version?.path().join("site-packages");
        for entry in fs::read_dir(&packages).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "dist-info")
                && let Some((name, version)) = name_and_version(&fs::read(path.join("METADATA"))?)
            {
                let contents = contents(folder, &packages, &path)?;
                found.push(pin(&name, &version, contents.digest())?);
            }
        }
    }
    Ok(found)
}

/// The files the package's record lists, less those that differ from one installation to the next.
fn contents(folder: &Path, packages: &Path, dist_info: &Path) -> io::Result<Contents> {
    let record = fs::read(dist_info.join("RECORD"))?;
    let mut contents = Contents::default();
    for listed in String::from_utf8_lossy(&record).lines().filter_map(first_field) {
        let Some(file) = inside(folder, packages, &listed) else { continue };
        if file.is_file() && is_of_the_package(folder, dist_info, &file)? {
            contents.add(listed, &file)?;
        }
    }
    Ok(contents)
}

/// Installers compile, write scripts that name the interpreter's path, and leave notes.
fn is_of_the_package(folder: &Path, dist_info: &Path, file: &Path) -> io::Result<bool> {
    let has_parent = |name: &str| file.parent().and_then(Path::file_name).is_some_and(|own| own == name);
    let is_note = file.parent() == Some(dist_info)
        && NOTES.iter().any(|name| file.file_name().is_some_and(|own| own == *name));
    if is_note || has_parent("__pycache__") {
        return Ok(false);
    }
    // A program is as it came; a script is as the installer wrote it.
    Ok(!file.starts_with(folder.join("bin")) || !is_script(file)?)
}

fn is_script(file: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(file)?.take(2).read_to_end(&mut start)?;
    Ok(start == b"#!")
}

/// Where a listed file lies. A record may point out of its folder, but not out of the environment.
fn inside(folder: &Path, packages: &Path, listed: &str) -> Option<PathBuf> {
    let mut path = packages.to_owned();
    for component in Path::new(listed).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    path.starts_with(folder).then_some(path)
}

/// The first field of a line of comma-separated values.
fn first_field(line: &str) -> Option<String> {
    let Some(mut rest) = line.strip_prefix('"') else {
        return line.split(',').next().filter(|field| !field.is_empty()).map(str::to_owned);
    };
    let mut field = String::new();
    loop {
        let (part, behind) = rest.split_once('"')?;
        field.push_str(part);
        // Two quotes stand for one.
        let Some(more) = behind.strip_prefix('"') else { return Some(field) };
        field.push('"');
        rest = more;
    }
}

fn name_and_version(metadata: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(metadata);
    let field = |name: &str| {
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name))
    };
    Some((field("Name: ")?.trim().to_owned(), field("Version: ")?.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_up_to_the_description() {
        let metadata = b"Metadata-Version: 2.1\nName: Six\nVersion: 1.16.0\n\nVersion: 9\n";
        assert_eq!(name_and_version(metadata), Some(("Six".into(), "1.16.0".into())));
        assert_eq!(name_and_version(b"Name: x\n\nVersion: 1"), None);
    }

    #[test]
    fn a_record_names_files_of_the_environment_only() {
        for (line, field) in [
            ("six.py,sha256=x,3", Some("six.py")),
            ("\"a,b \"\"c\"\".py\",,", Some("a,b \"c\".py")),
            ("\"open", None),
            ("", None),
        ] {
            assert_eq!(first_field(line).as_deref(), field, "{line}");
        }
        let (folder, packages) = (Path::new("/e"), Path::new("/e/lib/python3/site-packages"));
        let found = |listed| inside(folder, packages, listed);
        assert_eq!(found("x/../six.py"), Some(packages.join("six.py")));
        assert_eq!(found("../../../share/x"), Some("/e/share/x".into()));
        assert_eq!((found("../../../../x"), found("/x")), (None, None));
    }

    #[test]
    fn what_an_installer_adds_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        let packages = home.path().join("lib/python3/site-packages");
        let counts = |file: &str, content: &str| {
            let file = inside(home.path(), &packages, file).unwrap();
            let dist_info = packages.join("x-1.dist-info");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            is_of_the_package(home.path(), &dist_info, &file).unwrap()
        };
        assert!(counts("x.py", "#!python"));
        assert!(counts("x.pyc", ""), "a module without a source");
        assert!(counts("x-1.dist-info/METADATA", ""));
        assert!(counts("x/RECORD", ""));
        assert!(counts("../../../bin/program", "\u{7f}ELF"));
        assert!(!counts("../../../bin/script", "#!/x/bin/python"));
        assert!(!counts("__pycache__/x.cpython-311.pyc", ""));
        assert!(!counts("x-1.dist-info/RECORD", ""));
    }
}
