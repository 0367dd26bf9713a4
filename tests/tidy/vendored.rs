//! Compares the vendored JavaScript of `web/vendor` with the checksums in its `vendor.json`, and refuses files that are not listed there.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::root;

const FOLDER: &str = "web/vendor";

/// Each file of the folder by its path in it.
fn files() -> BTreeMap<String, Vec<u8>> {
    let folder = root().join(FOLDER);
    let mut pending = vec![folder.clone()];
    let mut found = BTreeMap::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let relative = path.strip_prefix(&folder).unwrap();
            let name = relative.to_str().unwrap().replace('\\', "/");
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn record() -> Value {
    let text = fs::read_to_string(root().join(FOLDER).join("vendor.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// All files that the record lists with their checksum, which files written by hand lack.
fn listed(record: &Value) -> BTreeMap<String, Option<String>> {
    let checksum = |entry: &Value| Some(entry["sha256"].as_str().unwrap().to_owned());
    let bundles = record["bundles"].as_object().unwrap().iter();
    let packages = record["packages"].as_object().unwrap().values();
    let by_hand = record["by_hand"].as_array().unwrap().iter();
    bundles
        .map(|(name, bundle)| (name.clone(), checksum(bundle)))
        .chain(packages.map(|entry| (entry["text"].as_str().unwrap().to_owned(), checksum(entry))))
        .chain(by_hand.map(|name| (name.as_str().unwrap().to_owned(), None)))
        .chain([("vendor.json".to_owned(), None)])
        .collect()
}

fn faults(record: &Value, files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let listed = listed(record);
    let mut found = Vec::new();
    for (name, checksum) in &listed {
        let Some(bytes) = files.get(name) else {
            found.push(format!("{name} is missing"));
            continue;
        };
        if checksum
            .as_ref()
            .is_some_and(|checksum| *checksum != sha256(bytes))
        {
            found.push(format!(
                "{name} is not what was vendored: run {FOLDER}/revendor.sh"
            ));
        }
    }
    let unlisted = files.keys().filter(|name| !listed.contains_key(*name));
    found.extend(unlisted.map(|name| format!("{name} is not listed in vendor.json")));
    for (bundle, entry) in record["bundles"].as_object().unwrap() {
        for package in entry["packages"].as_array().unwrap() {
            if record["packages"].get(package.as_str().unwrap()).is_none() {
                found.push(format!("{bundle}: {package} has no licence and no integrity"));
            }
        }
    }
    found
}

#[test]
fn vendored_files_match_their_checksums() {
    assert_eq!(faults(&record(), &files()), [""; 0]);
}

#[test]
fn vendored_packages_are_the_locked_ones() {
    let lock = fs::read_to_string(root().join("web/package-lock.json")).unwrap();
    let lock: Value = serde_json::from_str(&lock).unwrap();
    for (package, entry) in record()["packages"].as_object().unwrap() {
        let (name, version) = package.rsplit_once('@').unwrap();
        let locked = &lock["packages"][format!("node_modules/{name}")];
        assert_eq!(locked["version"], version, "{package}");
        assert_eq!(locked["integrity"], entry["integrity"], "{package}");
        let licence = entry["licence"].as_str().unwrap();
        assert!(["MIT", "Apache-2.0"].contains(&licence), "{package}: {licence}");
    }
}

#[test]
fn changed_missing_and_unlisted_files_are_reported() {
    let record = record();
    let mut changed = files();
    changed.get_mut("preact.js").unwrap().push(b'\n');
    assert_eq!(faults(&record, &changed).len(), 1);
    let mut missing = files();
    missing.remove("licences/marked.txt").unwrap();
    assert_eq!(faults(&record, &missing), ["licences/marked.txt is missing"]);
    let mut unlisted = files();
    unlisted.insert("licences/extra.js".to_owned(), Vec::new());
    assert_eq!(
        faults(&record, &unlisted),
        ["licences/extra.js is not listed in vendor.json"]
    );
    let mut anonymous = record.clone();
    anonymous["packages"].as_object_mut().unwrap().remove("htm@3.1.1");
    assert!(
        faults(&anonymous, &files())
            .iter()
            .any(|fault| fault.contains("no licence")),
        "a package without an entry is not reported"
    );
}
