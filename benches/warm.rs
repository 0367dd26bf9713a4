//! How long `POST /v1/executions` takes when a sandbox has waited for it and when none has, next to the bare
//! interpreter with the same file: read the input, parse it, write the output.
//!
//! Native sandbox, authentication on, records durable, one connection kept. All run in turn with a pause between.
//! `cargo bench --bench warm` prints quantiles, ratios and bars, and exits with 1 when a bar is missed. Only a quiet machine
//! gives figures that mean something. `SKILLBOX_TEST_ROUNDS` sets the rounds.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

mod measure;
#[path = "../tests/it/server.rs"]
#[expect(dead_code, reason = "the tests' server has more than this bench needs")]
mod server;
#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use measure::{Bar, Row, Served, timed};

/// Rounds that are measured, unless the environment says otherwise.
const ROUNDS: usize = 100;
/// Rounds before those: they fill pools and caches.
const WARM_UP: usize = 5;
const PAUSE: Duration = Duration::from_millis(30);

/// One language: its interpreter on this host, and the same small skill in it.
struct Spoken {
    name: &'static str,
    interpreter: &'static str,
    file: &'static str,
    program: &'static str,
}

const LANGUAGES: [Spoken; 3] = [
    Spoken {
        name: "python",
        interpreter: "/usr/bin/python3",
        file: "main.py",
        program: "import json, os\nvalue = json.load(open(os.environ['SANDBOX_INPUT_FILE']))\njson.dump({'got': value}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n",
    },
    Spoken {
        name: "node",
        interpreter: "/usr/bin/node",
        file: "main.js",
        program: "const fs = require('fs');\nconst value = JSON.parse(fs.readFileSync(process.env.SANDBOX_INPUT_FILE));\nfs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({got: value}));\n",
    },
    Spoken {
        name: "bash",
        interpreter: "/bin/bash",
        file: "main.sh",
        program: "read -r value <\"$SANDBOX_INPUT_FILE\"\nprintf '{\"got\":%s}' \"$value\" >\"$SANDBOX_OUTPUT\"\n",
    },
];

impl Spoken {
    fn archive(&self) -> std::fs::File {
        let front = format!(
            "---\nname: {}\ndescription: Echoes\nversion: 1.0.0\nlang: {}\n---\n",
            self.name, self.name
        );
        let mut zip = zip::ZipWriter::new(tempfile::tempfile().unwrap());
        for (path, text) in [
            ("SKILL.md", front.as_str()),
            (&format!("scripts/{}", self.file), self.program),
        ] {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(path, options).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let mut file = zip.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    /// The same file by the bare interpreter.
    fn bare(&self, folder: &Path) -> f64 {
        let (input, output) = (folder.join("input.json"), folder.join("output.json"));
        let env = [
            ("SANDBOX_INPUT_FILE", input.as_path()),
            ("SANDBOX_OUTPUT", output.as_path()),
        ];
        timed(Command::new(self.interpreter).arg(folder.join(self.file)), &env)
    }
}

/// What is measured of one language.
struct Rows {
    bare: Row,
    cold: Row,
    warm: Row,
}

fn main() -> ExitCode {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let rounds = std::env::var("SKILLBOX_TEST_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let archives = || LANGUAGES.iter().map(Spoken::archive).collect();
    let cold = Served::start("0", archives());
    let warm = Served::start("8", archives());
    let mut missed = 0;
    for language in LANGUAGES {
        if !Path::new(language.interpreter).exists() {
            println!("skipped: there is no {}", language.interpreter);
            continue;
        }
        let rows = measured(&language, &cold, &warm, rounds);
        missed += judged(&language, &rows);
    }
    ExitCode::from(u8::from(missed > 0))
}

fn measured(language: &Spoken, cold: &Served, warm: &Served, rounds: usize) -> Rows {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(language.file), language.program).unwrap();
    std::fs::write(folder.path().join("input.json"), "{\"x\":1}\n").unwrap();
    let mut rows = Rows {
        bare: Row::new("bare"),
        cold: Row::new("POST, cold"),
        warm: Row::new("POST, warm"),
    };
    let mut waited = 0;
    for round in 0..WARM_UP + rounds {
        let pause = || std::thread::sleep(PAUSE);
        pause();
        let bare = language.bare(folder.path());
        pause();
        let (cold, _) = cold.once(language.name);
        pause();
        let (warm, had_waited) = warm.once(language.name);
        if round < WARM_UP {
            continue;
        }
        rows.bare.milliseconds.push(bare);
        rows.cold.milliseconds.push(cold);
        rows.warm.milliseconds.push(warm);
        waited += usize::from(had_waited);
    }
    println!(
        "\n{}: {waited} of {rounds} runs found a sandbox that waited",
        language.name
    );
    rows
}

/// Prints rows and bars; how many bars were missed.
fn judged(language: &Spoken, Rows { bare, cold, warm }: &Rows) -> usize {
    for row in [bare, cold, warm] {
        row.print();
    }
    let bar = |ours, most| Bar {
        ours,
        theirs: bare,
        most,
    };
    let bars = match language.name {
        "python" => vec![bar(cold, 1.35), bar(warm, 0.35)],
        "node" => vec![bar(cold, 1.15), bar(warm, 0.3)],
        // A sandbox waits, and no interpreter of Bash; its bar is a sum.
        _ => {
            let more = |row: &Row| row.quantile(0.5) - bare.quantile(0.5);
            let (cold, warm) = (more(cold), more(warm));
            println!("POST - bare: cold {cold:.2} ms, warm {warm:.2} ms, bar 2.5");
            return usize::from(cold > 2.5) + usize::from(warm > 2.5);
        }
    };
    let missed = bars.iter().filter(|bar| !bar.is_kept()).count();
    let p99 = |row: &Row, most: f64| {
        let ratio = row.quantile(0.99) / bare.quantile(0.5);
        println!("p99 of it / median of bare: {ratio:.2}, bar {most}");
        usize::from(ratio > most)
    };
    match language.name {
        "python" => missed + p99(cold, 2.0) + p99(warm, 1.0),
        _ => missed,
    }
}
