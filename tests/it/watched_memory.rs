//! What it costs a server that many watch and nothing happens.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::server::{Server, own_memory_kib};
use crate::world::{Backend, World};

const READERS: usize = 1000;
/// In KiB, of all of them; the documents promise it.
const READERS_KIB_MAX: u64 = 32 * 1024;

///
#[tokio::test(flavor = "multi_thread")]
async fn thousand_idle_readers_use_little_memory() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    // One connection each, here and in the server, which inherits this.
    let mut open_files = getrlimit(Resource::Nofile);
    open_files.current = open_files.maximum;
    setrlimit(Resource::Nofile, open_files).unwrap();
    tokio::task::spawn_blocking(many_readers).await.unwrap();
}

fn many_readers() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("SKILLBOX_SANDBOX_BACKEND", "native"), ("SKILLBOX_LOG", "warn")];
    let server = Server::start_with(&folder.path().join("data"), &env);
    let code = "import time\nprint('on', flush=True)\ntime.sleep(100)";
    let asked = server.post_json("/v1/executions", &json!({"code": code, "mode": "async"}));
    let id = asked.body["execution_id"].as_str().unwrap();
    let request = format!(
        "GET /v1/executions/{id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        server.key()
    );
    let reader = || {
        let mut reader = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
        reader.write_all(request.as_bytes()).unwrap();
        reader
    };
    let until_printed = |reader: &mut TcpStream| {
        let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&heard).contains("event: stdout") {
            let read = reader.read(&mut buffer).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&buffer[..read]);
        }
    };
    let mut first = reader();
    until_printed(&mut first);
    let before = own_memory_kib(server.process.id());
    let mut readers: Vec<_> = (0..READERS).map(|_| reader()).collect();
    readers.iter_mut().for_each(until_printed);
    let after = own_memory_kib(server.process.id());
    println!("{READERS} readers: {before} KiB, then {after}");
    assert!(after <= before + READERS_KIB_MAX, "{before} KiB, then {after}");
    let ended = server.post(&format!("/v1/executions/{id}/cancel"), "application/json", b"");
    assert_eq!(ended.status, 200);
    for reader in &mut readers {
        // To the end: over HTTP/1.1 that is an empty chunk.
        let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
        while !heard.ends_with(b"0\r\n\r\n") {
            let read = reader.read(&mut buffer).unwrap();
            assert!(read > 0, "it broke off");
            heard.extend_from_slice(&buffer[..read]);
        }
        assert!(String::from_utf8_lossy(&heard).contains("event: end"));
    }
}
