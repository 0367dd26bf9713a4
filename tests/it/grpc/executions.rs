//! `ExecutionService` over a scripted sandbox.

use serde_json::{Value, json};

use super::client::{ask, bytes, text};
use crate::http::client::{Call, TestServer};

const RUN: &str = "ExecutionService/RunSkill";

#[tokio::test]
async fn returns_every_part_of_an_execution() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let input = "{\"n\": 9007199254740993,  \"s\": \"\\u0000\"}";
    let message = json!({"skill": "probe", "input": bytes(input), "args": ["exit=3", "shows"],
        "files": [{"path": "report.txt", "content": bytes("hello")}]});
    let run = ask(&server, RUN, message).await.only();
    assert_eq!(run["status"], "EXECUTION_STATUS_FAILED");
    assert_eq!(
        (&run["exit_code"], &run["error"]["code"]),
        (&json!(3), &json!("exit_code"))
    );
    assert_eq!(text(&run["output"]), input, "byte for byte");
    let logs = &run["logs"];
    assert_eq!(logs["stdout"], bytes(b"out \xff\n"), "byte for byte");
    assert_eq!(
        (&logs["truncated"], text(&logs["stderr"])),
        (&json!(true), "err\n".to_owned())
    );
    assert_eq!(run["files"][0]["path"], "report.txt");
    assert_eq!(run["results"][0]["forms"]["text"], bytes("1"));
    let url = run["files"][0]["url"].as_str().unwrap();
    assert!(url.starts_with("http://localhost:8080/v1/executions/"), "{url}");
    let path = url.strip_prefix("http://localhost:8080").unwrap();
    assert_eq!(
        server.send(Call::get(path)).await.text(),
        "hello",
        "the link needs no key"
    );

    let shown = json!({"execution_id": run["execution_id"]});
    let shown = ask(&server, "ExecutionService/GetExecution", shown).await.only();
    assert_eq!(without_links(shown), without_links(run.clone()));
    let less = json!({"execution_id": run["execution_id"], "omit": ["EXECUTION_PART_LOGS", "EXECUTION_PART_OUTPUT"]});
    let less = ask(&server, "ExecutionService/GetExecution", less).await.only();
    assert_eq!(
        less["omitted"],
        json!(["EXECUTION_PART_LOGS", "EXECUTION_PART_OUTPUT"])
    );
    assert_eq!((&less["logs"]["stdout"], less.get("output")), (&json!(""), None));
}

/// Links are signed with the time of their expiry.
fn without_links(mut run: Value) -> Value {
    run["files_url"] = Value::Null;
    run["files"][0]["url"] = Value::Null;
    run["results"][0]["urls"] = Value::Null;
    run
}

#[tokio::test]
async fn runs_code_in_each_language() {
    let server = TestServer::open().await;
    for (language, expected) in [("", "python"), ("node", "node"), ("bash", "bash")] {
        let message = json!({"code": "1", "language": language, "input": bytes("[1]")});
        let run = ask(&server, "ExecutionService/RunCode", message).await.only();
        assert_eq!(
            (&run["language"], text(&run["output"])),
            (&json!(expected), "[1]".to_owned())
        );
        assert!(run.get("skill").is_none());
    }
}

