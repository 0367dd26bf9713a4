//! Text of programs, skills and keys that tries to become a part of the page (W-01 to W-05).

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::Dashboard;

/// A server of an attacker, which notes the first line of each connection.
struct Trap {
    url: String,
    hits: Arc<Mutex<Vec<String>>>,
}

impl Trap {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let hits = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&hits);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, noted) = (stream.unwrap(), Arc::clone(&noted));
                std::thread::spawn(move || {
                    let mut head = [0; 200];
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                    let read = stream.read(&mut head).unwrap_or(0);
                    let head = String::from_utf8_lossy(&head[..read]).into_owned();
                    noted
                        .lock()
                        .unwrap()
                        .push(head.lines().next().unwrap_or("no request").to_owned());
                });
            }
        });
        Self { url, hits }
    }

    fn hits(&self) -> Vec<String> {
        self.hits.lock().unwrap().clone()
    }
}

/// More than a hundred texts that run a script or load something where text becomes HTML, an address, a style or a template.
fn payloads(trap: &Trap) -> Vec<String> {
    let url = &trap.url;
    let scripts = [
        "alert(1)".to_owned(),
        "window.hacked=1".to_owned(),
        format!("fetch('{url}')"),
        format!("location='{url}'"),
        format!("new Image().src='{url}'"),
    ];
    let mut all: Vec<String> = Vec::new();
    for script in &scripts {
        all.extend([
            format!("<script>{script}</script>"),
            format!("</script><script>{script}</script>"),
            format!("<img src=x onerror={script}>"),
            format!("<svg onload={script}>"),
            format!("<svg><script>{script}</script></svg>"),
            format!("<body onload={script}>"),
            format!("<input autofocus onfocus={script}>"),
            format!("<details open ontoggle={script}>"),
            format!("<video><source onerror={script}></video>"),
            format!("<a href=\"javascript:{script}\">x</a>"),
            format!("[x](javascript:{script})"),
            format!("[x](<javascript:{script}>)"),
            format!("![x](javascript:{script})"),
            format!("\"><img src=x onerror={script}>"),
            format!("'><img src=x onerror={script}>"),
            format!("--><img src=x onerror={script}>"),
            format!("]]><img src=x onerror={script}>"),
            format!("</title><img src=x onerror={script}>"),
            format!("</textarea><img src=x onerror={script}>"),
            format!("</style><img src=x onerror={script}>"),
            format!("<math><mtext><table><mglyph><style><img src=x onerror={script}>"),
        ]);
    }
    all.extend([
        format!("<img src={url}>"),
        format!("![x]({url}/x.png)"),
        format!("<link rel=stylesheet href={url}>"),
        format!("<iframe src={url}></iframe>"),
        format!("<object data={url}></object>"),
        format!("<form action={url}><button autofocus>x</button></form>"),
        format!("<meta http-equiv=refresh content=\"0;url={url}\">"),
        format!("<base href={url}>"),
        format!("<style>@import '{url}';</style>"),
        "${window.hacked=1}".to_owned(),
        "{{constructor.constructor('window.hacked=1')()}}".to_owned(),
        "\u{202e}gnp.exe\u{2066}".to_owned(),
    ]);
    all
}

/// A program that writes the payloads wherever a program can write.
const WRITES: &str = r"
import os, sys
class Shown:
    def __init__(self, text): self.text = text
    def _repr_markdown_(self): return self.text
def main(args):
    for number, payload in enumerate(args['payloads']):
        print(payload)
        print(payload, file=sys.stderr)
        name = ''.join(c for c in payload if c not in '/\0')[:60]
        with open(os.path.join(os.environ['SANDBOX_FILES_DIR'], '%03d%s' % (number, name)), 'w') as file:
            file.write(payload)
        if number < 60:
            display(Shown(payload))
    raise ValueError('\n'.join(args['payloads']))
";

