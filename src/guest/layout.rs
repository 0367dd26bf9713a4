//! Lays out the writable part of the sandbox before the program starts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use tokio::io::AsyncReadExt as _;

use crate::guest::runtime;
use crate::guest::wire::{self, Input, InputPlace};
use crate::limits;

/// The input as a file, and the program's standard input.
pub(super) const INPUT: &str = "/sandbox/input.json";
/// The program's standard input if it is not the input; deleted once it is opened.
pub(super) const STDIN: &str = "/sandbox/.stdin";
/// The called code.
pub(super) const CODE: &str = "/sandbox/code";
/// Results of the program.
pub(super) const OUT: &str = "/sandbox/out";
/// Blobs of a request.
const BLOBS: &str = "/blobs";
/// Working directory.
pub(super) const WORKSPACE: &str = "/workspace";

/// Creates the folders of every program.
pub(super) fn lay_out(skill: Option<&str>) -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.mode(0o700).recursive(true);
    for folder in ["/sandbox/out/files", "/sandbox/out/blobs"] {
        private.create(folder)?;
    }
    runtime::write()?;
    if let Some(name) = skill {
        let scripts = Path::new("/skills").join(name).join("scripts");
        if scripts.is_dir() {
            symlink(scripts, "/sandbox/scripts")?;
        }
    }
    Ok(())
}

/// Creates the input file for a pre-started interpreter, which opens it before the content arrives.
pub(super) fn reserve_input() -> io::Result<File> {
    create(&InputPlace::Json)?;
    File::open(INPUT)
}

/// Writes all inputs; each write is limited by the size of its tmpfs.
///
/// The inner error is a message for the caller about the first input that cannot be placed; the others are received
/// and dropped.
pub(super) async fn receive_inputs(stream: &mut wire::Stream) -> io::Result<Result<(), String>> {
    let mut placed = Ok(());
    let mut buffer = vec![0; 16 * 1024];
    while let Some(input) = wire::receive::<_, Input>(stream, wire::FRAME_TO_GUEST_BYTES_MAX).await? {
        let refused = |error: io::Error| match &input.place {
            InputPlace::Json => format!("the input of {} bytes cannot be placed: {error}", input.size),
            InputPlace::Stdin => format!(
                "the standard input of {} bytes cannot be placed: {error}",
                input.size
            ),
            InputPlace::Blob(name) => format!(
                "the blob {name} of {} bytes cannot be placed in {BLOBS}: {error}",
                input.size
            ),
            InputPlace::Code => format!("the code of {} bytes cannot be placed: {error}", input.size),
            InputPlace::Folder(path) => {
                format!("the folder `{path}` cannot be created in {WORKSPACE}: {error}")
            }
            InputPlace::Workspace(path) => format!(
                "the file `{path}` of {} bytes cannot be placed in {WORKSPACE}: {error}",
                input.size
            ),
        };
        if let InputPlace::Folder(path) = &input.place {
            let created = workspace_path(path).and_then(fs::create_dir_all);
            placed = placed.and(created.map_err(refused));
            continue;
        }
        let mut file = create(&input.place);
        let mut left = input.size;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let read = stream.read(&mut buffer[..wanted]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file = file.and_then(|mut file| file.write_all(&buffer[..read]).map(|()| file));
            left -= read as u64;
        }
        placed = placed.and(file.map(drop).map_err(refused));
    }
    Ok(placed)
}

fn create(place: &InputPlace) -> io::Result<File> {
    let path = match place {
        InputPlace::Json => PathBuf::from(INPUT),
        InputPlace::Stdin => PathBuf::from(STDIN),
        InputPlace::Code => PathBuf::from(CODE),
        InputPlace::Workspace(relative) | InputPlace::Folder(relative) => workspace_path(relative)?,
        InputPlace::Blob(name) => blob_path(name)?,
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .write(true)
        // A pre-started interpreter has the input file open already.
        .create(*place == InputPlace::Json)
        .create_new(*place != InputPlace::Json)
        .mode(if matches!(place, InputPlace::Blob(_)) {
            0o444
        } else {
            0o600
        })
        .open(path)
}

/// `/blobs` plus a name that is a digest.
fn blob_path(name: &str) -> io::Result<PathBuf> {
    if is_digest(name) {
        Ok(Path::new(BLOBS).join(name))
    } else {
        Err(wire::invalid("a blob's name is no digest"))
    }
}

/// Whether `name` is 64 lower-case hex digits.
pub(super) fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `/workspace` plus a path that cannot leave it.
fn workspace_path(relative: &str) -> io::Result<PathBuf> {
    let path = Path::new(relative);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !relative.is_empty() && relative.len() <= limits::ARCHIVE_PATH_BYTES_MAX {
        Ok(Path::new(WORKSPACE).join(path))
    } else {
        Err(wire::invalid("input path leaves the workspace"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_input_paths_outside_the_workspace() {
        for wrong in ["", "..", "../x", "/etc/passwd", "a/../../b", "./a"] {
            assert!(workspace_path(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            workspace_path("data/a.csv").unwrap(),
            Path::new("/workspace/data/a.csv")
        );
    }
}
