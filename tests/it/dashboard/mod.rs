//! The dashboard in a real browser, over a real server with native sandboxes.

mod browser;
mod hostile;
mod journey;
mod logs;
mod looks;
mod sessions;
mod weight;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli_shell::Shell;
use crate::server::Server;

pub(crate) use browser::{Browser, VIEWS, View};

/// A server, and a browser that is signed in to it as the administrator.
pub(crate) struct Dashboard {
    pub(crate) server: Server,
    pub(crate) browser: Browser,
    _folder: tempfile::TempDir,
}

impl Dashboard {
    /// A fresh installation; `None` (and the reason) where this machine has no browser.
    pub(crate) async fn open() -> Option<Self> {
        let browser = Browser::open().await?;
        let folder = tempfile::tempdir().unwrap();
        // No engine, so that sandboxes are native.
        let server = Server::start_with(
            &folder.path().join("data"),
            &[("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock")],
        );
        let dashboard = Self {
            server,
            browser,
            _folder: folder,
        };
        dashboard.browser.show_as(VIEWS[0]).await;
        dashboard.sign_in().await;
        Some(dashboard)
    }

    /// A link that signs in once.
    pub(crate) fn link(&self) -> String {
        let link = self.server.post_json("/v1/session/links", &json!({}));
        assert_eq!(link.status, 201, "{}", link.body);
        link.body["url"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn sign_in(&self) {
        self.browser.goto(&self.link()).await;
        self.browser
            .until("the overview", "return document.title.includes('Overview')")
            .await;
    }

    pub(crate) async fn visit(&self, path: &str) {
        self.browser.goto(&format!("{}{path}", self.server.url)).await;
        self.is_loaded().await;
    }

    /// Waits until the page shows its content and no placeholder.
    pub(crate) async fn is_loaded(&self) {
        let script = "return !!document.querySelector('main')?.innerText.trim() && !document.querySelector('.skeleton')";
        self.browser.until("a loaded page", script).await;
    }

    /// A command line over this server.
    pub(crate) fn shell(&self) -> Shell {
        Shell::new()
            .with("SKILLBOX_SERVER_URL", &self.server.url)
            .with("SKILLBOX_API_KEY", &self.server.key())
    }

    /// Runs a request to its end.
    pub(crate) fn execute(&self, request: &Value) -> Value {
        let answer = self.server.post_json("/v1/executions", request);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}

/// A file of this repository.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where pictures of pages are kept, for people to look at.
pub(crate) fn picture(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_skillbox")).parent().unwrap();
    target.join("dashboard-pictures").join(format!("{name}.png"))
}
