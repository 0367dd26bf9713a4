//! Blobs of a run at the command line, here and on a server.

use skillbox::ids::Digest;

use crate::cli_shell::{Shell, has_docker};
use crate::server::Server;

const LOOK: &str = "cd /blobs; for blob in *; do printf '%s=%s\\n' \"$blob\" \"$(cat \"$blob\")\"; done";

fn finds_its_blobs(shell: &Shell, skill: &str) {
    std::fs::write(shell.folder().join("data.csv"), "a,b").unwrap();
    let said = shell.json(&["run", skill, "--blob", "@data.csv"]);
    let line = format!("{}=a,b\n", Digest::of(b"a,b").hex());
    assert_eq!(said["logs"]["stdout"], line, "{said}");
    let missing = Digest::of(b"nowhere").to_string();
    let refused = shell.run(&["run", skill, "--blob", &missing]);
    assert!(
        refused.code == 3 && refused.stderr.contains(&missing),
        "{}",
        refused.stderr
    );
    for wrong in ["data.csv", "@nowhere", "@."] {
        let refused = shell.run(&["run", skill, "--blob", wrong]);
        assert_eq!(refused.code, 3, "{wrong}: {}", refused.stderr);
    }
}

#[test]
fn local_run_receives_blobs() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("looker", "lang: bash\n", "scripts/main.sh", LOOK);
    finds_its_blobs(&shell, "./looker");
}

#[test]
fn remote_run_uploads_blobs() {
    if !has_docker() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    shell.skill("looker", "lang: bash\n", "scripts/main.sh", LOOK);
    let pushed = shell.run(&["skill", "push", "./looker"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    finds_its_blobs(&shell, "looker");
    let kept = server.get("/v1/blobs").unwrap().body;
    assert_eq!(kept["items"][0]["blob_id"], Digest::of(b"a,b").to_string());
}

/// What `skillbox blob` does, in the same way here and on a server.
fn keeps_blobs(shell: &Shell) {
    let content: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    std::fs::write(shell.folder().join("big.bin"), &content).unwrap();
    std::fs::write(shell.folder().join("data.csv"), "a,b").unwrap();
    let id = Digest::of(&content).to_string();
    let put = shell.run(&["blob", "put", "big.bin"]);
    assert_eq!((put.code, put.stdout), (0, format!("{id}\n")), "{}", put.stderr);
    let again = shell.run(&["blob", "put", "big.bin"]);
    assert!(again.stderr.contains("already stored"), "{}", again.stderr);
    let csv = shell.json(&["blob", "put", "data.csv", "--ttl", "1h"]);
    assert_eq!(
        (&csv["media_type"], &csv["size"]),
        (&"text/csv".into(), &3.into())
    );
    let moment = |name: &str| csv[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let life = moment("expires_at").duration_since(moment("created_at"));
    assert_eq!(life.as_secs(), 3600);
    let csv_id = csv["blob_id"].as_str().unwrap();

    assert_eq!(shell.json(&["blob", "show", csv_id]), csv);
    let listed = shell.json(&["blob", "list"]);
    assert_eq!((&listed[0], &listed[1]["blob_id"]), (&csv, &id.as_str().into()));
    assert_eq!(shell.run(&["blob", "get", csv_id]).stdout, "a,b");
    let got = shell.run(&["blob", "get", &id, "-o", "copy.bin"]);
    assert_eq!((got.code, got.stdout.as_str()), (0, ""), "{}", got.stderr);
    assert!(std::fs::read(shell.folder().join("copy.bin")).unwrap() == content);

    assert_eq!(shell.run(&["blob", "rm", &id]).code, 0);
    for command in [["show", &id], ["get", &id], ["rm", &id]] {
        let gone = shell.run(&[&["blob"][..], &command].concat());
        assert!(
            gone.code == 3 && gone.stderr.contains(&id),
            "{command:?}: {}",
            gone.stderr
        );
    }
    for wrong in ["nowhere", "."] {
        assert_eq!(shell.run(&["blob", "put", wrong]).code, 3, "{wrong}");
    }
    assert_eq!(shell.run(&["blob", "put", "data.csv", "--ttl", "0"]).code, 2);
}

#[test]
fn stores_and_fetches_blobs_locally() {
    keeps_blobs(&Shell::new());
}

#[test]
fn stores_and_fetches_blobs_on_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    keeps_blobs(&shell);
}

/// The command printed after an execution fetches its blobs.
#[test]
fn run_prints_how_to_fetch_its_blobs() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    std::fs::write(
        shell.folder().join("make.py"),
        "from runtime import blobs\nblobs.write_text('made')\n",
    )
    .unwrap();
    let ran = shell.run(&["run", "--code", "make.py", "--format", "table"]);
    let id = Digest::of(b"made").to_string();
    let said = format!("skillbox blob get {id} --out FILE");
    assert!(ran.code == 0 && ran.stderr.contains(&said), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{id} (4 bytes)")), "{}", ran.stdout);
    assert_eq!(shell.run(&["blob", "get", &id]).stdout, "made");
}
