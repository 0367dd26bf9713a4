//! Parses arguments: JSON, files, skills by name, folder or archive.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use crate::bundle;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::error::{did_you_mean, quoted};
use crate::execution::{JsonText, Workdir};
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::InputFile;
use crate::skill::{self, Language, SkillName};

/// A skill as it is named on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SkillArgument {
    /// A published skill.
    Published(SkillName),
    /// A folder or an archive.
    Path(PathBuf),
    /// Code in a file, or from standard input with `-`.
    Code(String),
}

impl SkillArgument {
    /// An argument with a slash or the ending `.zip`, and `.` and `..`, is a path; `-`, a file with the ending of a
    /// language and any other file with a slash or an ending is code; everything else must be a name.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let path = Path::new(text);
        let is_archive = text.to_ascii_lowercase().ends_with(".zip");
        let has_language = path
            .extension()
            .is_some_and(|_| skill::language_of_file(text, b"").is_some());
        // A name of a skill may contain dots, too, but rarely that of a file here.
        let is_file = || (text.contains('/') || path.extension().is_some()) && path.is_file();
        if text == "-" || has_language || (!is_archive && is_file()) {
            return Ok(Self::Code(text.to_owned()));
        }
        let is_path =
            text.contains('/') || matches!(text, "." | "..") || text.to_ascii_lowercase().ends_with(".zip");
        if is_path {
            return Ok(Self::Path(text.into()));
        }
        text.parse()
            .map(Self::Published)
            .map_err(|error| format!("{error}; write a folder with a slash, as in `./{text}`"))
    }
}

/// A zip archive, and the name for a skill that declares none.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) file: File,
    pub(crate) name: Option<SkillName>,
}

impl Archive {
    /// Opens an archive, or packs a folder.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path)
            .map_err(|error| Failure::file(path, &error).hint_if_any(similar_path(path)))?;
        let name = name_of(path);
        if metadata.is_dir() {
            return Ok(Self {
                file: pack(path)?,
                name,
            });
        }
        if !metadata.is_file() {
            return Err(Failure::refused(format!(
                "`{}` is neither a folder nor a zip archive",
                path.display()
            )));
        }
        let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
        Ok(Self { file, name })
    }
}

/// Packs a folder into an unnamed file.
pub(crate) fn pack(folder: &Path) -> Result<File> {
    let mut file =
        tempfile::tempfile().map_err(|error| Failure::internal("making a temporary file", error))?;
    bundle::pack(folder, &mut file)?;
    file.rewind()
        .map_err(|error| Failure::internal("packing", error))?;
    Ok(file)
}

/// The fallback name of a skill in this folder or archive.
fn name_of(path: &Path) -> Option<SkillName> {
    let path = std::path::absolute(path).ok()?;
    let path = path.canonicalize().unwrap_or(path);
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    SkillName::of_folder(name?.to_str()?)
}

/// Standard input can be read for one option only.
pub(crate) fn read_once(options: &[(&str, Option<&str>)]) -> Result<()> {
    let mut reading = options.iter().filter(|(_, from)| *from == Some("-"));
    let (Some((one, _)), Some((other, _))) = (reading.next(), reading.next()) else {
        return Ok(());
    };
    Err(Failure::new(
        Exit::Usage,
        format!("{one} and {other} both read standard input; give a file for one of them"),
    ))
}

/// `--input`: JSON, `@file`, or `-` for standard input.
pub(crate) fn input(text: &str) -> Result<JsonText> {
    let bytes = match (text, text.strip_prefix('@')) {
        ("-", _) => read_capped(io::stdin().lock(), limits::INPUT_BYTES_MAX)
            .map_err(|error| Failure::refused(format!("--input -: {error}")))?,
        (_, Some(path)) => read_file(Path::new(path), limits::INPUT_BYTES_MAX)?,
        (text, None) => text.as_bytes().to_vec(),
    };
    // Editors on Windows write a byte order mark, which is not JSON.
    JsonText::parse(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes)).map_err(|error| {
        let hint = "give JSON, @file, or - for standard input";
        Failure::new(Exit::Refused, format!("--input: {error}")).hint(hint)
    })
}

