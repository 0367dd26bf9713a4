//! Archives that are larger inside than outside, or claim to be.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::{Compress, Compression, FlushCompress};

use super::forge::{Piece, deflated, file_of, skill_md, stored, zip, zip_ending};
use super::{paths, refusal, refusal_of, unpacked};
use crate::bundle::unpack;

/// Peak memory of this process since the last call, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Runs the calling test, of this name, again in a process of its own; says whether this is that process.
fn is_alone(test: &str) -> bool {
    const MARK: &str = "SKILLBOX_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", test]).env(MARK, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    false
}

/// A run of deflate blocks that ends on a byte and refers to nothing before it, so that it can be repeated.
fn mebibyte_of_zeros() -> Vec<u8> {
    let mut run = Vec::with_capacity(1 << 20);
    let mut deflate = Compress::new(Compression::best(), false);
    deflate
        .compress_vec(&vec![0; 1 << 20], &mut run, FlushCompress::Full)
        .unwrap();
    run
}

/// Z-06: 10 MB that inflate to 10 GB. An honest bomb is refused before anything is inflated, a lying one when it passes what it claims.
#[test]
fn stops_compression_bomb_at_the_limit() {
    if !is_alone("bundle::tests::bombs::stops_compression_bomb_at_the_limit") {
        return;
    }
    let bomb = mebibyte_of_zeros().repeat(10_240);
    let packed_size = u32::try_from(bomb.len()).unwrap();
    let claims = |size| Piece {
        packed: bomb.clone(),
        packed_size,
        size,
        ..deflated("bomb", b"")
    };
    assert!(refusal(&[claims(u32::MAX - 1)]).contains("unpacks to more than 256 MiB"));

    let claimed = 32 << 20;
    let archive = file_of(&zip(&[skill_md(), claims(claimed)]));
    let into = tempfile::tempdir().unwrap();
    peak_memory();
    let before = peak_memory();
    let error = unpack(&archive, into.path()).unwrap_err();
    let after = peak_memory();
    assert!(
        error
            .to_string()
            .contains("entry `bomb` is damaged, or contains more than declared"),
        "{error}"
    );
    let written = fs::metadata(into.path().join("bomb")).unwrap().len();
    assert!(
        (u64::from(claimed) - (1 << 20)..=claimed.into()).contains(&written),
        "{written}"
    );
    assert!(
        after.saturating_sub(before) < 32 << 20,
        "memory stays flat: {before} {after}"
    );
}

/// Z-07: many entries over one kernel of data, and an entry within another's data.
#[test]
fn rejects_overlapping_entries_before_inflating() {
    let kernel = deflated("kernel", &vec![0; 1 << 20]);
    let start = u32::try_from(zip(&[skill_md()]).len() - 22 - 46 - "SKILL.md".len()).unwrap();
    let twin = |n: u32| Piece {
        at: Some(start),
        name: format!("twin{n}").into_bytes(),
        ..kernel.clone()
    };
    let pieces: Vec<_> = [skill_md(), kernel.clone()]
        .into_iter()
        .chain((0..200).map(twin))
        .collect();
    assert!(refusal_of(&zip(&pieces)).contains("contradictory headers"));
    let same_name = Piece {
        at: Some(start),
        ..kernel.clone()
    };
    assert!(refusal(&[kernel.clone(), same_name]).contains("shares its data"));

    // The data of `outer` holds the whole of `inner`, header included.
    let outer = stored("outer", &zip(&[stored("inner", b"payload")]));
    let at = start + 30 + 5;
    let inner = Piece {
        at: Some(at),
        ..stored("inner", b"payload")
    };
    assert!(refusal(&[outer, inner]).contains("entry `outer` shares its data"));
}

