//! Archives that readers could understand in two ways, and those of real archivers, which must stay readable.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::forge::{Piece, deflated, skill_md, stored, zip, zip_ending};
use super::{refusal, refusal_of, unpacked};

/// Made by the command that the README beside them names.
const OF_ARCHIVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives");

/// Path and digest of each file, as Python's `zipfile` reads the archive.
const PYTHON: &str = "
import hashlib, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
for entry in archive.infolist():
    if not entry.is_dir():
        # Some archivers write UTF-8 and do not say so.
        name = entry.filename if entry.flag_bits & 0x800 else entry.filename.encode('cp437').decode()
        print(hashlib.sha256(archive.read(entry)).hexdigest(), name)
";

fn as_python_reads(archive: &Path) -> BTreeMap<String, String> {
    let output = Command::new("/usr/bin/python3")
        .args(["-c", PYTHON])
        .arg(archive)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let files = lines.lines().map(|line| line.split_once(' ').unwrap());
    files
        .map(|(digest, path)| (path.to_owned(), digest.to_owned()))
        .collect()
}

/// Unpacks, and checks that Python reads the same files.
fn assert_read_alike(bytes: &[u8], what: &str) {
    let (into, listing) = unpacked(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let prefix = listing
        .folder()
        .map_or(String::new(), |folder| format!("{folder}/"));
    let ours: BTreeMap<_, _> = listing
        .entries()
        .iter()
        .map(|entry| {
            let content = fs::read(into.path().join(&entry.path)).unwrap();
            let digest: String = Sha256::digest(content)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            (format!("{prefix}{}", entry.path), digest)
        })
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    assert_eq!(ours, as_python_reads(file.path()), "{what}");
}

/// Z-30.
#[test]
fn archives_of_common_programs_are_read_as_python_reads_them() {
    let mut count = 0;
    for entry in fs::read_dir(OF_ARCHIVERS).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "zip") {
            assert_read_alike(&fs::read(&path).unwrap(), &path.display().to_string());
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

fn around(before: &[u8], after: &[u8]) -> Piece {
    Piece {
        around: [before.to_vec(), after.to_vec()],
        ..stored("f", b"hello")
    }
}

/// Z-30: a second archive before, between, after or behind the entries.
#[test]
fn rejects_bytes_that_belong_to_no_entry() {
    let second = zip(&[skill_md()]);
    let first = Piece {
        around: [second.clone(), Vec::new()],
        ..skill_md()
    };
    assert!(refusal_of(&zip(&[first])).contains("before its first entry"));
    for gap in [&second[..], b"x", &[0; 4]] {
        assert!(refusal(&[around(gap, b""), stored("g", b"")]).contains("belong to no entry"));
        assert!(refusal(&[around(b"", gap)]).contains("belong to no entry"));
        let before_end = zip_ending(&[skill_md()], |end| end.before = gap.to_vec());
        assert!(refusal_of(&before_end).contains("between its directory and its end"));
        let trailing = [&zip(&[skill_md()])[..], gap].concat();
        refusal_of(&trailing);
        let unadjusted = [gap, &zip(&[skill_md()])].concat();
        refusal_of(&unadjusted);
    }
    let locator = [&b"PK\x06\x07"[..], &[0; 16]].concat();
    let zip64 = zip_ending(&[skill_md()], |end| end.before = locator.clone());
    assert!(refusal_of(&zip64).contains("zip64"));
    // Python takes the last signature, even if its comment does not reach the end.
    let decoy = [&b"PK\x05\x06"[..], &[0; 18], b"x"].concat();
    let in_comment = zip_ending(&[skill_md()], |end| end.comment = decoy.clone());
    assert!(refusal_of(&in_comment).contains("second end"));
}

/// A streamed file: sizes and checksum follow the data.
fn streamed(descriptor: &[u8]) -> Piece {
    Piece {
        flags: 8,
        local_sizes: Some([0; 3]),
        around: [Vec::new(), descriptor.to_vec()],
        ..deflated("f", b"hello")
    }
}

/// The descriptor of [`streamed`]; `wide` if its sizes have 8 bytes.
fn descriptor(wide: bool) -> Vec<u8> {
    let of = streamed(b"");
    let mut bytes = of.crc32.to_le_bytes().to_vec();
    for size in [of.packed_size, of.size] {
        let size = u64::from(size).to_le_bytes();
        bytes.extend(if wide { &size[..] } else { &size[..4] });
    }
    bytes
}

fn field(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    [&kind.to_le_bytes(), &length.to_le_bytes(), value].concat()
}

/// Z-30.
#[test]
fn accepts_exactly_one_descriptor_that_agrees_with_the_directory() {
    let signed = |bytes: &[u8]| [b"PK\x07\x08", bytes].concat();
    let (short, wide) = (descriptor(false), descriptor(true));
    let zip64 = |sizes: [u64; 2], after: &[u8]| Piece {
        local_extra: Some(field(1, &sizes.map(u64::to_le_bytes).concat())),
        local_sizes: Some([0, u32::MAX, u32::MAX]),
        ..streamed(after)
    };
    for (what, piece) in [
        ("plain", streamed(&short)),
        ("with signature", streamed(&signed(&short))),
        ("zip64", zip64([0, 0], &wide)),
        ("zip64 with signature", zip64([0, 0], &signed(&wide))),
        ("zip64 field, short descriptor", zip64([0, 0], &signed(&short))),
    ] {
        assert_read_alike(&zip(&[skill_md(), piece.clone()]), what);
        assert_read_alike(&zip(&[skill_md(), piece, stored("g", b"x")]), what);
    }
    let mut wrong = short.clone();
    wrong[4] ^= 1;
    for bytes in [
        vec![],
        wrong.clone(),
        signed(&wrong),
        [short.clone(), short.clone()].concat(),
        [&short[..], b"x"].concat(),
        wide.clone(),
        signed(&wide),
    ] {
        assert!(
            refusal(&[streamed(&bytes)]).contains("belong to no entry"),
            "{bytes:?}"
        );
    }
    let without_flag = Piece {
        flags: 0,
        local_sizes: None,
        ..streamed(&short)
    };
    assert!(refusal(&[without_flag]).contains("belong to no entry"));
    assert!(refusal(&[zip64([5, 1], &wide)]).contains("contradictory headers"));
}

/// Z-30.
#[test]
fn rejects_headers_that_differ_in_flags_sizes_or_names() {
    let local = |flags: u16, local_flags: u16| Piece {
        flags,
        local_flags: Some(local_flags),
        ..stored("f", b"hello")
    };
    for (flags, local_flags) in [(8, 0), (0, 8), (0x800, 0), (0, 0x800)] {
        let message = refusal(&[local(flags, local_flags)]);
        assert!(
            message.contains("contradictory headers") || message.contains("belong to no entry"),
            "{message}"
        );
    }
    let zip64 = |sizes: [u64; 2]| Piece {
        local_extra: Some(field(1, &sizes.map(u64::to_le_bytes).concat())),
        ..stored("f", b"hello")
    };
    assert_read_alike(
        &zip(&[skill_md(), zip64([5, 5])]),
        "a zip64 field that is not needed",
    );
    for sizes in [[0, 0], [5, 6], [6, 5]] {
        assert!(refusal(&[zip64(sizes)]).contains("contradictory headers"));
    }
    let saturated = Piece {
        local_sizes: Some([stored("f", b"hello").crc32, u32::MAX, u32::MAX]),
        ..stored("f", b"hello")
    };
    assert!(refusal(&[saturated]).contains("contradictory headers"));

    let unicode = |name: &str| field(0x7075, &[&[1, 0, 0, 0, 0], name.as_bytes()].concat());
    for (extra, rule) in [
        (unicode("g"), "two different names"),
        (vec![1, 2, 3], "damaged extra fields"),
        (vec![9, 9, 5, 0, 1], "damaged extra fields"),
        (
            [field(1, &[0; 16]), field(1, &[0; 16])].concat(),
            "damaged extra fields",
        ),
        (field(1, &[0; 8]), "damaged extra fields"),
    ] {
        let local = Piece {
            local_extra: Some(extra.clone()),
            ..stored("f", b"hello")
        };
        assert!(refusal(&[local]).contains(rule), "{extra:?}");
    }
    let central = Piece {
        extra: unicode("g"),
        local_extra: Some(Vec::new()),
        ..stored("f", b"hello")
    };
    assert!(refusal(&[central]).contains("two different names"));
    // Info-ZIP's times differ between the headers; Java pads with zeros.
    let usual = Piece {
        extra: field(0x5455, &[1, 0, 0, 0, 0]),
        local_extra: Some([field(0x5455, &[3, 0, 0, 0, 0, 0, 0, 0, 0]), vec![0; 3]].concat()),
        ..stored("f", b"hello")
    };
    assert_read_alike(&zip(&[skill_md(), usual]), "times and padding");
}