/// `--stdin`: text, `@file`, or `-` for standard input.
pub(crate) fn stdin(text: &str) -> Result<bytes::Bytes> {
    let bytes = match (text, text.strip_prefix('@')) {
        ("-", _) => read_capped(io::stdin().lock(), limits::INPUT_BYTES_MAX)
            .map_err(|error| Failure::refused(format!("--stdin -: {error}")))?,
        (_, Some(path)) => read_file(Path::new(path), limits::INPUT_BYTES_MAX)?,
        (text, None) => text.as_bytes().to_vec(),
    };
    Ok(bytes.into())
}

/// Code from a file or, with `-`, from standard input; `language` is that of `--lang`.
pub(crate) fn code(from: &str, language: Option<Language>) -> Result<(Language, String)> {
    let max = limits::CODE_BYTES_MAX as u64;
    let bytes = match from {
        "-" => read_capped(io::stdin().lock(), max)
            .map_err(|error| Failure::refused(format!("code of standard input: {error}")))?,
        path => read_file(Path::new(path), max).map_err(|failure| match Path::new(path).exists() {
            true => failure,
            false => failure.hint_if_any(similar_path(Path::new(path))),
        })?,
    };
    let name = quoted(from);
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::refused(format!("code of {name}: not text in UTF-8")))?;
    let told = language.or_else(|| skill::language_of_file(from, text.as_bytes()));
    let language = match (told, from) {
        (Some(language), _) => language,
        (None, "-") => Language::Python,
        (None, _) => {
            let message = format!("{name} is not .py, .js or .sh and has no `#!` line");
            return Err(Failure::new(Exit::Usage, message).hint("add --lang python, node or bash"));
        }
    };
    Ok((language, text))
}

/// `; did you mean …?` for an entry of the same folder.
pub(crate) fn similar_path(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten();
    let names: Vec<_> = entries
        .take(limits::FILES_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    did_you_mean(name, names.iter().map(String::as_str))
}

/// `--lang`.
pub(crate) fn language(text: &str) -> std::result::Result<Language, String> {
    Language::from_alias(text)
        .ok_or_else(|| format!("one of {}", Language::ALL.map(Language::as_str).join(", ")))
}

pub(crate) fn workdir(text: &str) -> std::result::Result<Workdir, String> {
    Workdir::from_name(text).ok_or_else(|| format!("one of {}", Workdir::ALL.map(Workdir::as_str).join(", ")))
}

/// `--value-file FILE|-`: text that must not appear in messages.
pub(crate) fn value(file: &str) -> Result<String> {
    // Read one byte and a line end more than allowed, so that a value that is too long is reported as such.
    let max = limits::SECRET_BYTES_MAX as u64 + 3;
    let bytes = if file == "-" {
        read_capped(io::stdin().lock(), max)
            .map_err(|error| Failure::refused(format!("--value-file -: {error}")))?
    } else {
        read_file(Path::new(file), max)?
    };
    String::from_utf8(bytes).map_err(|_| {
        Failure::refused("--value-file: the value is not UTF-8 text; encode it, for example as base64")
    })
}

/// `--file [NAME=]PATH`, each placed under its name in the working directory of the program; at most `max` bytes in all.
pub(crate) fn files(given: &[String], max: u64) -> Result<Vec<InputFile>> {
    let mut left = max;
    let mut files = Vec::with_capacity(given.len());
    for text in given {
        let (name, path) = named_path(text)?;
        let file = File::open(&path).map_err(|error| Failure::file(&path, &error))?;
        let content = read_capped(file, left).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                let message = format!("--file: the files have more than {} MiB", max / limits::MIB);
                let fits = path
                    .metadata()
                    .is_ok_and(|file| file.len() <= limits::BLOB_BYTES_MAX);
                Failure::refused(message).hint(if fits {
                    format!("pass `{}` with --blob @FILE", path.display())
                } else {
                    let mib = limits::BLOB_BYTES_MAX / limits::MIB;
                    format!(
                        "split `{}`: a blob (`--blob @FILE`) has at most {mib} MiB",
                        path.display()
                    )
                })
            }
            _ => Failure::file(&path, &error),
        })?;
        left -= content.len() as u64;
        files.push(InputFile {
            path: name,
            content: content.into(),
        });
    }
    Ok(files)
}

