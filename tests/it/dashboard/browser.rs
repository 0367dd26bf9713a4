//! A Chromium that tests drive, and what it reports.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::world::missing;

/// How long a page may take to show something, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Chromium without a network of its own: every host but this machine is unknown.
const ARGUMENTS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// How a page is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// In CSS pixels.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scheme: &'static str,
}

/// The widths and colour schemes in which each page is looked at.
pub(crate) const VIEWS: [View; 4] = [
    View {
        width: 1440,
        height: 900,
        scheme: "light",
    },
    View {
        width: 1440,
        height: 900,
        scheme: "dark",
    },
    View {
        width: 390,
        height: 844,
        scheme: "light",
    },
    View {
        width: 390,
        height: 844,
        scheme: "dark",
    },
];

/// A browser with one tab. Its processes end when it is dropped.
pub(crate) struct Browser {
    client: Client,
    _driver: Child,
    _profile: tempfile::TempDir,
}

/// A command of Chromium's driver that WebDriver does not have.
#[derive(Debug)]
struct DriverCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for DriverCommand {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (axum::http::Method, Option<String>) {
        (axum::http::Method::POST, Some(self.body.to_string()))
    }
}

impl Browser {
    /// `None` (and the reason) where this machine has no Chromium.
    pub(crate) async fn open() -> Option<Self> {
        let mut driver = Command::new("chromedriver");
        driver
            .args(["--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let Ok(mut driver) = driver.spawn() else {
            missing(
                "browser",
                "chromedriver is not installed; run tests/with-browser.sh COMMAND",
            );
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines
                .next_line()
                .await
                .unwrap()
                .expect("chromedriver prints its port");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let profile = tempfile::tempdir().unwrap();
        let mut arguments: Vec<String> = ARGUMENTS.iter().map(ToString::to_string).collect();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "unhandledPromptBehavior": "ignore",
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!("an object, as written above")
        };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Some(Self {
            client,
            _driver: driver,
            _profile: profile,
        })
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    pub(crate) async fn url(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    /// The value of a script, which returns it.
    pub(crate) async fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.client.execute(script, arguments.to_vec()).await.unwrap()
    }

    /// The value of a script that calls its last argument with it.
    pub(crate) async fn run_async(&self, script: &str, arguments: &[Value]) -> Value {
        self.client
            .execute_async(script, arguments.to_vec())
            .await
            .unwrap()
    }

    /// Waits until a script returns something other than `false`, `null`, `0` and an empty text.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Value {
        let started = Instant::now();
        loop {
            // A navigation may interrupt a script.
            let value = self
                .client
                .execute(script, Vec::new())
                .await
                .unwrap_or(Value::Null);
            let holds = !matches!(&value, Value::Null | Value::Bool(false))
                && value != json!(0)
                && value != json!("");
            if holds {
                return value;
            }
            if started.elapsed() > PATIENCE {
                let text = self
                    .run("return location.href + '\\n' + document.body.innerText", &[])
                    .await;
                let console = self.console().await;
                panic!(
                    "{what} did not come true; {}\nconsole: {console:?}",
                    text.as_str().unwrap_or_default()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn until_text(&self, text: &str) {
        let script = format!("return document.body.innerText.includes({})", json!(text));
        self.until(text, &script).await;
    }

    /// Presses the visible link, button, tab or option with this name.
    pub(crate) async fn press(&self, name: &str) {
        let script = format!(
            "{FIND}const found = find({}); if (!found) return false; found.click(); return true",
            json!(name)
        );
        self.until(&format!("`{name}` to press"), &script).await;
    }

    /// Presses the one button of the page that is not quiet.
    pub(crate) async fn press_primary(&self, name: &str) {
        let script = format!(
            "{FIND}const found = all('main .btn.primary').find((element) => nameOf(element).startsWith({})); if (!found) return false; found.click(); return true",
            json!(name)
        );
        self.until(&format!("the primary button `{name}`"), &script).await;
    }

    /// Writes into the field with this label, as a person does.
    pub(crate) async fn write(&self, label: &str, text: &str) {
        let script = format!("{FIND}return field({})", json!(label));
        self.until(
            &format!("a field `{label}`"),
            &format!("{FIND}return !!field({})", json!(label)),
        )
        .await;
        let element = self.client.execute(&script, Vec::new()).await.unwrap();
        let id = element
            .as_object()
            .and_then(|object| object.values().next())
            .and_then(Value::as_str)
            .unwrap();
        let element =
            fantoccini::elements::Element::from_element_id(self.client.clone(), id.to_owned().into());
        element.clear().await.unwrap();
        element.send_keys(text).await.unwrap();
    }

    /// A command of the DevTools protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        let path = "goog/cdp/execute";
        self.client.issue_cmd(DriverCommand { path, body }).await.unwrap()
    }

    pub(crate) async fn show_as(&self, view: View) {
        let size = json!({"width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": view.width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([
            {"name": "prefers-color-scheme", "value": view.scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features}))
            .await;
    }

    /// Messages of the console since the last call, among them refusals of the content security policy.
    pub(crate) async fn console(&self) -> Vec<String> {
        let (path, body) = ("se/log", json!({"type": "browser"}));
        let lines = self.client.issue_cmd(DriverCommand { path, body }).await.unwrap();
        let lines = lines.as_array().cloned().unwrap_or_default();
        lines
            .iter()
            .map(|line| {
                format!(
                    "{} {}",
                    line["level"].as_str().unwrap_or_default(),
                    line["message"].as_str().unwrap_or_default()
                )
            })
            .collect()
    }

    /// The text of an open dialog, such as that of `alert()`.
    pub(crate) async fn dialog(&self) -> Option<String> {
        self.client.get_alert_text().await.ok()
    }

    /// Saves what the page shows.
    pub(crate) async fn screenshot(&self, file: &Path) {
        let picture = self.client.screenshot().await.unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, picture).unwrap();
    }
}

/// Finds what a person would press, by its visible or accessible name, and fields by their label.
const FIND: &str = r"
const isShown = (element) => element.getClientRects().length > 0;
const nameOf = (element) => (element.getAttribute('aria-label') || element.innerText || element.value || '').trim();
const all = (selector) => [...document.querySelectorAll(selector)].filter(isShown);
const find = (name) => {
    // A button before a link of the same name, such as a tab.
    const pressable = [...all('button, [role=tab], [role=button], [role=menuitem], option, summary, label'), ...all('a[href]')];
    return pressable.find((element) => nameOf(element) === name)
        || pressable.find((element) => nameOf(element).split('\n').map((line) => line.trim()).includes(name))
        || pressable.find((element) => nameOf(element).startsWith(name));
};
const field = (label) => all('input, textarea, select').find((element) => {
    const labels = [...(element.labels || [])].map((each) => each.innerText.trim());
    const names = [element.getAttribute('aria-label'), element.placeholder, ...labels.flatMap((text) => text.split('\n'))];
    return names.some((name) => name && [label, `${label} required`].includes(name.trim()));
});
";