#[tokio::test(flavor = "multi_thread")]
async fn text_from_outside_never_becomes_part_of_the_page() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let trap = Trap::open();
    let payloads = payloads(&trap);
    assert!(payloads.len() >= 100, "{}", payloads.len());
    let program = json!({"code": WRITES, "language": "python", "args": {"payloads": payloads}});
    let failed = dashboard.execute(&program);
    assert_eq!(failed["status"], "failed", "{failed:#}");
    let shell = dashboard.shell();
    let all = payloads.join("\n\n");
    let line = payloads.join(" ").replace(['\u{202e}', '\u{2066}'], "");
    shell.skill(
        "hostile",
        &format!("title: {}\nversion: 1.0.0\n", json!(line)),
        "scripts/main.py",
        &all,
    );
    let skill_md = shell.folder().join("hostile/SKILL.md");
    let text = format!(
        "---\nname: hostile\ndescription: {}\nversion: 1.0.0\n---\n\n{all}\n",
        json!(line)
    );
    std::fs::write(skill_md, text).unwrap();
    let pushed = shell.run(&["skill", "push", "hostile"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    for payload in &payloads {
        let name: String = payload.chars().filter(|c| !c.is_control()).take(60).collect();
        let key = dashboard
            .server
            .post_json("/v1/keys", &json!({"name": name, "scopes": ["run"]}));
        assert!(key.status == 201 || key.status == 400, "{}", key.body);
    }
    let id = failed["execution_id"].as_str().unwrap();
    let browser = &dashboard.browser;
    browser.console().await;
    for path in [
        "/ui/",
        "/ui/executions",
        &format!("/ui/executions/{id}"),
        "/ui/skills",
        "/ui/skills/hostile/1.0.0",
        "/ui/skills/hostile/1.0.0?tab=files",
        "/ui/security/keys",
        "/ui/security/audit",
        "/ui/connect",
        "/ui/executions?skill=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "/ui/skills/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "/ui/%22onmouseover=alert(1)",
    ] {
        dashboard.visit(path).await;
        assert_eq!(browser.dialog().await, None, "{path}");
        let hacked = browser.run("return window.hacked || document.querySelectorAll('main script, main base, main meta, main object').length", &[]).await;
        assert_eq!(hacked, json!(0), "{path}");
        let console = browser.console().await;
        let refusals: Vec<_> = console
            .iter()
            .filter(|line| line.contains("Content Security Policy") || line.contains("TrustedHTML"))
            .collect();
        assert!(refusals.is_empty(), "{path}: {refusals:?}");
    }
    assert_eq!(trap.hits(), [""; 0]);
    browser
        .run(
            "document.querySelectorAll('a[href^=\"javascript\"]').forEach((link) => link.click())",
            &[],
        )
        .await;
    assert_eq!(browser.dialog().await, None);
    assert_eq!(trap.hits(), [""; 0]);
}

/// W-04: HTML and SVG results are shown without scripts, and fetch nothing.
#[tokio::test(flavor = "multi_thread")]
async fn html_results_run_no_script_and_load_nothing() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let trap = Trap::open();
    let url = &trap.url;
    let elements = [
        format!("<img src='{url}/img'><img srcset='{url}/srcset 1x'><picture><source srcset='{url}/source'><img></picture>"),
        format!("<link rel=stylesheet href='{url}/css'><link rel=icon href='{url}/icon'><link rel=preload as=image href='{url}/preload'>"),
        format!("<iframe srcdoc='&lt;link rel=preconnect href={url}>'></iframe><LINK rel=preconnect href='{url}' crossorigin>"),
        format!("<link rel=prefetch href='{url}/prefetch'><link rel=dns-prefetch href='{url}'><link rel=preconnect href='{url}'>"),
        format!("<script src='{url}/js'></script><script>parent.hacked=1;top.hacked=1;alert(1)</script>"),
        format!("<iframe src='{url}/frame'></iframe><frameset><frame src='{url}/frame'></frameset><object data='{url}/object'></object><embed src='{url}/embed'>"),
        format!("<video src='{url}/video' poster='{url}/poster' autoplay></video><audio src='{url}/audio' autoplay></audio><track src='{url}/track'>"),
        format!("<style>@import '{url}/import'; @font-face {{ font-family: x; src: url({url}/font) }} body {{ font-family: x; background: url({url}/bg); cursor: url({url}/cursor), auto }}</style>"),
        format!("<meta http-equiv=refresh content='0;url={url}/refresh'><base href='{url}/'><form action='{url}/form'><input autofocus onfocus=this.form.submit()></form>"),
        format!("<svg><image href='{url}/svg-image'/><use href='{url}/use#x'/><script href='{url}/svg-js'/><foreignObject><img src='{url}/foreign'></foreignObject></svg>"),
        format!("<a href='{url}/link' ping='{url}/ping' id=a>x</a><table background='{url}/table'><tr><td background='{url}/td'></table><input type=image src='{url}/input'>"),
    ]
    .concat();
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10' onload='alert(1)'><script>alert(1)</script><image href='{url}/image' width='10' height='10'/><style>@import '{url}/import';</style></svg>"
    );
    let code = "class Html:\n    def _repr_html_(self): return self.text\nclass Svg:\n    def _repr_svg_(self): return self.text\n\
                def main(args):\n    for shown, text in [(Html(), args['html']), (Svg(), args['svg'])]:\n        \
                shown.text = text\n        display(shown)\n";
    let shown = dashboard
        .execute(&json!({"code": code, "language": "python", "args": {"html": elements, "svg": svg}}));
    assert_eq!(shown["status"], "success", "{shown:#}");
    let id = shown["execution_id"].as_str().unwrap();
    dashboard.visit(&format!("/ui/executions/{id}")).await;
    let browser = &dashboard.browser;
    browser
        .until(
            "frames of both results",
            "return document.querySelectorAll('iframe').length >= 2",
        )
        .await;
    // An element that loads something does so within a moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(browser.dialog().await, None);
    let frames = "return [...document.querySelectorAll('iframe')].every((frame) => frame.getAttribute('sandbox') === '' && !frame.hasAttribute('srcdoc'))";
    assert_eq!(browser.run(frames, &[]).await, json!(true));
    assert_eq!(browser.run("return window.hacked || 0", &[]).await, json!(0));
    assert_eq!(trap.hits(), [""; 0]);
}
