//! What an upgrade must not change: the API document, metric names, settings, and data folders of earlier releases (F-27).
//!
//! `tests/baseline` was recorded with the release before the code was restructured. Add to it when something is added.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::cli_shell::Shell;
use crate::receiver::{Answer, Receiver};
use crate::server::{Server, eventually};
use crate::world::{Backend, World};

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/baseline")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Fails with the lines that were lost or added.
pub(crate) fn assert_same_lines(current: &BTreeSet<String>, name: &str) {
    let text = recorded(name);
    let recorded: BTreeSet<_> = text.lines().map(ToOwned::to_owned).collect();
    let lost: Vec<_> = recorded.difference(current).collect();
    let added: Vec<_> = current.difference(&recorded).collect();
    assert!(
        lost.is_empty() && added.is_empty(),
        "tests/baseline/{name}: lost {lost:#?}, added {added:#?}"
    );
}

/// The document without its prose. Members of `properties`, `schemas` and so on are names of the API, `description` included.
fn without_prose(value: &Value, holds_names: bool) -> Value {
    const NAMES: [&str; 5] = ["properties", "schemas", "responses", "headers", "parameters"];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                holds_names || !value.is_string() || !["description", "summary"].contains(&name.as_str())
            });
            let stripped = kept.map(|(name, value)| {
                let holds_names = NAMES.contains(&name.as_str()) && value.is_object();
                (name.clone(), without_prose(value, holds_names))
            });
            Value::Object(stripped.collect())
        }
        Value::Array(items) => items.iter().map(|item| without_prose(item, false)).collect(),
        other => other.clone(),
    }
}

#[test]
fn openapi_document_matches_baseline() {
    let current = without_prose(&skillbox::http::document(), false);
    let recorded: Value = serde_json::from_str(&recorded("openapi.json")).unwrap();
    let paths = |document: &Value| {
        let paths = document["paths"].as_object().unwrap();
        paths.keys().cloned().collect::<BTreeSet<_>>()
    };
    assert_eq!(paths(&current), paths(&recorded));
    for section in ["paths", "components"] {
        for (name, value) in recorded[section].as_object().unwrap() {
            assert_eq!(&current[section][name], value, "{section}: {name}");
        }
    }
    assert_eq!(current, recorded);
}

#[test]
fn settings_match_baseline() {
    let settings = skillbox::config::SETTINGS;
    let lines = settings.iter().map(|setting| {
        let default = (!setting.default.is_empty()).then_some(setting.default);
        format!("{} {} {}\n", setting.key, setting.variable, json!(default))
    });
    assert_eq!(lines.collect::<String>(), recorded("settings.txt"));
    // `config` shows them in this order, without those that have no effect in this build.
    let shown = Shell::new().json(&["config"]);
    let mut rest = settings.iter();
    for row in shown.as_array().unwrap() {
        let setting = rest.find(|setting| row["key"] == setting.key);
        let setting = setting.unwrap_or_else(|| panic!("unknown or out of order: {row}"));
        assert_eq!(row["variable"], setting.variable);
        if row["source"] == "default" {
            assert_eq!(
                row["value"].as_str().unwrap_or_default(),
                setting.default,
                "{row}"
            );
        }
    }
}

/// Unpacks the recorded data folder and moves its times to now: keys of requests expire after a day.
fn data_folder(folder: &Path, receiver_port: u16) -> PathBuf {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/baseline/data-folder.tar.gz");
    let archive = std::fs::File::open(archive).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive))
        .unpack(folder)
        .unwrap();
    let data = folder.join("data");
    let database = rusqlite::Connection::open(data.join("skillbox.db")).unwrap();
    let newest: i64 = database
        .query_row("select max(created_at) from executions", [], |row| row.get(0))
        .unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let shift = i64::try_from(now.as_micros()).unwrap() - newest;
    for (table, columns) in [
        ("executions", &["created_at", "finished_at"][..]),
        ("idempotency_keys", &["created_at"]),
        ("deliveries", &["created_at", "last_at", "next_at"]),
    ] {
        for column in columns {
            let sql = format!("update {table} set {column} = {column} + ?1");
            database.execute(&sql, [shift]).unwrap();
        }
    }
    let url = format!("http://127.0.0.1:{receiver_port}/hook");
    let moved = database.execute("update deliveries set url = ?1", [url]).unwrap();
    assert_eq!(moved, 1);
    data
}

