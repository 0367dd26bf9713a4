//! `llm-sandbox`, alternating with ours: its containers beside our containers, its bubblewrap beside our native sandboxes.
//! They never run together, because an engine that removes a container slows down the next candidate.

use std::path::Path;
use std::process::Command;

use crate::judged::{Judged, Most, of};
use crate::latency::{BARE, PAUSE, REST_COLD, REST_WARM, Way, in_turn, rounds, servers};
use crate::measure::{Row, timed};
use crate::sandboxes::Driver;
use crate::spoken::PYTHON;
use crate::world;

const ANSWERED: &str = "llm-sandbox, cold session, until answered";
const GONE: &str = "llm-sandbox, cold session, until closed";
const REUSED: &str = "llm-sandbox, reused container";
const BWRAP: &str = "llm-sandbox, bubblewrap: open, run, close";
/// Its cold sessions take ten seconds each to close: for so many rounds there is one.
const ROUNDS_A_SESSION: usize = 10;

/// A process that has `llm-sandbox` and executes commands from its input.
struct Library(Driver);

impl Library {
    fn start() -> Option<Self> {
        let venv = std::env::var("SKILLBOX_BENCH_VENV")
            .unwrap_or_else(|_| "/var/cache/skillbox-peers/venv".to_owned());
        let python = Path::new(&venv).join("bin/python");
        if !python.exists() {
            println!("left out: llm-sandbox is not installed in {venv}");
            return None;
        }
        let mut command = Command::new(python);
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/llm.py"))
            .env("SKILLBOX_IMAGE_PYTHON", world::images().python);
        if let Some(host) = world::docker_settings().host {
            command.env("DOCKER_HOST", host);
        }
        Some(Self(Driver::start(&mut command)))
    }

    /// Milliseconds until the program's answer, and until nothing of it is left.
    fn ask(&mut self, word: &str) -> [f64; 2] {
        let answer = self.0.ask(word);
        let mut parts = answer.split(' ').map(|part| part.parse().unwrap());
        [parts.next().unwrap(), parts.next().unwrap()]
    }
}

/// In turn with the bare interpreter: what `word` names in the library, and ours on that backend.
fn rows(library: &mut Library, name: &'static str, word: &str, backend: &str) -> Vec<Row> {
    let (cold, warm) = servers(backend, &PYTHON);
    let folder = PYTHON.folder();
    let (mut bare, env) = PYTHON.bare(folder.path());
    let env: Vec<(&str, &Path)> = env.iter().map(|(name, path)| (*name, path.as_path())).collect();
    let ways: Vec<Way<'_>> = vec![
        (BARE, Box::new(|| timed(&mut bare, &env))),
        (name, Box::new(|| library.ask(word)[1])),
        (REST_COLD, Box::new(|| cold.once(PYTHON.name).0)),
        (REST_WARM, Box::new(|| warm.once(PYTHON.name).0)),
    ];
    in_turn(ways, rounds())
}

pub(crate) fn measure_native(judged: &mut Judged) {
    let Some(mut library) = Library::start() else {
        return;
    };
    let rows = rows(&mut library, BWRAP, "bwrap", "native");
    judged.rows("llm-sandbox, native, python", &rows);
    let p50 = |name: &str| of(&rows, name, 0.5).unwrap();
    let mut bar = |what: &str, ours: &str, most: f64| {
        let name = format!("native {what} / llm-sandbox bubblewrap");
        judged.bar(name, p50(ours) / p50(BWRAP), Most::AtMost(most));
    };
    bar("cold", REST_COLD, 0.6);
    bar("warm", REST_WARM, 0.15);
}

pub(crate) fn measure_docker(judged: &mut Judged) {
    let Some(mut library) = Library::start() else {
        return;
    };
    let mut sessions = [ANSWERED, GONE].map(Row::new);
    for round in 0..=rounds().div_ceil(ROUNDS_A_SESSION) {
        std::thread::sleep(PAUSE);
        let taken = library.ask("cold");
        for (row, taken) in sessions.iter_mut().zip(taken) {
            // The first finds nothing prepared.
            row.milliseconds.extend((round > 0).then_some(taken));
        }
    }
    let mut rows = rows(&mut library, REUSED, "reused", "docker");
    rows.extend(sessions);
    judged.rows("llm-sandbox, docker, python", &rows);
    let p50 = |name: &str| of(&rows, name, 0.5).unwrap();
    let mut bar = |what: &str, ratio: f64, most: Most| judged.bar(what.to_owned(), ratio, most);
    let warm = p50(REST_WARM);
    let least = Most::AtLeast(20.0);
    bar("llm-sandbox cold session / docker warm", p50(GONE) / warm, least);
    bar(
        "llm-sandbox cold session, without its close / docker warm",
        p50(ANSWERED) / warm,
        least,
    );
    bar(
        "docker warm / llm-sandbox reused container",
        warm / p50(REUSED),
        Most::AtMost(1.0),
    );
}
