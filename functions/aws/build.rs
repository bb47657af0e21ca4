//! Checks `infra/sources.toml` and names the build.
//!
//! A configuration that would be refused at start is refused here, with every mistake and its
//! line. The build id is a hash of all that shapes behaviour (code, presets, dependencies,
//! configuration), so it changes when behaviour may have, and not with the machine or the hour.

use sha2::{Digest, Sha256};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

const SOURCES: &str = "infra/sources.toml";
const TEMPLATE: &str = "template.yaml";
/// Hexadecimal digits of the build id.
const ID_DIGITS: usize = 12;

fn main() -> ExitCode {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&manifest).join("../..");
    println!("cargo::rerun-if-changed={}", root.join(TEMPLATE).display());
    let read = |name: &str| fs::read_to_string(root.join(name));
    match id(&root).and_then(|id| Ok((id, read(SOURCES)?, read(TEMPLATE)?))) {
        Ok((id, sources, template)) => {
            println!("cargo::rustc-env=ONCEHOOK_BUILD_ID={id}");
            check(&sources, &config::parameters_set_by(&template))
        }
        Err(error) => refuse(&[format!("{}: {error}", root.display())]),
    }
}

/// Refuses a configuration that cannot start, such as one that asks for a parameter which the
/// template does not set: the functions would find out one by one, at INIT.
fn check(sources: &str, set: &BTreeSet<String>) -> ExitCode {
    // `${x}` may stand for a mode or for whether a source is live. Which of the two, the value
    // that fits tells.
    let asked = RefCell::new(BTreeSet::new());
    let mut flags = BTreeSet::new();
    let parse = |flags: &BTreeSet<String>| {
        let value = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            if !set.contains(name) {
                return None;
            }
            let value = if flags.contains(name) { "true" } else { "enforce" };
            Some(value.to_owned())
        };
        config::Config::parse(SOURCES, sources, &value).err().unwrap_or_default()
    };
    let mut errors = parse(&flags);
    let names = asked.borrow().clone();
    for name in names {
        let mut with = flags.clone();
        with.insert(name);
        let fewer = parse(&with);
        if fewer.len() < errors.len() {
            (flags, errors) = (with, fewer);
        }
    }
    if errors.is_empty() {
        return ExitCode::SUCCESS;
    }
    let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    for name in asked.borrow().difference(set) {
        lines.push(format!(
            "{TEMPLATE}: nothing sets ONCEHOOK_PARAM_{name}; add it under Globals, Function, Environment, \
             Variables, from a parameter of the template"
        ));
    }
    refuse(&lines)
}

fn refuse(lines: &[String]) -> ExitCode {
    for line in lines {
        println!("cargo::error={line}");
    }
    ExitCode::FAILURE
}

/// The first digits of the SHA-256 over every file that counts, by its path.
fn id(root: &Path) -> io::Result<String> {
    let mut files: BTreeSet<PathBuf> =
        ["Cargo.lock", "Cargo.toml", SOURCES].into_iter().map(PathBuf::from).collect();
    collect(root, Path::new("functions"), &mut files)?;
    let mut hash = Sha256::new();
    for file in files {
        println!("cargo::rerun-if-changed={}", root.join(&file).display());
        let bytes = fs::read(root.join(&file))?;
        let path = file.to_string_lossy().replace('\\', "/");
        for part in [path.as_bytes(), bytes.as_slice()] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
    }
    let mut digits = hex::encode(hash.finalize());
    digits.truncate(ID_DIGITS);
    Ok(digits)
}

/// Adds the Rust files and presets below a directory.
fn collect(root: &Path, directory: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    // Watching the directory too notices files that come and go.
    println!("cargo::rerun-if-changed={}", root.join(directory).display());
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        let is_preset = directory.ends_with("verifier/presets");
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs" || (kind == "toml" && is_preset))
        {
            files.insert(path);
        }
    }
    Ok(())
}