#[tokio::test]
async fn streams_events_up_to_the_end() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let message = json!({"skill": {"skill": "probe", "input": bytes("7")}});
    let outcome = ask(&server, "ExecutionService/RunSkillStream", message).await;
    assert_eq!(outcome.status, 0, "{}", outcome.message);
    let events = &outcome.messages;
    let names: Vec<&str> = events
        .iter()
        .map(|event| {
            let members = event.as_object().unwrap().keys();
            members
                .map(String::as_str)
                .find(|name| *name != "cursor")
                .unwrap()
        })
        .collect();
    assert_eq!(
        (names[0], names[names.len() - 2], names[names.len() - 1]),
        ("status", "result", "end")
    );
    assert!(
        names.contains(&"stdout") && names.contains(&"stderr"),
        "{names:?}"
    );
    assert_eq!(
        events[events.len() - 1]["end"],
        json!({"status": "EXECUTION_STATUS_SUCCESS", "reason": "END_REASON_FINISHED"})
    );
    assert_eq!(text(&events[events.len() - 2]["result"]["output"]), "7");

    let less = json!({"code": {"code": "1"}, "omit": ["EXECUTION_PART_LOGS"]});
    let outcome = ask(&server, "ExecutionService/RunSkillStream", less).await;
    assert!(outcome.messages.iter().all(|event| event.get("stdout").is_none()));
    let neither = ask(&server, "ExecutionService/RunSkillStream", json!({})).await;
    assert_eq!(neither.code(), "invalid");
}

#[tokio::test]
async fn continues_logs_after_a_cursor() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let run = ask(&server, RUN, json!({"skill": "probe"})).await.only();
    let id = &run["execution_id"];
    let logs = async |message: Value| {
        let mut message = message;
        message["execution_id"] = id.clone();
        let outcome = ask(&server, "ExecutionService/GetExecutionLogs", message).await;
        assert_eq!(outcome.status, 0, "{}", outcome.message);
        outcome.messages
    };
    let all = logs(json!({})).await;
    assert_eq!(all, logs(json!({"follow": true})).await);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["stdout"], bytes(b"out \xff\n"));
    let rest = logs(json!({"cursor": all[0]["cursor"]})).await;
    assert_eq!(rest, all[1..]);
    let one = logs(json!({"source": "LOG_SOURCE_STDERR"})).await;
    assert_eq!((one.len(), &one[0]["stderr"]), (1, &json!(bytes("err\n"))));
    assert_eq!(logs(json!({"source": "LOG_SOURCE_LOG"})).await, [json!(null); 0]);
    let wrong = json!({"execution_id": id, "cursor": "7"});
    let wrong = ask(&server, "ExecutionService/GetExecutionLogs", wrong).await;
    assert_eq!(wrong.code(), "invalid");
    assert!(wrong.message.starts_with("cursor: "), "{}", wrong.message);
}

#[tokio::test]
async fn lists_in_pages_and_by_status() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    for n in 0..3 {
        let message = json!({"skill": "probe", "args": [format!("exit={n}")]});
        ask(&server, RUN, message).await.only();
    }
    let list = "ExecutionService/ListExecutions";
    let (mut found, mut token) = (Vec::new(), json!(""));
    loop {
        let page = ask(&server, list, json!({"page_size": 2, "page_token": token}))
            .await
            .only();
        found.extend(page["executions"].as_array().unwrap().clone());
        token = page["next_page_token"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(
        found
            .iter()
            .map(|run| run["exit_code"].clone())
            .collect::<Vec<_>>(),
        [2, 1, 0]
    );
    let failed = json!({"statuses": ["EXECUTION_STATUS_FAILED"], "skill": "probe"});
    let failed = ask(&server, list, failed).await.only();
    assert_eq!(failed["executions"].as_array().unwrap().len(), 2);
    let unknown = ask(&server, list, json!({"statuses": [99]})).await;
    assert_eq!(unknown.code(), "invalid");
}

#[tokio::test]
async fn async_run_is_answered_before_its_end() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let queued = ask(&server, RUN, json!({"skill": "probe", "mode": "MODE_ASYNC"}))
        .await
        .only();
    let wait = json!({"execution_id": queued["execution_id"], "wait": 30});
    let ended = ask(&server, "ExecutionService/GetExecution", wait).await.only();
    assert_eq!(ended["status"], "EXECUTION_STATUS_SUCCESS");
    let cancelled = json!({"execution_id": queued["execution_id"]});
    let cancelled = ask(&server, "ExecutionService/CancelExecution", cancelled)
        .await
        .only();
    assert_eq!(cancelled["status"], "EXECUTION_STATUS_SUCCESS", "it had ended");
}
