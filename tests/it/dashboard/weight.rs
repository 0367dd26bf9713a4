//! What the first view and the whole dashboard weigh over the network.

use std::collections::BTreeSet;

use super::source;
use crate::server::Server;

/// Bytes of all files together, and of those that the first view needs, compressed with Brotli.
const ALL_BYTES_MAX: usize = 200 * 1024;
const FIRST_BYTES_MAX: usize = 60 * 1024;

/// The compressed body of a file below `/ui/`.
fn compressed(server: &Server, path: &str) -> Vec<u8> {
    let agent: ureq::Agent = ureq::Agent::config_builder().build().into();
    let request = agent
        .get(format!("{}{path}", server.url))
        .header("accept-encoding", "br");
    let mut answer = request.call().unwrap();
    assert_eq!(
        answer
            .headers()
            .get("content-encoding")
            .map(|value| value.as_bytes()),
        Some(b"br".as_slice()),
        "{path}"
    );
    answer.body_mut().read_to_vec().unwrap()
}

fn files(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![source(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.display().to_string());
            }
        }
    }
    found
}

/// Paths in quotes after `marker` in the page.
fn linked(page: &str, markers: [&str; 2]) -> BTreeSet<String> {
    let after = markers.iter().flat_map(|marker| page.split(marker).skip(1));
    after
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| path.starts_with("/ui/"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dashboard_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let page = std::fs::read_to_string(source("web/dashboard/index.html")).unwrap();
    let first = linked(&page, ["href=\"", "src=\""]);
    assert!(first.iter().any(|path| path == "/ui/app.js"), "{first:?}");
    let size = |path: &String| compressed(&server, path).len();
    let first_bytes = compressed(&server, "/ui/").len() + first.iter().map(size).sum::<usize>();
    let is_served = |path: &str| {
        ["js", "css", "html", "svg"]
            .iter()
            .any(|end| path.ends_with(&format!(".{end}")))
    };
    let root = source("web").display().to_string();
    let all: BTreeSet<String> = [files("web/dashboard"), files("web/vendor")]
        .into_iter()
        .flatten()
        .filter(|path| is_served(path) && !path.ends_with("index.html"))
        .map(|path| path.replacen(&root, "/ui", 1).replace("/ui/dashboard/", "/ui/"))
        .collect();
    let all_bytes = compressed(&server, "/ui/").len() + all.iter().map(size).sum::<usize>();
    println!(
        "first view {first_bytes} bytes in {} files, all {all_bytes} bytes in {} files",
        first.len() + 1,
        all.len() + 1
    );
    assert!(first_bytes <= FIRST_BYTES_MAX, "{first_bytes}");
    assert!(all_bytes <= ALL_BYTES_MAX, "{all_bytes}");
}
