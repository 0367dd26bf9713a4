//! Code with real packages: tables and figures become results without a change to the code.

use base64::Engine as _;
use serde_json::json;
use skillbox::execution::{Raised, RichResult};
use skillbox::sandbox::{Completion, Report};

use crate::packages::{self, Bare};
use crate::world::Backend;

#[tokio::test]
async fn container_returns_tables_and_figures() {
    tables_and_figures_are_shown(Backend::Docker).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn native_sandbox_returns_tables_and_figures() {
    tables_and_figures_are_shown(Backend::Native).await;
}

async fn tables_and_figures_are_shown(backend: Backend) {
    let Some(bare) = Bare::on(backend).await else {
        return;
    };
    let interpreter = bare.python(include_str!("probes/interpreter.py"), None).await;
    let Some(folder) = packages::installed(&interpreter) else {
        return;
    };
    let samples = Samples {
        bare,
        deps: packages::dependencies(&folder),
    };
    samples.tables().await;
    samples.figures().await;
    samples.others().await;
    samples.bare.close().await;
}

/// The samples that need packages, on one backend.
struct Samples {
    bare: Bare,
    deps: skillbox::sandbox::Dependencies,
}

impl Samples {
    async fn run(&self, name: &str) -> Report {
        let path = format!("{}/tests/samples/packages/{name}.py", env!("CARGO_MANIFEST_DIR"));
        let mut job = packages::job("", Some(self.deps.clone()));
        job.program.argv = ["python3", "/sandbox/runtime/_skillbox/main.py", "code"]
            .map(ToOwned::to_owned)
            .to_vec();
        job.program.code = Some(std::fs::read_to_string(path).unwrap());
        job.program.input = crate::world::json(r#"{"numbers": [1, 2, 3]}"#);
        let report = self.bare.run(&job).await;
        println!(
            "{name}: {:?} {}",
            report.end,
            String::from_utf8_lossy(&report.logs.stderr)
        );
        report
    }

    async fn results(&self, name: &str) -> Vec<RichResult> {
        let report = self.run(name).await;
        assert_eq!(report.end, Completion::Exited(0), "{name}");
        report.shown.results
    }

    async fn tables(&self) {
        let results = self.results("dataframe").await;
        assert_eq!(results.len(), 1);
        let data: serde_json::Value =
            serde_json::from_str(results[0].data.as_ref().unwrap().as_str()).unwrap();
        assert_eq!(
            (&data["city"], &data["people"]),
            (&json!(["Bern", "Oslo"]), &json!([134_794, 709_037]))
        );
        assert!(
            data["since"][0]
                .as_str()
                .unwrap()
                .starts_with("1191-01-01T00:00:00")
                && data["since"][1].is_null()
        );
        assert!(
            results[0].html.as_ref().unwrap().contains("<table"),
            "{results:?}"
        );
        assert!(results[0].text.as_ref().unwrap().contains("Oslo") && results[0].is_main_result);

        let results = self.results("dataframe-long").await;
        let data: serde_json::Value =
            serde_json::from_str(results[0].data.as_ref().unwrap().as_str()).unwrap();
        assert_eq!(data["n"].as_array().unwrap().len(), 1000);
        assert_eq!(results[0].truncated, ["data"]);
    }

    async fn figures(&self) {
        for (name, count) in [("two-figures", 2), ("figure-as-result", 1)] {
            let results = self.results(name).await;
            assert_eq!(results.len(), count, "{name}: {results:?}");
            for result in &results {
                assert_image(result);
            }
        }
        let report = self.run("figure-and-error").await;
        assert_eq!(report.end, Completion::Exited(1));
        assert_image(&report.shown.results[0]);
        assert!(
            matches!(report.shown.raised, Some(Raised::Exception(raised)) if raised.name == "ValueError")
        );
    }

    async fn others(&self) {
        let report = self.run("numpy-not-json").await;
        assert_eq!(
            report.shown.raised,
            Some(Raised::NotJson(
                "$.count is a numpy.int64; return only dicts, lists, texts, numbers, booleans and None"
                    .to_owned()
            ))
        );
        assert_image(&self.results("pillow").await[0]);
    }
}

fn assert_image(result: &RichResult) {
    let png = base64::engine::general_purpose::STANDARD
        .decode(result.png.as_ref().unwrap())
        .unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n"), "{result:?}");
}
