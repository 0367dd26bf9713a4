//! Folders as people keep their skills in: with executables, links and stray files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// A file of a skill, and what kind of file.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'a> {
    /// A path and its content.
    Plain(&'a str, &'a str),
    /// The same, marked as executable.
    Executable(&'a str, &'a str),
    /// A path and what the link there says.
    Link(&'a str, &'a str),
}

/// A folder with these pieces.
pub(crate) fn folder_of(pieces: &[Piece<'_>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for piece in pieces {
        let (Piece::Plain(path, _) | Piece::Executable(path, _) | Piece::Link(path, _)) = *piece;
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match *piece {
            Piece::Plain(_, content) => fs::write(&place, content).unwrap(),
            Piece::Executable(_, content) => {
                fs::write(&place, content).unwrap();
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
            }
            Piece::Link(_, target) => symlink(target, &place).unwrap(),
        }
    }
    folder
}

/// The folder as `skillbox run` and `skillbox skill push` pack it.
pub(crate) fn packed(folder: &tempfile::TempDir) -> Result<fs::File, skillbox::bundle::Error> {
    let mut file = tempfile::tempfile().unwrap();
    skillbox::bundle::pack(folder.path(), &mut file)?;
    Ok(file)
}
