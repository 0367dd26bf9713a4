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
fn a_run_here_is_given_blobs() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("looker", "lang: bash\n", ("scripts/main.sh", LOOK));
    finds_its_blobs(&shell, "./looker");
}

#[test]
fn a_run_on_a_server_is_sent_blobs_which_it_keeps() {
    if !has_docker() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    shell.skill("looker", "lang: bash\n", ("scripts/main.sh", LOOK));
    let pushed = shell.run(&["skill", "push", "./looker"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    finds_its_blobs(&shell, "looker");
    let kept = server.get("/v1/blobs").unwrap().body;
    assert_eq!(kept["items"][0]["blob_id"], Digest::of(b"a,b").to_string());
}
