//! Archives as honest tools make them, and as attackers do.

mod bombs;
mod folders;
mod forge;
mod layouts;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use tempfile::TempDir;

use self::forge::{Piece, deflated, file_of, skill_md, stored, zip, zip_ending};
use super::*;
use crate::error;

fn unpacked(bytes: &[u8]) -> Result<(TempDir, Listing), Error> {
    let into = tempfile::tempdir().unwrap();
    let listing = unpack(&file_of(bytes), into.path())?;
    Ok((into, listing))
}

/// The refusal of an archive that also holds a good SKILL.md.
fn refusal(pieces: &[Piece]) -> String {
    let pieces: Vec<_> = std::iter::once(skill_md())
        .chain(pieces.iter().cloned())
        .collect();
    refusal_of(&zip(&pieces))
}

/// The refusal of an archive, which is the archive's fault, is safe to show, and comes before anything is written outside.
fn refusal_of(bytes: &[u8]) -> String {
    let outer = tempfile::tempdir().unwrap();
    let into = outer.path().join("into");
    fs::create_dir(&into).unwrap();
    let error = unpack(&file_of(bytes), &into).expect_err("must be refused");
    assert_eq!(
        fs::read_dir(outer.path()).unwrap().count(),
        1,
        "nothing was written outside"
    );
    let message = error.to_string();
    assert!(!matches!(error, Error::Io(_) | Error::Full(_)), "{error:?}");
    assert!(
        message.len() < 600 && !message.contains(char::is_control),
        "{message:?}"
    );
    message
}

fn paths(listing: &Listing) -> Vec<&str> {
    listing
        .entries()
        .iter()
        .map(|entry| entry.path.as_str())
        .collect()
}

