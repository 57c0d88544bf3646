//! The packages of a virtual environment.

use kiwi_model::Pin;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::super::contents::Contents;
use super::pin;

/// Files of a `dist-info` folder that tell about the installation and not about the package.
const OF_THE_INSTALLER: [&str; 6] =
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
        if is_of_the_package(folder, dist_info, &file) && fs::symlink_metadata(&file).is_ok() {
            contents.add(listed, &file)?;
        }
    }
    Ok(contents)
}

/// Scripts name the interpreter's path; compiled files hold times; some files name the installer.
fn is_of_the_package(folder: &Path, dist_info: &Path, file: &Path) -> bool {
    let is_compiled = file.extension().is_some_and(|extension| extension == "pyc");
    let is_script = file.starts_with(folder.join("bin"));
    let is_installers = file.parent() == Some(dist_info)
        && OF_THE_INSTALLER.iter().any(|name| file.file_name().is_some_and(|own| own == *name));
    !is_compiled && !is_script && !is_installers
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
        let packages = Path::new("/e/lib/python3/site-packages");
        let counts = |file: &str| {
            let dist_info = packages.join("x-1.dist-info");
            is_of_the_package(Path::new("/e"), &dist_info, &packages.join(file))
        };
        assert!(["x.py", "x-1.dist-info/METADATA", "x/RECORD"].into_iter().all(counts));
        assert!(!["__pycache__/x.cpython-311.pyc", "x-1.dist-info/RECORD"].into_iter().any(counts));
    }
}
