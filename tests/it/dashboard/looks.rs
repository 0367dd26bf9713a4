//! Each page in both colour schemes and on a wide and a narrow screen: accessible, and never wider than the screen.

use serde_json::{Value, json};

use super::{Dashboard, VIEWS, View, picture, source};
use crate::world::missing;

/// Set for `.ci/run --full`: each page in each view, not only in two.
const EACH_VIEW: &str = "SKILLBOX_TEST_EACH_VIEW";

/// Rules of WCAG 2.0 to 2.2, levels A and AA.
const RULES: [&str; 5] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

fn views() -> Vec<View> {
    match std::env::var_os(EACH_VIEW) {
        Some(_) => VIEWS.to_vec(),
        None => vec![VIEWS[0], VIEWS[3]],
    }
}

/// axe-core, or `None` (and the reason) where npm has not fetched it.
fn axe() -> Option<String> {
    let path = source("web/node_modules/axe-core/axe.min.js");
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        missing(
            "browser",
            "axe-core is not fetched; run tests/with-browser.sh COMMAND",
        );
    }
    text
}

const STATIC_PAGES: [(&str, &str); 10] = [
    ("overview", "/ui/"),
    ("executions", "/ui/executions"),
    ("skills", "/ui/skills"),
    ("playground", "/ui/playground"),
    ("promises", "/ui/security/promises"),
    ("keys", "/ui/security/keys"),
    ("secrets", "/ui/security/secrets"),
    ("usage", "/ui/security/usage"),
    ("audit", "/ui/security/audit"),
    ("connect", "/ui/connect"),
];

impl Dashboard {
    /// Looks at pages in each view, and returns what is wrong.
    async fn faults(&self, state: &str, pages: &[(String, String)], axe: &str) -> Vec<String> {
        let mut faults = Vec::new();
        for view in views() {
            self.browser.show_as(view).await;
            for (name, path) in pages {
                self.visit(path).await;
                let place = format!("{state}-{name}-{}-{}", view.width, view.scheme);
                self.browser.screenshot(&picture(&place)).await;
                let wide =
                    "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
                let wider = self.browser.run(wide, &[]).await;
                if wider != json!(0) {
                    faults.push(format!("{place}: wider than the screen by {wider} px"));
                }
                // Evaluated by the driver, which the page's policy does not concern.
                self.browser.run(axe, &[]).await;
                let check = "axe.run(document, {runOnly: arguments[0]}).then((found) => arguments[1](found.violations))";
                let found = self.browser.run_async(check, &[json!(RULES)]).await;
                faults.extend(violations(&found).map(|fault| format!("{place}: {fault}")));
                let console = self.browser.console().await;
                let errors = console
                    .iter()
                    .filter(|line| line.starts_with("SEVERE") && !line.contains("Failed to load resource"));
                faults.extend(errors.map(|line| format!("{place}: {line}")));
            }
        }
        faults
    }
}

fn violations(found: &Value) -> impl Iterator<Item = String> {
    let found = found.as_array().expect("axe returns a list");
    found.iter().map(|rule| {
        let nodes = rule["nodes"].as_array().into_iter().flatten();
        let targets: Vec<_> = nodes
            .map(|node| {
                node["html"]
                    .as_str()
                    .unwrap_or_default()
                    .chars()
                    .take(120)
                    .collect::<String>()
            })
            .collect();
        format!(
            "{}: {}",
            rule["id"].as_str().unwrap_or_default(),
            targets.join(" | ")
        )
    })
}

