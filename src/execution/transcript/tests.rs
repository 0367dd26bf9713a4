//! What readers of a transcript hear, wherever they begin.

use proptest::prelude::*;

use super::*;
use crate::execution::envelope::tests::finished;
use crate::execution::{Logs, Outcome};

fn line(message: &str) -> LogLine {
    let message = message.to_owned();
    LogLine {
        message,
        ..LogLine::default()
    }
}

fn ended(stdout: &[u8], stderr: &[u8], lines: Vec<LogLine>) -> Execution {
    let execution = finished();
    let logs = Logs {
        stdout: stdout.to_vec(),
        stderr: stderr.to_vec(),
        lines,
        ..Logs::default()
    };
    let outcome = execution.outcome.map(|outcome| Outcome { logs, ..outcome });
    Execution { outcome, ..execution }
}

/// All events that one reader receives, and the position after each.
async fn heard(mut reader: Reader) -> Vec<(TranscriptEvent, Bookmark)> {
    let mut all = Vec::new();
    while let Some(event) = reader.next().await {
        all.push((event, reader.bookmark()));
    }
    all
}

fn printed(heard: &[(TranscriptEvent, Bookmark)], wanted: Stream) -> Vec<u8> {
    let of = |(event, _): &(TranscriptEvent, Bookmark)| match event {
        TranscriptEvent::Printed { stream, bytes } if *stream == wanted => Some(bytes.clone()),
        _ => None,
    };
    heard.iter().filter_map(of).flatten().collect()
}

#[tokio::test(start_paused = true)]
async fn reader_receives_events_in_order() {
    let transcript = Transcript::default();
    transcript.set_status(Status::Queued);
    let mut reader = transcript.reader(Bookmark::default()).unwrap();
    assert_eq!(reader.next().await, Some(TranscriptEvent::Status(Status::Queued)));
    transcript.set_status(Status::Queued);
    transcript.set_status(Status::Running);
    assert_eq!(
        reader.next().await,
        Some(TranscriptEvent::Status(Status::Running))
    );
    let bytes = |stream, bytes: &[u8]| TranscriptEvent::Printed {
        stream,
        bytes: bytes.to_vec(),
    };
    transcript.print(Stream::Stdout, b"a\xe2\x82");
    assert_eq!(reader.next().await, Some(bytes(Stream::Stdout, b"a")));
    transcript.print(Stream::Stdout, b"\xac\xff");
    transcript.print(Stream::Stderr, b"e");
    transcript.log(line("l"));
    assert_eq!(
        reader.next().await,
        Some(bytes(Stream::Stdout, b"\xe2\x82\xac\xff"))
    );
    assert_eq!(reader.next().await, Some(bytes(Stream::Stderr, b"e")));
    assert_eq!(reader.next().await, Some(TranscriptEvent::Logged(line("l"))));
    assert_eq!(reader.bookmark().to_string(), "5-1-1-running");
    transcript.end(ended(b"a\xe2\x82\xac\xff\xe2", b"e", vec![line("l")]));
    assert_eq!(reader.next().await, Some(bytes(Stream::Stdout, b"\xe2")));
    assert!(matches!(reader.next().await, Some(TranscriptEvent::Result(_))));
    let (status, reason) = (Status::Success, Reason::Finished);
    assert_eq!(reader.next().await, Some(TranscriptEvent::End { status, reason }));
    assert_eq!(reader.next().await, None);
}

/// A reader that resumes receives the same events as an uninterrupted one, from memory and from the record.
#[tokio::test(start_paused = true)]
async fn reading_resumes_from_every_position() {
    let (stdout, stderr) = ("aß€😀\n".repeat(5000), "x".repeat(40_000));
    let lines: Vec<_> = (0..5).map(|n| line(&n.to_string())).collect();
    let execution = ended(stdout.as_bytes(), stderr.as_bytes(), lines.clone());
    let transcript = Transcript::default();
    let mut live = transcript.reader(Bookmark::default()).unwrap();
    transcript.print(Stream::Stdout, &stdout.as_bytes()[..30_001]);
    transcript.print(Stream::Stderr, stderr.as_bytes());
    transcript.log(lines[0].clone());
    let mut places = Vec::new();
    while live.bookmark().lines == 0 {
        assert!(live.next().await.is_some());
        places.push(live.bookmark());
    }
    let late = places.iter().map(|place| transcript.reader(*place).unwrap());
    let late: Vec<_> = late.collect();
    transcript.end(execution);
    let whole = heard(transcript.reader(Bookmark::default()).unwrap()).await;
    places.extend(whole.iter().map(|(_, place)| *place));
    let again = places.iter().map(|place| transcript.reader(*place).unwrap());
    for reader in late.into_iter().chain(again.collect::<Vec<_>>()) {
        let place = reader.bookmark();
        let rest = heard(reader).await;
        let (out, err) = (
            usize::try_from(place.stdout).unwrap(),
            usize::try_from(place.stderr).unwrap(),
        );
        assert_eq!(
            String::from_utf8(printed(&rest, Stream::Stdout)).unwrap(),
            stdout[out..]
        );
        assert_eq!(printed(&rest, Stream::Stderr), stderr.as_bytes()[err..]);
        assert_eq!(rest.is_empty(), place.phase == Phase::End);
        assert!(rest.iter().all(|(event, _)| match event {
            TranscriptEvent::Printed { bytes, .. } => bytes.len() <= limits::EVENT_BYTES_MAX,
            _ => true,
        }));
    }
}

