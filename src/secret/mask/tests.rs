//! What a mask finds, and what it leaves.

use super::*;

fn mask(values: &[&str]) -> Mask {
    let values: Vec<_> = values
        .iter()
        .map(|value| SecretValue::new((*value).to_owned()).unwrap())
        .collect();
    Mask::new(&values)
}

fn masked(values: &[&str], text: &str) -> String {
    mask(values).mask_text(text).into_owned()
}

/// O-21.
#[test]
fn masks_each_occurrence_only() {
    let text = "a hunter2 b hunter2hunter2 hunter hunter";
    assert_eq!(masked(&["hunter2"], text), "a *** b ****** hunter hunter");
    assert_eq!(masked(&["hunter2"], "nothing"), "nothing");
    assert_eq!(masked(&[], text), text);
    assert_eq!(masked(&["abc"], "abc"), "abc", "too short to be told from text");
    assert_eq!(
        masked(&[" hunter2\n"], "strip() gives hunter2"),
        "strip() gives ***"
    );
}

#[test]
fn masks_overlapping_secrets() {
    assert_eq!(masked(&["abcd", "cdef"], "-abcdef-"), "-***-");
    assert_eq!(masked(&["abcd", "abcdefgh"], "-abcdefgh-abcd-"), "-***-***-");
    assert_eq!(masked(&["aaaa"], "aaaaaa"), "***", "it overlaps itself");
}

#[test]
fn masks_json_escaped_values() {
    let value = "p\"q\\r\nü/😀";
    let python = r#"{"v": "p\"q\\r\n\u00fc/\ud83d\ude00"}"#;
    let node = "{\"v\":\"p\\\"q\\\\r\\nü/😀\"}";
    let php = "{\"v\":\"p\\\"q\\\\r\\nü\\/😀\"}";
    for text in [python, node, php] {
        let shown = masked(&[value], text);
        assert!(shown.contains("\"***\"") && !shown.contains('q'), "{shown}");
    }
}

/// O-21: where a log was cut in the middle of a value.
#[test]
fn masks_beginning_of_a_secret_at_a_truncated_end() {
    let mask = mask(&["hunter2-and-more", "hunter"]);
    let cut =
        |text: &str| String::from_utf8(mask.mask(text.as_bytes(), Truncation::End).into_owned()).unwrap();
    assert_eq!(cut("x hunter2-an"), "x ***");
    assert_eq!(cut("x hunt"), "x ***");
    assert_eq!(cut("x hun"), "x hun", "as short as what is not masked at all");
    assert_eq!(cut("hunter2-and-more"), "***");
    assert_eq!(mask.mask_text("x hunt"), "x hunt", "where its author ended it");
}

/// O-21: of what was cut out of something longer, and where a helper of ours cut something.
#[test]
fn masks_both_parts_of_a_secret_around_an_ellipsis() {
    let mask = mask(&["hunter2-and-more", "-moresome"]);
    let piece = |text: &str| {
        String::from_utf8(mask.mask(text.as_bytes(), Truncation::BothEnds).into_owned()).unwrap()
    };
    assert_eq!(piece("-and-more x hunter"), "*** x ***");
    assert_eq!(piece("some"), "***");
    assert_eq!(piece("ore hun"), "ore hun");
    assert_eq!(piece(""), "");
    assert_eq!(masked(&["hunter2"], "and-more"), "and-more");
    for (text, expected) in [
        ("x hunter… [cut] y hunter", "x ***… [cut] y hunter"),
        ("hunter2… hun…", "***… hun…"),
        ("['hunter…'] hunter2", "['***…'] ***"),
    ] {
        assert_eq!(masked(&["hunter2"], text), expected);
    }
    assert_eq!(
        self::mask(&["hunter2"]).mask_json("{\"a\": \"hunt…\"}"),
        "{\"a\": \"***…\"}"
    );
}

#[test]
fn masks_self_overlapping_secret_once() {
    let mut places = Vec::new();
    let needle = Needle::from(b"0000".to_vec());
    needle.find(&vec![b'0'; 1 << 20], Truncation::BothEnds, &mut places);
    assert!(
        matches!(&places[..], [place] if *place == (0..1 << 20)),
        "{places:?}"
    );
}

/// O-21: a value that came in pieces is one again where the log is kept.
#[test]
fn masks_secrets_between_invalid_bytes() {
    let text = [b"\xff\xfehunter2\xff".as_slice(), b"\0"].concat();
    assert_eq!(
        mask(&["hunter2"]).mask(&text, Truncation::None).as_ref(),
        b"\xff\xfe***\xff\0"
    );
}

#[test]
fn masked_json_is_valid_and_otherwise_unchanged() {
    let mask = mask(&["hunter2", "12345678", "a\"b\\c", "{\"k\": \"w\"}", "null-ish"]);
    for (text, expected) in [
        (r#"{"n": 0.10, "x":1e400}"#, r#"{"n": 0.10, "x":1e400}"#),
        (
            r#"["hunter2", {"hunter2!":  "h\u0075nter2"}]"#,
            r#"["***", {"***!":  "***"}]"#,
        ),
        (
            r#"{"pin": 12345678, "big": -9123456780}"#,
            r#"{"pin": "***", "big": "-9***0"}"#,
        ),
        (r#""x a\"b\\c y""#, r#""x *** y""#),
        (r#"{"key": {"k": "w"}}"#, r#""***""#),
        (r#"[true, null, "\\"]"#, r#"[true, null, "\\"]"#),
    ] {
        let masked = mask.mask_json(text);
        assert_eq!(masked, expected);
        serde_json::from_str::<&serde_json::value::RawValue>(&masked).unwrap();
    }
}

#[test]
fn mask_reveals_nothing() {
    assert_eq!(format!("{:?}", mask(&["hunter2"])), "Mask(***)");
}
