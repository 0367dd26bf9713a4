//! A server that plays the part of a model: it answers chat completions by a script and remembers the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use serde_json::{Value, json};

/// One answer of the model.
pub(crate) enum Turn {
    /// Calls this tool with these arguments.
    Calls(&'static str, Value),
    /// Answers with what it makes of the last tool result.
    Answers(fn(&str) -> String),
}

/// A running model. Its thread ends with the script or the test process.
pub(crate) struct ScriptedModel {
    pub(crate) url: String,
    requests: mpsc::Receiver<Value>,
}

impl ScriptedModel {
    pub(crate) fn start(turns: Vec<Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for turn in turns {
                let (stream, _) = listener.accept().unwrap();
                sender.send(play(stream, &turn)).unwrap();
            }
        });
        Self { url, requests }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.try_iter().collect()
    }
}

/// Answers one request and returns it.
fn play(mut stream: TcpStream, turn: &Turn) -> Value {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    let mut head = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let message = match turn {
        Turn::Calls(name, arguments) => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]}),
        Turn::Answers(answer) => {
            json!({"role": "assistant", "content": answer(last["content"].as_str().unwrap())})
        }
    };
    let answer = json!({"choices": [{"message": message}]}).to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )
    .unwrap();
    request
}
