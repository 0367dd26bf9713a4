//! Very large logs and lists stay quick, with few nodes in the page.

use serde_json::{Value, json};

use super::Dashboard;

/// Milliseconds on an idle machine, from the specification; a machine that is busy with other tests gets more.
const FIRST_LINES_MS: f64 = 200.0;
const JUMP_MS: f64 = 100.0;
const BUSY_MACHINE: f64 = 6.0;
const NODES_MAX: u64 = 120;

/// Shows a generated log and jumps in it; calls back with times in milliseconds and the largest number of line nodes.
const MEASURE: &str = r"
const [kind, done] = arguments;
const text = {
    lines: () => Array.from({length: 170000}, (_, n) => `line ${n} of a long log, padded to its size \x1b[32mok\x1b[0m`).join('\n') + '\n',
    empty: () => '\n'.repeat(1048571),
    one: () => 'x'.repeat(1048576),
}[kind]();
const frame = () => new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
(async () => {
    const {html, render} = await import('/ui/vendor/preact.js');
    const {Logs, LogView} = await import('/ui/components/logs.js');
    const host = document.createElement('div');
    document.querySelector('main').append(host);
    const logs = new Logs();
    const begun = performance.now();
    logs.add('stdout', text);
    logs.changed();
    render(html`<${LogView} logs=${logs} running=${false} />`, host);
    while (!host.querySelector('.log-scroll')?.childElementCount) await frame();
    await frame();
    const first = performance.now() - begun;
    const scroll = host.querySelector('.log-scroll');
    let nodes = 0, jump = 0;
    for (const share of [0.5, 0.99, 0.01, 1, 0.25]) {
        const from = performance.now();
        scroll.scrollTop = share * (scroll.scrollHeight - scroll.clientHeight);
        await frame();
        jump = Math.max(jump, performance.now() - from);
        nodes = Math.max(nodes, scroll.querySelectorAll('.log-line').length);
    }
    const last = [...scroll.querySelectorAll('.log-line')].map((line) => line.innerText.trim());
    render(null, host);
    host.remove();
    return {bytes: text.length, first, jump, nodes, shown: last.length};
})().then(done, (error) => done({error: String(error)}));
";

#[tokio::test(flavor = "multi_thread")]
async fn large_logs_stay_quick() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    dashboard.visit("/ui/executions").await;
    for kind in ["lines", "empty", "one"] {
        let measured = dashboard.browser.run_async(MEASURE, &[json!(kind)]).await;
        println!("{kind}: {measured}");
        assert!(measured["error"].is_null(), "{measured}");
        assert!(
            measured["nodes"].as_u64().unwrap() <= NODES_MAX,
            "{kind}: {measured}"
        );
        assert!(measured["shown"].as_u64().unwrap() > 0, "{kind}: {measured}");
        let is_quick = |name: &str, bar: f64| measured[name].as_f64().unwrap() <= bar * BUSY_MACHINE;
        assert!(
            is_quick("first", FIRST_LINES_MS) && is_quick("jump", JUMP_MS),
            "{kind}: {measured}"
        );
    }
}

/// Numbers as the program wrote them, control characters visible, `\r` as a terminal shows it.
#[tokio::test(flavor = "multi_thread")]
async fn execution_shows_exactly_what_a_program_wrote() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let code = "import os, sys\n\
                open(os.environ['SANDBOX_OUTPUT'], 'w').write('{\"large\": 12345678901234567890, \"ratio\": 0.10, \"tiny\": 1e-400}')\n\
                sys.stdout.write('loading 10 %\\rloading 99 %\\n\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07after\\n\\u202egnp.exe\\n')\n";
    let done = dashboard.execute(&json!({"code": code, "language": "python"}));
    let id = done["execution_id"].as_str().unwrap();
    dashboard.visit(&format!("/ui/executions/{id}")).await;
    for text in [
        "12345678901234567890",
        "0.10",
        "1e-400",
        "loading 99 %",
        "red after",
        "⟨U+202E⟩gnp.exe",
    ] {
        dashboard.browser.until_text(text).await;
    }
    let shown = dashboard
        .browser
        .run("return document.querySelector('main').innerText", &[])
        .await;
    // The code follows, with what it prints.
    let (shown, _code) = shown.as_str().unwrap().split_once("\nRequest\n").unwrap();
    assert!(
        !shown.contains("loading 10 %") && !shown.contains("title\u{7}") && !shown.contains('\u{202e}'),
        "{shown}"
    );
    let red: Value = dashboard.browser.run("return [...document.querySelectorAll('.log-scroll span')].some((span) => span.innerText === 'red' && span.className !== '')", &[]).await;
    assert_eq!(red, json!(true));
}