const FINISHED: &str = "01a205ba-f6ba-770c-8e9c-44b583be0ab8";
const QUEUED: &str = "01a205bb-02a9-7664-99c4-af3e7bdf20d3";
/// As it was sent: no number may be written another way.
const INPUT: &str = r#"{"n": 1e5, "big": 12345678901234567890123}"#;

/// F-27: the server that wrote the folder was killed: one execution had ended, one ran, one was queued, one webhook was due.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn opens_data_folder_of_earlier_release() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let data = data_folder(folder.path(), receiver.port);
    let server = Server::start_with(
        &data,
        &[
            ("SKILLBOX_SANDBOX_BACKEND", "native"),
            ("SKILLBOX_WEBHOOKS_ALLOW_HTTP", "true"),
            ("SKILLBOX_WEBHOOKS_ALLOW_PRIVATE", "127.0.0.1"),
        ],
    );

    let webhook = receiver.next().await;
    assert_eq!(webhook.json()["data"]["execution_id"], FINISHED);

    let finished = server.get(&format!("/v1/executions/{FINISHED}")).unwrap().body;
    assert_eq!(finished["status"], "success");
    assert_eq!(finished["output_preview"], INPUT);
    assert_eq!(finished["logs"]["stdout"], "a line of the log\n");
    let parts = server
        .get(&format!("/v1/executions/{FINISHED}/logs?timestamps=true"))
        .unwrap();
    assert_eq!(
        parts.body["parts"],
        json!([{"time": null, "stream": "stdout", "text": "a line of the log\n"}])
    );
    assert_eq!(finished["files_list"], json!(["note.txt"]));
    let file = text(&server, &format!("/v1/executions/{FINISHED}/files/note.txt"));
    assert_eq!(file, "kept by an earlier release\n");

    // The request that was sent under this key before the upgrade is found again, and another one is a conflict.
    let request =
        format!(r#"{{"skill":"leave-a-file","input":{INPUT},"callback_url":"http://127.0.0.1:18098/hook"}}"#);
    let again = post_with_key(&server, "finished", &request);
    assert_eq!((again.0, &again.1["execution_id"]), (200, &json!(FINISHED)));
    let other = post_with_key(&server, "finished", r#"{"skill":"leave-a-file"}"#);
    assert_eq!((other.0, &other.1["code"]), (422, &json!("key_reused")));

    eventually("the queued execution succeeds", || {
        let queued = server.get(&format!("/v1/executions/{QUEUED}")).unwrap().body;
        queued["status"] == "success" && queued["output_preview"] == INPUT
    });
    let request = format!(r#"{{"skill":"leave-a-file","mode":"async","input":{INPUT},"timeout":30}}"#);
    let again = post_with_key(&server, "queued", &request);
    assert_eq!(again.1["execution_id"], QUEUED);

    let list = server.get("/v1/executions?status=interrupted").unwrap().body;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");

    assert_same_lines(&metric_names(&text(&server, "/metrics")), "metrics.txt");
}

fn text(server: &Server, path: &str) -> String {
    let request = ureq::get(format!("{}{path}", server.url));
    let request = request.header("authorization", format!("Bearer {}", server.key()));
    request.call().unwrap().body_mut().read_to_string().unwrap()
}

fn post_with_key(server: &Server, key: &str, body: &str) -> (u16, Value) {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent: ureq::Agent = config
        .timeout_global(Some(Duration::from_secs(60)))
        .build()
        .into();
    let request = agent
        .post(format!("{}/v1/executions", server.url))
        .header("authorization", format!("Bearer {}", server.key()))
        .header("content-type", "application/json")
        .header("idempotency-key", key);
    let mut response = request.send(body).unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), serde_json::from_str(&text).unwrap())
}

/// `name type` of each metric, and `sample{labels}` of each sample.
fn metric_names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with("# HELP"));
    let named = lines.map(|line| {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            return kind.to_owned();
        }
        let (sample, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.split("\",").filter_map(|label| label.split_once('='));
        let labels: BTreeSet<_> = labels.map(|(label, _)| label).collect();
        format!("{name}{{{}}}", labels.into_iter().collect::<Vec<_>>().join(","))
    });
    named.collect()
}