/// `--folder NAME`.
pub(crate) fn folders(given: &[String]) -> Vec<InputFile> {
    let folder = |name: &String| InputFile {
        path: format!("{}/", name.trim_end_matches('/')),
        content: bytes::Bytes::new(),
    };
    given.iter().map(folder).collect()
}

/// `--blob ID|@FILE`.
pub(crate) fn blobs(given: &[String]) -> Result<(Vec<Digest>, Vec<File>)> {
    let (mut ids, mut contents) = (Vec::new(), Vec::new());
    for text in given {
        match text.strip_prefix('@') {
            Some(path) => contents.push(blob_file(Path::new(path))?),
            None => ids.push(text.parse().map_err(|_| {
                let text = quoted(text);
                Failure::refused(format!(
                    "--blob: {text} is not an id (sha256:…); use @FILE for a file"
                ))
            })?),
        }
    }
    Ok((ids, contents))
}

/// A file that can be a blob.
pub(crate) fn blob_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let metadata = file.metadata().map_err(|error| Failure::file(path, &error))?;
    let max = limits::BLOB_BYTES_MAX;
    if !metadata.is_file() || metadata.len() > max {
        let message = format!(
            "blob: `{}` is not a file of at most {} MiB",
            path.display(),
            max / limits::MIB
        );
        return Err(Failure::refused(message));
    }
    Ok(file)
}

fn named_path(text: &str) -> Result<(String, PathBuf)> {
    let whole = Path::new(text);
    if let Some((name, path)) = text.split_once('=')
        && !whole.exists()
    {
        return Ok((name.to_owned(), path.into()));
    }
    let name = whole.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| {
        Failure::refused(format!(
            "--file: {} has no plain file name; write NAME=PATH",
            quoted(text)
        ))
    })?;
    Ok((name.to_owned(), whole.to_owned()))
}

pub(crate) fn read_file(path: &Path, max: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    read_capped(file, max).map_err(|error| Failure::file(path, &error))
}

fn read_capped(reader: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("more than {max} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_paths_from_skill_names() {
        for path in [".", "..", "./a", "a/b", "/a", "a.zip", "A.ZIP"] {
            assert_eq!(
                SkillArgument::parse(path),
                Ok(SkillArgument::Path(path.into())),
                "{path}"
            );
        }
        assert_eq!(
            SkillArgument::parse("a-b.c"),
            Ok(SkillArgument::Published("a-b.c".parse().unwrap()))
        );
        assert!(
            SkillArgument::parse("My_Skill")
                .unwrap_err()
                .contains("./My_Skill")
        );
    }

    #[test]
    fn reads_input_from_text_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input.json");
        std::fs::write(&path, "{\"n\": 1.10}\n").unwrap();
        assert_eq!(input("{\"n\": 1.10}").unwrap().as_str(), "{\"n\": 1.10}");
        assert_eq!(
            input(&format!("@{}", path.display())).unwrap().as_str(),
            "{\"n\": 1.10}"
        );
        for wrong in ["{", "", "@/nowhere"] {
            assert!(input(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_files_and_limits_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a=b.csv");
        std::fs::write(&path, "x").unwrap();
        let path = path.display();
        let files = files(&[path.to_string(), format!("data/c.csv={path}")], 2).unwrap();
        assert_eq!(
            files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            ["a=b.csv", "data/c.csv"]
        );
        let error = super::files(&[path.to_string(), format!("b={path}")], 1).unwrap_err();
        assert!(error.to_string().contains("--blob @FILE"), "{error}");
    }

    #[test]
    fn tells_code_from_skills() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool");
        std::fs::write(&script, "#!/usr/bin/env node\n1").unwrap();
        let script = script.to_str().unwrap();
        for text in ["-", "a.py", "./a.mjs", "A/b.sh", script] {
            assert_eq!(
                SkillArgument::parse(text),
                Ok(SkillArgument::Code(text.to_owned())),
                "{text}"
            );
        }
        assert_eq!(code(script, None).unwrap().0, Language::Node);
        assert_eq!(code(script, Some(Language::Bash)).unwrap().0, Language::Bash);
        std::fs::write(script, "1").unwrap();
        assert!(
            code(script, None)
                .unwrap_err()
                .to_string()
                .contains("--lang python")
        );
    }
}
