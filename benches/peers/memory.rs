//! What a server and what waits in it hold, as the kernel counts it.

use std::fs;
use std::time::Duration;

use crate::judged::{Judged, Most};
use crate::measure::Served;
use crate::spoken::{NODE, PYTHON, Spoken};

/// CPU time of a process and its threads, without its children, in seconds.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: f64 = [11, 12]
        .iter()
        .map(|at| fields[*at].parse::<f64>().unwrap())
        .sum();
    ticks / 100.0
}

/// One field of `/proc/<pid>/<file>` in MiB, all lines of it added up.
pub(crate) fn mib(pid: u32, file: &str, field: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with(field));
    let kib = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.sum::<f64>() / 1024.0
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let words: Vec<String> = texts
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

/// A process and all below it.
fn family(pid: u32) -> Vec<u32> {
    let below = children(pid).into_iter().flat_map(family);
    std::iter::once(pid).chain(below).collect()
}

/// Private memory of each sandbox below the server in which an interpreter waits.
fn waiting(server: u32, interpreter: &str) -> Vec<f64> {
    let is_waiting = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == interpreter)
    };
    let sandboxes = children(server).into_iter().map(family);
    let warm = sandboxes.filter(|family| family.iter().any(is_waiting));
    warm.map(|family| {
        family
            .iter()
            .map(|pid| mib(*pid, "smaps_rollup", "Private_"))
            .sum()
    })
    .collect()
}

pub(crate) fn measure(judged: &mut Judged) {
    judged.line(String::new());
    judged.line("memory of a native server, MiB".to_owned());
    let served = Served::start_with(
        &[("SKILLBOX_SANDBOX_BACKEND", "native")],
        vec![PYTHON.archive(), NODE.archive()],
    );
    let pid = served.server.process.id();
    std::thread::sleep(Duration::from_secs(2));
    let idle = mib(pid, "status", "VmRSS:");
    judged.line(format!(
        "  idle: RSS {idle:.1}, of it anonymous {:.1}",
        mib(pid, "status", "RssAnon:")
    ));
    judged.bar("idle server, RSS in MiB".to_owned(), idle, Most::AtMost(20.0));
    slots(&served, &PYTHON, 5.0, judged);
    slots(&served, &NODE, 15.0, judged);
    judged.line(format!(
        "  after those runs: RSS {:.1}, of it anonymous {:.1}",
        mib(pid, "status", "VmRSS:"),
        mib(pid, "status", "RssAnon:")
    ));
}

fn slots(served: &Served, spoken: &Spoken, most: f64, judged: &mut Judged) {
    if !std::path::Path::new(spoken.interpreter).exists() {
        return;
    }
    for _ in 0..50 {
        served.once(spoken.name);
    }
    std::thread::sleep(Duration::from_millis(500));
    let interpreter = if spoken.name == "python" {
        "python3"
    } else {
        "node"
    };
    let mut held = waiting(served.server.process.id(), interpreter);
    held.sort_by(f64::total_cmp);
    let Some(middle) = held.get(held.len() / 2) else {
        return judged.line(format!("  no {interpreter} waits"));
    };
    judged.line(format!(
        "  {} of {interpreter} wait, private each with its PID 1: {held:.1?}",
        held.len()
    ));
    judged.bar(
        format!("a waiting {}, private MiB", spoken.name),
        *middle,
        Most::AtMost(most),
    );
}