fn named(pages: &[(&str, &str)]) -> Vec<(String, String)> {
    pages
        .iter()
        .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_pages_are_accessible_and_fit() {
    let (Some(dashboard), Some(axe)) = (Dashboard::open().await, axe()) else {
        return;
    };
    let faults = dashboard.faults("empty", &named(&STATIC_PAGES), &axe).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// With a result of each kind, failures of each kind, a published skill, keys and secrets.
#[tokio::test(flavor = "multi_thread")]
async fn full_pages_are_accessible_and_fit() {
    let (Some(dashboard), Some(axe)) = (Dashboard::open().await, axe()) else {
        return;
    };
    let mut pages = named(&STATIC_PAGES);
    for (name, request) in dashboard.programs() {
        let id = dashboard.execute(&request)["execution_id"]
            .as_str()
            .unwrap()
            .to_owned();
        pages.push((name.to_owned(), format!("/ui/executions/{id}")));
    }
    let shell = dashboard.shell();
    for skill in ["text-summary", "lead-scoring"] {
        let pushed = shell.run(&[
            "skill",
            "push",
            source("examples/skills").join(skill).to_str().unwrap(),
        ]);
        assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    }
    for (name, tab) in [
        ("run", ""),
        ("text", "?tab=text"),
        ("files", "?tab=files"),
        ("versions", "?tab=versions"),
        ("checks", "?tab=checks"),
        ("use", "?tab=use"),
    ] {
        pages.push((
            format!("skill-{name}"),
            format!("/ui/skills/lead-scoring/latest{tab}"),
        ));
    }
    dashboard
        .server
        .post_json("/v1/keys", &json!({"name": "an agent", "scopes": ["run"]}));
    let faults = dashboard.faults("full", &pages, &axe).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What does not exist, and a key that may not see most pages.
#[tokio::test(flavor = "multi_thread")]
async fn failing_pages_are_accessible_and_fit() {
    let (Some(dashboard), Some(axe)) = (Dashboard::open().await, axe()) else {
        return;
    };
    let pages = [
        (
            "no-execution",
            "/ui/executions/019a0000-0000-7000-8000-000000000000",
        ),
        ("no-skill", "/ui/skills/nosuch/1.0.0"),
        ("no-page", "/ui/nosuch"),
    ];
    let mut faults = dashboard.faults("failing", &named(&pages), &axe).await;
    let key = dashboard
        .server
        .post_json("/v1/keys", &json!({"name": "publisher", "scopes": ["skills"]}))
        .body;
    let key = key["api_key"].as_str().unwrap().to_owned();
    dashboard.browser.show_as(VIEWS[0]).await;
    dashboard.visit("/ui/").await;
    dashboard.browser.press("Sign out").await;
    dashboard.browser.write("API key", &key).await;
    dashboard.browser.press("Sign in").await;
    dashboard.is_loaded().await;
    let pages = [
        ("no-scope-overview", "/ui/"),
        ("no-scope-playground", "/ui/playground"),
        ("no-scope-keys", "/ui/security/keys"),
    ];
    faults.extend(dashboard.faults("failing", &named(&pages), &axe).await);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

impl Dashboard {
    fn programs(&self) -> [(&'static str, Value); 5] {
        let results = "import os\nprint('\\x1b[32mgreen\\x1b[0m and plain')\n\
            class Html:\n    def _repr_html_(self): return '<table><tr><th>a</th></tr><tr><td>1</td></tr></table>'\n\
            class Text:\n    def _repr_markdown_(self): return '# Title\\n\\n* one\\n* two\\n\\n`code`'\n\
            display(Html())\ndisplay(Text())\nopen(os.environ['SANDBOX_FILES_DIR'] + '/table.csv', 'w').write('a,b\\n1,2\\n')\n\
            {'total': 12345678901234567890, 'ratio': 0.10, 'list': [1, {'deep': None}]}\n";
        [
            ("success", json!({"code": results, "language": "python"})),
            (
                "failed",
                json!({"code": "def f(n):\n    return [][n]\n\nf(3)\n", "language": "python"}),
            ),
            (
                "timeout",
                json!({"code": "import time\nprint('begun', flush=True)\ntime.sleep(60)\n", "language": "python", "timeout": 1}),
            ),
            (
                "oom",
                json!({"code": "x = bytearray(2 << 30)\n", "language": "python"}),
            ),
            (
                "many-lines",
                json!({"code": "for n in range(5000): print('line', n, 'x' * (n % 300))\n", "language": "python"}),
            ),
        ]
    }
}