#[test]
fn unpacked_files_are_read_only_with_one_time() {
    let tool = Piece {
        mode: 0o104_777,
        ..stored("bin/tool", b"#!/bin/sh\n")
    };
    let pieces = [skill_md(), deflated("a/b/c.txt", &[b'x'; 100_000]), tool];
    let (into, listing) = unpacked(&zip(&pieces)).unwrap();
    assert_eq!(paths(&listing), ["SKILL.md", "a/b/c.txt", "bin/tool"]);
    assert_eq!(fs::read(into.path().join("a/b/c.txt")).unwrap(), [b'x'; 100_000]);
    let modes = [
        ("SKILL.md", 0o644),
        ("a/b/c.txt", 0o644),
        ("bin/tool", 0o755),
        ("a", 0o755),
        ("a/b", 0o755),
    ];
    for (path, mode) in modes {
        let metadata = fs::metadata(into.path().join(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, mode, "{path}");
        assert_eq!(metadata.mtime().unsigned_abs(), MTIME_SECONDS, "{path}");
    }
    assert_eq!(list(into.path()).unwrap().entries(), listing.entries());
}

#[test]
fn strips_a_single_top_level_folder() {
    let named = |path: &str| Piece {
        name: path.as_bytes().to_vec(),
        ..skill_md()
    };
    let macos = stored("__MACOSX/my-skill/._SKILL.md", b"x");
    let folder = Piece {
        mode: 0o040_755,
        ..stored("my-skill/", b"")
    };
    let pieces = [
        folder,
        named("my-skill/SKILL.md"),
        stored("my-skill/a/b", b""),
        macos,
    ];
    let (into, listing) = unpacked(&zip(&pieces)).unwrap();
    assert_eq!(
        (paths(&listing), listing.folder()),
        (vec!["SKILL.md", "a/b"], Some("my-skill"))
    );
    assert_eq!(load(into.path(), &listing, None).unwrap().name.as_str(), "a");

    let (_, listing) = unpacked(&zip(&[named("x/SKILL.md"), named("y")])).unwrap();
    assert_eq!(
        (paths(&listing), listing.folder()),
        (vec!["x/SKILL.md", "y"], None)
    );
    let (_, listing) = unpacked(&zip(&[named("SKILL.md/SKILL.md"), named("SKILL.md/x")])).unwrap();
    assert_eq!(paths(&listing), ["SKILL.md", "x"]);
}

/// Archives as desktops make them; Z-02 holds for what a backslash means there, too.
#[test]
fn accepts_archives_of_desktop_programs() {
    let windows = |name: &str| Piece {
        name: name.into(),
        made_by: 20,
        ..skill_md()
    };
    let pieces = [
        windows("my-skill\\SKILL.md"),
        windows("my-skill\\scripts\\a b.py"),
        windows("my-skill\\Thumbs.db"),
    ];
    let (_, listing) = unpacked(&zip(&pieces)).unwrap();
    assert_eq!(paths(&listing), ["SKILL.md", "scripts/a b.py"]);
    for out in ["..\\x", "a\\..\\..\\x", "C:\\x", "\\\\srv\\x", "\\x", "a\\\\b"] {
        assert!(unpacked(&zip(&[skill_md(), windows(out)])).is_err(), "{out}");
    }
    let named = |name: &str| Piece {
        name: name.into(),
        ..skill_md()
    };
    let pieces = [
        stored(".DS_Store", b"x"),
        named("x/skill.md"),
        named("x/.DS_Store"),
    ];
    let (into, listing) = unpacked(&zip(&pieces)).unwrap();
    assert_eq!((paths(&listing), listing.folder()), (vec!["skill.md"], Some("x")));
    assert_eq!(load(into.path(), &listing, None).unwrap().name.as_str(), "a");
}

/// Z-25: the digest depends on the executed content, not on the archive it came in.
#[test]
fn same_files_have_the_same_digest_in_any_archive() {
    let digest = |pieces: &[Piece]| unpacked(&zip(pieces)).unwrap().1.digest();
    let (a, b) = (skill_md(), stored("b", b"hello"));
    let in_folder = [("x/SKILL.md", &a), ("x/b", &b)].map(|(name, piece)| Piece {
        name: name.into(),
        ..piece.clone()
    });
    let first = digest(&[a.clone(), b.clone()]);
    assert_eq!(digest(&[deflated("b", b"hello"), a.clone()]), first);
    assert_eq!(digest(&in_folder), first);
    assert_ne!(digest(&[a.clone(), stored("b", b"hellO")]), first);
    assert_ne!(digest(&[a, Piece { mode: 0o100_755, ..b }]), first);
}

/// Z-01, Z-02, Z-16: each name is refused and shown escaped, nothing is written outside.
#[test]
fn names_entry_that_leaves_the_folder() {
    let long = "n".repeat(300);
    let names = [
        "../../x",
        "a/../x",
        "/etc/x",
        "C:\\x",
        "\\\\srv\\x",
        "..\\x",
        "a\\..\\..\\x",
        ".",
        "",
        "/",
        "a\0b",
        "a\nb",
        "\u{1b}[2J",
        "\u{202e}x",
        &long,
    ];
    for name in names {
        let message = refusal(&[stored(name, b"")]);
        assert!(message.contains(&error::quoted(name)), "{message}");
    }
    for raw in [&b"\x81\x8e.txt"[..], b"a\xff", b"\xc0\xae\xc0\xae/x"] {
        let message = refusal(&[Piece {
            name: raw.to_vec(),
            ..stored("", b"x")
        }]);
        assert!(message.contains("not UTF-8"), "{message}");
    }
    assert!(
        refusal(&[Piece {
            name: vec![b'a'; 65_000],
            ..stored("", b"")
        }])
        .contains("more than 240 bytes")
    );
}

/// Z-16: odd but harmless names are kept exactly.
#[test]
fn preserves_unusual_names() {
    let names = ["-rf", "con", "nul.txt", "a b", "ünï/世界.txt", "%2e%2e", "..."];
    let pieces: Vec<_> = std::iter::once(skill_md())
        .chain(names.map(|name| stored(name, b"x")))
        .collect();
    let (into, listing) = unpacked(&zip(&pieces)).unwrap();
    for name in names {
        assert!(
            listing.find(name).is_some() && into.path().join(name).is_file(),
            "{name}"
        );
    }
}

/// Z-03, Z-04, Z-05.
#[test]
fn rejects_links_and_special_files() {
    for mode in [0o120_777, 0o010_644, 0o020_666, 0o060_660, 0o140_755, 0o150_000] {
        let message = refusal(&[Piece {
            mode,
            ..stored("odd", b"/tmp")
        }]);
        assert!(message.contains("entry `odd` is"), "{mode:o}: {message}");
    }
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_str().unwrap().as_bytes();
    let link = Piece {
        mode: 0o120_777,
        ..stored("d", target)
    };
    assert!(refusal(&[link, stored("d/x", b"owned")]).contains("entry `d` is a link"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(
        refusal(&[Piece {
            mode: 0o120_777,
            ..stored("d/", b"")
        }])
        .contains("is a link")
    );
    assert!(
        refusal(&[Piece {
            mode: 0o100_644,
            ..stored("d/", b"")
        }])
        .contains("neither")
    );
    assert!(
        refusal(&[Piece {
            mode: 0o040_755,
            ..stored("d", b"")
        }])
        .contains("neither")
    );
    assert!(
        refusal(&[Piece {
            mode: 0o040_755,
            ..stored("d/", b"x")
        }])
        .contains("folder with content")
    );
}

/// Z-04: what already lies in the folder is neither followed nor written over.
#[test]
fn does_not_write_through_an_existing_link() {
    let outside = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    symlink(outside.path().join("x"), into.path().join("SKILL.md")).unwrap();
    assert!(unpack(&file_of(&zip(&[skill_md()])), into.path()).is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// Z-12, Z-13.
#[test]
fn rejects_duplicate_names() {
    let pairs = [
        ("a", "a"),
        ("a", "a/"),
        ("a", "a/b"),
        ("d/", "d/"),
        ("x", "X"),
        ("\u{e9}", "e\u{301}"),
        ("p/A", "P/b"),
        ("y", "skill.md"),
    ];
    for (one, other) in pairs {
        let mode = |name: &str| if name.ends_with('/') { 0o040_755 } else { 0o100_644 };
        let entry = |name: &str| Piece {
            mode: mode(name),
            ..stored(name, b"")
        };
        let message = refusal(&[entry(one), entry(other)]);
        assert!(
            message.contains("one name on some file systems"),
            "{one} {other}: {message}"
        );
    }
    assert!(refusal(&[skill_md()]).contains("one name"));
}

/// Z-14.
#[test]
fn names_unsupported_archive_feature() {
    let plain = || stored("f", b"hello");
    let methods = [
        (9, "deflate64"),
        (12, "bzip2"),
        (14, "lzma"),
        (93, "zstd"),
        (95, "xz"),
        (99, "AES"),
        (1, "method 1;"),
    ];
    for (method, reason) in methods {
        assert!(refusal(&[Piece { method, ..plain() }]).contains(reason));
    }
    for flags in [0x1, 0x41, 0x2000] {
        assert!(refusal(&[Piece { flags, ..plain() }]).contains("is encrypted"));
    }
    assert!(
        refusal(&[Piece {
            flags: 0x20,
            ..plain()
        }])
        .contains("pack it with deflate")
    );
    assert!(refusal(&[Piece { disk: 1, ..plain() }]).contains("split archive"));
    let without_sizes = Piece {
        flags: 8,
        size: 0,
        packed_size: 0,
        crc32: 0,
        ..deflated("f", b"hello")
    };
    assert!(refusal(&[without_sizes]).contains("entry `f`"));
    let pieces = [skill_md()];
    assert!(refusal_of(&zip_ending(&pieces, |end| end.disks = [0, 1])).contains("one part of several"));
    assert!(refusal_of(&zip_ending(&pieces, |end| end.counts = [1, 2])).contains("one part of several"));
    assert!(refusal_of(&zip(&[])).contains("is empty"));
}

/// Z-15.
#[test]
fn rejects_every_truncated_archive() {
    let whole = zip(&[skill_md(), stored("a/b", b"hello"), deflated("c", &[b'x'; 300])]);
    assert!(unpacked(&whole).is_ok());
    for length in 0..whole.len() {
        let into = tempfile::tempdir().unwrap();
        let error = unpack(&file_of(&whole[..length]), into.path()).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{length}: {error:?}");
    }
}

/// Z-15.
#[test]
fn rejects_corrupt_archive() {
    assert!(
        refusal(&[Piece {
            crc32: 1,
            ..stored("f", b"hello")
        }])
        .contains("wrong checksum")
    );
    assert!(
        refusal(&[Piece {
            crc32: 1,
            ..deflated("f", b"hello")
        }])
        .contains("wrong checksum")
    );
    assert!(
        refusal(&[Piece {
            method: 8,
            ..stored("f", b"hello")
        }])
        .contains("is damaged")
    );
    let two_names = Piece {
        local_name: Some(b"g".to_vec()),
        ..stored("f", b"hello")
    };
    assert!(refusal(&[two_names]).contains("contradictory headers"));
    let comment = |bytes: &[u8]| zip_ending(&[skill_md()], |end| end.comment = bytes.to_vec());
    assert!(unpacked(&comment(b"made by hand")).is_ok());
    let second_end = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    assert!(refusal_of(&comment(&second_end)).contains("second end"));
    assert!(refusal_of(b"PK\x03\x04 not really").contains("is not a zip"));
    assert!(refusal_of(&vec![0; 51 << 20]).contains("larger than 50 MiB"));
}

/// Z-17.
#[test]
fn says_where_skill_md_belongs() {
    let cases = [
        (vec![stored("README.md", b"x")], "SKILL.md is missing"),
        (
            vec![stored("a/b/SKILL.md", b"x"), stored("a/x", b"")],
            "found `a/b/SKILL.md` instead",
        ),
        (
            vec![stored("a/skill.md", b"x"), stored("b", b"")],
            "found `a/skill.md` instead",
        ),
        (
            vec![stored("x/SKILL.md", b"x"), stored("y", b"")],
            "found `x/SKILL.md` instead",
        ),
        (vec![stored("SKILL.md", b"")], "is empty"),
        (
            vec![deflated("SKILL.md", &vec![b'x'; 10 << 20])],
            "larger than 1024 KiB",
        ),
    ];
    for (pieces, part) in cases {
        let (into, listing) = unpacked(&zip(&pieces)).unwrap();
        let error = error::Error::from(load(into.path(), &listing, Some("a")).unwrap_err());
        assert_eq!(error.code(), error::Code::Invalid, "{part}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Z-26.
#[test]
fn rejects_archive_without_its_entrypoint() {
    let with = |entrypoint: &str| {
        let text = format!("---\ndescription: x\nlang: python\nentrypoint: {entrypoint}\n---\n");
        let pieces = [stored("SKILL.md", text.as_bytes()), stored("scripts/run.py", b"")];
        let (into, listing) = unpacked(&zip(&pieces)).unwrap();
        load(into.path(), &listing, Some("from-upload"))
    };
    let manifest = with("scripts/run.py").unwrap();
    assert_eq!(manifest.name.as_str(), "from-upload");
    assert_eq!(manifest.entrypoint.as_deref(), Some("scripts/run.py"));
    for entrypoint in ["scripts", "/bin/sh", "../x", "missing.py", "-c", "scripts/RUN.py"] {
        assert!(with(entrypoint).is_err(), "{entrypoint}");
    }
}