/// Z-08: the counter is on produced bytes.
#[test]
fn detects_false_declared_size() {
    let honest = deflated("f", &vec![7; 100_000]);
    for size in [0, 10, 99_999, 100_001, 1 << 27] {
        let message = refusal(&[Piece {
            size,
            ..honest.clone()
        }]);
        assert!(message.contains("entry `f`"), "{size}: {message}");
    }
    for packed_size in [0, 1, honest.packed_size - 1] {
        assert!(
            refusal(&[Piece {
                packed_size,
                ..honest.clone()
            }])
            .contains("entry `f`"),
            "{packed_size}"
        );
    }
    let beyond = Piece {
        packed_size: honest.packed_size + 1,
        ..honest.clone()
    };
    assert!(refusal(&[beyond]).contains("truncated"));
    let mut trailing = honest.clone();
    trailing.packed.extend(b"hidden");
    trailing.packed_size += 6;
    assert!(refusal(&[trailing]).contains("is damaged"));
    assert!(
        refusal(&[Piece {
            size: 4,
            ..stored("f", b"hello")
        }])
        .contains("two different sizes")
    );
}

/// Z-09: an archive in an archive is a plain file.
#[test]
fn does_not_open_nested_archives() {
    let inner = zip(&[stored("../evil", b"x")]);
    let (into, listing) = unpacked(&zip(&[skill_md(), stored("inner.zip", &inner)])).unwrap();
    assert_eq!(paths(&listing), ["SKILL.md", "inner.zip"]);
    assert_eq!(fs::read(into.path().join("inner.zip")).unwrap(), inner);
}

/// Z-10: within a second.
#[test]
fn rejects_too_many_folders() {
    let small: Vec<_> = (0..65_535).map(|n| stored(&n.to_string(), b"")).collect();
    let wide: Vec<_> = (0..400)
        .map(|n| Piece {
            extra: vec![0; 65_000],
            ..stored(&n.to_string(), b"")
        })
        .collect();
    let bombs = [
        (zip(&small), "more than 10000 entries"),
        (zip(&small[..10_001]), "more than 10000 entries"),
        // What 1,000,000 leaves in the 16 bits of the count.
        (
            zip_ending(&small, |end| end.counts = [16_960; 2]),
            "more than 10000 entries",
        ),
        (
            zip_ending(&small, |end| end.counts = [5; 2]),
            "lists more entries than it counts",
        ),
        (zip(&wide), "directory is larger than 8 MiB"),
    ];
    for (bomb, part) in bombs {
        let mut taken = (0..20).map(|_| {
            let begun = Instant::now();
            let message = refusal_of(&bomb);
            assert!(message.contains(part), "{message}");
            begun.elapsed()
        });
        assert!(taken.any(|time| time < Duration::from_secs(1)), "{part}");
    }
}

/// Z-10: the most that is allowed is unpacked.
#[test]
fn accepts_archive_at_the_entry_limit() {
    let pieces: Vec<_> = std::iter::once(skill_md())
        .chain((1..10_000).map(|n| stored(&format!("d/{n}"), b"")))
        .collect();
    assert_eq!(unpacked(&zip(&pieces)).unwrap().1.entries().len(), 10_000);
}

/// Z-11.
#[test]
fn zip64_extremes_do_not_overflow() {
    let base = stored("f", b"hello");
    let sizes = [vec![1, 0, 16, 0], vec![0xff; 16]].concat();
    let extremes = [
        Piece {
            size: u32::MAX,
            packed_size: u32::MAX,
            method: 8,
            extra: sizes,
            ..base.clone()
        },
        Piece {
            packed_size: u32::MAX,
            ..deflated("f", b"hello")
        },
        Piece {
            at: Some(u32::MAX),
            ..base.clone()
        },
    ];
    for extreme in extremes {
        assert!(refusal(&[extreme]).contains("zip64"));
    }
    assert!(
        refusal(&[Piece {
            at: Some(u32::MAX - 1),
            ..base.clone()
        }])
        .contains("truncated")
    );
    let big = Piece {
        packed_size: u32::MAX - 1,
        ..deflated("f", b"hello")
    };
    assert!(refusal(&[big]).contains("truncated"));
    let pieces = [skill_md(), base];
    assert!(refusal_of(&zip_ending(&pieces, |end| end.start = u32::MAX)).contains("zip64"));
    assert!(refusal_of(&zip_ending(&pieces, |end| end.size = u32::MAX)).contains("zip64"));
    assert!(refusal_of(&zip_ending(&pieces, |end| end.start = u32::MAX - 1)).contains("truncated"));
    assert!(refusal_of(&zip_ending(&pieces, |end| end.counts = [u16::MAX; 2])).contains("entries"));
}
