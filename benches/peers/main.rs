//! Skillbox beside its peers: one table of ratios and bars, all of a part taken in turn in one run.
//!
//! The skill reads its input, parses it, writes its output. Loopback, one connection kept, authentication on, both records
//! durable, a pause of 30 ms between samples. `cargo bench --bench peers -- --only latency,native,python` runs the parts that
//! have all of these words: `latency` or `load` or `memory`; `native`, `docker` or `llm`; a language. A peer that is not
//! installed is named and left out; `benches/peers.sh` installs them. Docker: `tests/with-engine.sh cargo bench …`.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

#[path = "../measure/bubblewrap.rs"]
mod bubblewrap;
#[path = "../measure/container.rs"]
mod container;
mod containers;
mod judged;
mod latency;
mod llm;
mod load;
#[path = "../measure/mod.rs"]
#[expect(dead_code, reason = "what benches share is more than this one needs")]
mod measure;
mod memory;
mod sandboxes;
#[path = "../../tests/it/server.rs"]
#[expect(dead_code, reason = "the tests' server has more than this bench needs")]
mod server;
mod spoken;
#[path = "../../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::process::ExitCode;

use judged::Judged;
use world::Backend;

/// What is asked for: `--only` and its words.
struct Only(Vec<String>);

impl Only {
    fn of_arguments() -> Self {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--only");
        let words = arguments.nth(1).unwrap_or_default();
        Self(
            words
                .split(',')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    fn takes(&self, part: &[&str]) -> bool {
        self.0.iter().all(|word| part.contains(&word.as_str()))
    }
}

fn main() -> ExitCode {
    // `cargo test --benches` only asks whether it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let only = Only::of_arguments();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut judged = Judged::default();
    for spoken in spoken::ALL {
        if !std::path::Path::new(spoken.interpreter).exists() {
            println!("left out: there is no {}", spoken.interpreter);
            continue;
        }
        for (backend, word) in [(Backend::Native, "native"), (Backend::Docker, "docker")] {
            if only.takes(&["latency", word, spoken.name]) {
                latency::measure(&runtime, backend, word, spoken, &mut judged);
            }
        }
    }
    if only.takes(&["latency", "llm", "native", "python"]) {
        llm::measure_native(&mut judged);
    }
    if only.takes(&["latency", "llm", "docker", "python"]) {
        llm::measure_docker(&mut judged);
    }
    for spoken in spoken::ALL {
        for (backend, word) in [(Backend::Native, "native"), (Backend::Docker, "docker")] {
            if only.takes(&["load", word, spoken.name]) {
                load::measure(&runtime, backend, word, spoken, &mut judged);
            }
        }
    }
    if only.takes(&["memory", "native"]) {
        memory::measure(&mut judged);
    }
    judged.print();
    ExitCode::from(u8::from(judged.missed() > 0))
}