#[tokio::test(start_paused = true)]
async fn merges_events_in_quick_succession() {
    let transcript = Transcript::default();
    let reader = transcript.reader(Bookmark::default()).unwrap();
    let hearing = tokio::spawn(heard(reader));
    for _ in 0..1000 {
        transcript.print(Stream::Stdout, b"x");
        tokio::task::yield_now().await;
    }
    transcript.end(ended(&[b'x'; 1000], b"", Vec::new()));
    let heard = hearing.await.unwrap();
    assert_eq!(printed(&heard, Stream::Stdout), [b'x'; 1000]);
    assert!(heard.len() < 10, "{}", heard.len());
}

///
#[test]
fn limits_the_size_of_a_transcript() {
    let transcript = Transcript::default();
    for _ in 0..3 {
        transcript.print(Stream::Stderr, &vec![b'x'; 1 << 19]);
        (0..limits::LOG_LINES_MAX).for_each(|_| transcript.log(line("l")));
    }
    let told = transcript.told.borrow();
    assert_eq!(told.stderr.len() as u64, limits::LOG_BYTES_MAX);
    assert_eq!(told.lines.len(), limits::LOG_LINES_MAX);
}

#[test]
fn rejects_positions_beyond_the_end() {
    let place = |text: &str| text.parse::<Bookmark>().unwrap();
    let transcript = Transcript::default();
    transcript.print(Stream::Stdout, b"ab");
    for (text, reaches) in [
        ("2-0-0-running", true),
        ("0-0-0-start", true),
        ("3-0-0-running", false),
        ("0-1-0-running", false),
        ("0-0-1-running", false),
        ("2-0-0-result", false),
        ("2-0-0-end", false),
    ] {
        assert_eq!(transcript.reader(place(text)).is_ok(), reaches, "{text}");
    }
    let of_other_process = Transcript::of_other_process();
    assert!(of_other_process.reader(place("9-9-9-running")).is_ok());
    assert!(of_other_process.reader(place("0-0-0-end")).is_err());
    of_other_process.end(ended(b"ab", b"", Vec::new()));
    assert!(of_other_process.reader(place("2-0-0-end")).is_ok());
    assert!(of_other_process.reader(place("3-0-0-end")).is_err());
    // What it had printed when its server was killed is lost.
    let interrupted = Transcript::of_other_process();
    interrupted.end(Execution {
        status: Status::Interrupted,
        ..ended(b"", b"", Vec::new())
    });
    assert!(interrupted.reader(place("9-9-9-running")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn reader_ends_when_the_writer_is_dropped() {
    let transcript = Transcript::default();
    let mut reader = transcript.reader(Bookmark::default()).unwrap();
    transcript.print(Stream::Stdout, b"last words");
    drop(transcript);
    assert!(matches!(reader.next().await, Some(TranscriptEvent::Status(_))));
    assert!(matches!(
        reader.next().await,
        Some(TranscriptEvent::Printed { .. })
    ));
    assert_eq!(reader.next().await, None);
    assert_eq!(reader.ended().await, None);
}

proptest! {
    /// O-17: whatever the bytes, pieces read as the whole does.
    #[test]
    fn splits_text_between_characters(
        bytes in prop::collection::vec(prop::sample::select(
            vec![b'a', 0x80, 0xac, 0xc3, 0xe2, 0x82, 0xf0, 0x9f, 0x98, 0xff, 0xed, 0xa0],
        ), 0..40),
        cuts in prop::collection::vec(0..40_usize, 0..6),
    ) {
        let mut text = String::new();
        let mut told = 0;
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        for cut in cuts {
            let piece = reader::piece(&bytes[told.min(cut)..cut], false);
            text.push_str(&String::from_utf8_lossy(piece));
            told += piece.len();
        }
        text.push_str(&String::from_utf8_lossy(reader::piece(&bytes[told..], true)));
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}
