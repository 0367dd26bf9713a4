//! What a person does on the first evening, from the link to a key of the own.

use serde_json::{Value, json};

use super::Dashboard;

/// Drops a zip of a folder on the page.
const DROP: &str = r"
const [name, files, done] = arguments;
(async () => {
    const {zip} = await import('/ui/zip.js');
    const zipped = await zip(files.map(([path, text]) => ({path: `${name}/${path}`, file: new File([text], path.split('/').pop())})));
    const transfer = new DataTransfer();
    transfer.items.add(new File([zipped], `${name}.zip`, {type: 'application/zip'}));
    for (const type of ['dragenter', 'dragover', 'drop']) {
        document.querySelector('main').dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: transfer}));
    }
})().then(() => done(null), (error) => done(String(error)));
";

const SKILL_MD: &str = "---\nname: counter\ndescription: Counts to a number, slowly.\nversion: 1.0.0\nlang: python\ninput_schema:\n  type: object\n  \
    required: [upto]\n  properties:\n    upto: {type: integer, minimum: 1, maximum: 9, description: The last number.}\n    word: {type: string}\n---\n\n# Counter\n";

const PROGRAM: &str = "import json, os, sys, time\ninput = json.load(open(os.environ['SANDBOX_INPUT_FILE']))\n\
    for number in range(1, input['upto'] + 1):\n    print('number', number, flush=True)\n    time.sleep(0.3)\n\
    open(os.path.join(os.environ['SANDBOX_FILES_DIR'], 'numbers.csv'), 'w').write('number\\n1\\n')\n\
    if input.get('word') == 'fail':\n    raise ValueError('asked to fail')\n\
    json.dump({'counted': input['upto']}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n";

#[tokio::test(flavor = "multi_thread")]
async fn first_evening() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let browser = &dashboard.browser;
    browser.until_text("Nothing has run yet").await;
    publishes_and_runs_a_skill(&dashboard).await;
    finds_a_failure_and_runs_it_again(&dashboard).await;
    makes_and_revokes_a_key(&dashboard).await;
}

async fn publishes_and_runs_a_skill(dashboard: &Dashboard) {
    let browser = &dashboard.browser;
    // A skill is dropped, checked and published.
    dashboard.visit("/ui/skills").await;
    let files = json!([["SKILL.md", SKILL_MD], ["scripts/main.py", PROGRAM]]);
    assert_eq!(
        browser.run_async(DROP, &[json!("counter"), files]).await,
        Value::Null
    );
    browser
        .until(
            "the published skill",
            "return !!document.querySelector('main a[href^=\"/ui/skills/counter/\"]')",
        )
        .await;

    // It runs by a form; its output arrives while it runs.
    dashboard.visit("/ui/skills/counter/latest").await;
    browser.until_text("upto").await;
    browser.write("upto", "4").await;
    browser.press_primary("Run").await;
    browser.until("live output", "return document.body.innerText.includes('number 1') && !document.body.innerText.includes('number 4')").await;
    browser.until_text("number 4").await;
    browser.until_text("Success").await;
    browser.press("Open execution").await;
    browser.until_text("numbers.csv").await;
}

async fn finds_a_failure_and_runs_it_again(dashboard: &Dashboard) {
    let browser = &dashboard.browser;
    let failed = dashboard.execute(&json!({"skill": "counter", "input": {"upto": 1, "word": "fail"}}));
    assert_eq!(failed["status"], "failed", "{failed:#}");
    dashboard.visit("/ui/executions").await;
    browser.press("Failed").await;
    browser.until("one row", "return location.search.includes('failed') && document.querySelectorAll('main a[href^=\"/ui/executions/\"]').length === 1").await;
    browser
        .run(
            "document.querySelector('main a[href^=\"/ui/executions/\"]').click()",
            &[],
        )
        .await;
    browser
        .until(
            "the failure",
            "return location.pathname !== '/ui/executions' && document.body.innerText.includes('exited with code 1')",
        )
        .await;
    browser.press("stderr").await;
    browser.until_text("asked to fail").await;
    let before = browser.url().await;
    browser.press("Run again").await;
    browser.press("Version 1.0.0").await;
    browser
        .until(
            "the new execution",
            &format!(
                "return location.href !== {} && document.body.innerText.includes('exited with code 1')",
                json!(before)
            ),
        )
        .await;
}

/// A key is shown once and used in a session of its own, which ends when the key is revoked.
async fn makes_and_revokes_a_key(dashboard: &Dashboard) {
    let browser = &dashboard.browser;
    dashboard.visit("/ui/security/keys").await;
    browser.press("New key").await;
    browser.write("Name", "laptop").await;
    browser.press("Create key").await;
    let key = browser
        .until(
            "the key",
            "const found = document.body.innerText.match(/skb_[A-Za-z0-9_-]{47}/); return found && found[0]",
        )
        .await;
    let used = ureq_get(
        &format!("{}/v1/session", dashboard.server.url),
        key.as_str().unwrap(),
    );
    assert_eq!(used.0, 200, "{}", used.1);
    assert_eq!(used.1["key"]["name"], "laptop");
    let id = used.1["key"]["id"].as_str().unwrap().to_owned();
    dashboard.visit("/ui/").await;
    browser.press("Sign out").await;
    browser.write("API key", key.as_str().unwrap()).await;
    browser.press("Sign in").await;
    browser.until_text("laptop").await;
    let revoked = dashboard.server.delete(&format!("/v1/keys/{id}"));
    assert!(revoked.status < 300, "{}", revoked.body);
    browser
        .goto(&format!("{}/ui/executions", dashboard.server.url))
        .await;
    browser
        .until(
            "the sign-in page",
            "return !!document.querySelector('input[type=password]')",
        )
        .await;
}

fn ureq_get(url: &str, key: &str) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let mut answer = agent
        .get(url)
        .header("authorization", format!("Bearer {key}"))
        .call()
        .unwrap();
    (
        answer.status().as_u16(),
        answer.body_mut().read_json().unwrap_or(Value::Null),
    )
}

/// The playground streams code of three languages.
#[tokio::test(flavor = "multi_thread")]
async fn playground_runs_code_and_shows_results() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let browser = &dashboard.browser;
    dashboard.visit("/ui/playground").await;
    browser.until("the editor", "return [...document.querySelectorAll('*')].some((element) => element.shadowRoot?.querySelector('.cm-content'))").await;
    browser.press("Run").await;
    browser.until_text("Success").await;
}
