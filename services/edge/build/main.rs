//! Renders the user documents of `docs` as the pages below `/guide`, with `/tables.sql` and `/llms.txt`. Writes them to
//! `OUT_DIR` with the list `guide.rs`, which `src/route/guide.rs` includes.

mod document;
mod layout;
mod navigation;
mod targets;

use std::{
    env,
    error::Error,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

use document::{INDEX, Source};
use layout::{Assets, Layout};
use navigation::{Navigation, is_served};
use targets::Targets;

/// A file that the edge serves: its path without the first slash, and its content.
struct Served {
    path: String,
    content: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let edge = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let docs = edge.join("../../docs");
    for watched in
        [&docs, &edge.join("build"), &edge.join("assets/guide"), &edge.join("console/src/icon.svg")]
    {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let mut sources = Vec::new();
    collect(&docs, "", &mut sources)?;
    let navigation = Navigation::of(&mut sources);
    let mut pictures = pictures(&docs)?;
    let targets = Targets::new(&sources, pictures.iter().map(|picture| picture.path.as_str()));
    let style = immutable("style.css", fs::read(edge.join("assets/guide/style.css"))?);
    let icon = immutable("icon.svg", fs::read(edge.join("console/src/icon.svg"))?);
    let assets = Assets { style: style.path.clone(), icon: icon.path.clone() };
    let layout = Layout { navigation: &navigation, sources: &sources, targets: &targets, assets: &assets };
    let pages: Vec<(String, String)> =
        sources.iter().map(|source| (format!("guide/{}", source.name), layout.page(source))).collect();
    pictures.retain(|picture| {
        let name = picture.path.rsplit('/').next().unwrap_or_default();
        pages.iter().any(|(_, page)| page.contains(name))
    });
    let mut files = vec![style, icon];
    files.append(&mut pictures);
    files.extend(pages.into_iter().map(|(path, page)| Served { path, content: page.into_bytes() }));
    files.push(Served { path: "tables.sql".to_owned(), content: fs::read(docs.join("tables.sql"))? });
    files.push(Served { path: "llms.txt".to_owned(), content: navigation.llms(&sources).into_bytes() });
    write(&files)?;
    Ok(())
}

/// Reads the served documents of a folder and its subfolders, in the order of their names.
fn collect(docs: &Path, folder: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    let mut entries = fs::read_dir(docs.join(folder))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let file = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            collect(docs, &format!("{folder}{file}/"), sources)?;
        } else if let Some(stem) = file.strip_suffix(".md") {
            let name = format!("{folder}{stem}");
            let name = if name == "README" { INDEX.to_owned() } else { name };
            if is_served(&name) {
                sources.push(Source::new(name, fs::read_to_string(entry.path())?));
            }
        }
    }
    Ok(())
}

/// The pictures of the documents.
fn pictures(docs: &Path) -> io::Result<Vec<Served>> {
    let mut pictures = Vec::new();
    for entry in fs::read_dir(docs.join("pictures")).into_iter().flatten() {
        let entry = entry?;
        let name = format!("pictures/{}", entry.file_name().to_string_lossy());
        if targets::is_picture(&name) {
            pictures.push(immutable(&name, fs::read(entry.path())?));
        }
    }
    pictures.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(pictures)
}

/// A file whose path contains a digest of its content: `style.css` becomes `guide/style.<16 hex digits>.css`.
fn immutable(name: &str, content: Vec<u8>) -> Served {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    Served { path: format!("guide/{stem}.{:016x}.{ending}", hasher.finish()), content }
}

fn write(files: &[Served]) -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut list = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let content = out.join(format!("guide.{number}"));
        fs::write(&content, &file.content)?;
        list += &format!("    ({:?}, include_bytes!({content:?})),\n", format!("/{}", file.path));
    }
    list += "]\n";
    fs::write(out.join("guide.rs"), list)?;
    Ok(())
}
