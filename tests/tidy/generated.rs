//! The code of the gRPC API is generated from `proto`, and checked in, so that a build needs no generator.

use std::fs;

use super::root;

/// The files below `src/grpc/generated`, and their packages.
const FILES: &[(&str, &str)] = &[("health", "grpc.health.v1"), ("skillbox", "skillbox.v1")];

/// First line of a generated file. Only such files below `src/grpc/generated` are exempt from the rules for sources.
const MARK: &str = "//! Generated from `proto` by tests/tidy/generated.rs; not edited by hand.";

pub(super) fn is_generated(path: &str, text: &str) -> bool {
    path.starts_with("src/grpc/generated/") && text.starts_with(MARK)
}

/// `SKILLBOX_TEST_UPDATE=1 cargo test --test tidy generated` writes the files.
#[test]
fn generated_code_is_that_of_the_schema() {
    let schemas = ["grpc/health/v1/health.proto", "skillbox/v1/skillbox.proto"];
    let parsed = protox::compile(schemas, [root().join("proto")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .build_client(false)
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .bytes(".skillbox.v1.InputFile.content")
        .bytes(".skillbox.v1.RegisterSkillRequest.chunk")
        .out_dir(folder.path())
        .compile_fds(parsed)
        .unwrap();
    for (file, package) in FILES {
        let code = fs::read_to_string(folder.path().join(format!("{package}.rs"))).unwrap();
        let code = format!("{MARK}\n{code}");
        let path = root().join(format!("src/grpc/generated/{file}.rs"));
        if std::env::var_os("SKILLBOX_TEST_UPDATE").is_some() {
            fs::write(&path, &code).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == code,
            "{} differs from proto; run SKILLBOX_TEST_UPDATE=1 cargo test --test tidy generated",
            path.display()
        );
    }
}
