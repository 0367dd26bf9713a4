//! What reaches a program: its paths, its environment and its input, and how none of them leads further.

use serde_json::json;
use skillbox::error::Code;
use skillbox::skill::Language;

use crate::outcomes::output;
use crate::sandbox_oracles::{Attack, ObservedWorld};

/// S-19: refused before there is a sandbox.
#[tokio::test]
async fn rejects_entrypoints_and_files_outside_their_folder() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let paths = [
        "/proc/self/fd/8",
        "/proc/1/cwd",
        "..",
        "../main.sh",
        "scripts/../../x",
        "scripts/./main.sh",
        "-c",
        "/bin/sh",
        "scripts",
        "absent.sh",
    ];
    for path in paths {
        let attack = Attack::plain(Language::Bash, "true").front_matter(&format!("entrypoint: \"{path}\"\n"));
        assert_eq!(
            watched.try_execution(attack).await.unwrap_err().code(),
            Code::Invalid,
            "{path:?}"
        );
    }
    for path in [
        "/proc/self/fd/8",
        "../out/output.json",
        "a/../../x",
        "",
        "a//b",
        "./a",
        "a\0b",
    ] {
        let mut attack = Attack::plain(Language::Bash, "true");
        attack.ask.files = vec![skillbox::sandbox::InputFile {
            path: path.to_owned(),
            content: "x".into(),
        }];
        assert_eq!(
            watched.try_execution(attack).await.unwrap_err().code(),
            Code::Invalid,
            "{path:?}"
        );
    }
    // A working directory cannot be asked for at all.
    let attack = Attack::plain(Language::Bash, "echo \"\\\"$PWD\\\"\" >$SANDBOX_OUTPUT").front_matter(
        "workdir: /proc/self/fd/8\nworking_dir: /etc\nuser: root\nprivileged: true\nnetwork: host\n",
    );
    assert_eq!(watched.verdicts(attack).await, "/workspace");
    assert_eq!(watched.has_made().await, 1);
    watched.close().await;
}

/// The names that skill authors were promised, sorted; with those that bash adds for itself.
pub(crate) fn environment_names() -> Vec<&'static str> {
    let mut names = vec![
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "PYTHONPATH",
        "PYTHONNOUSERSITE",
        "NODE_PATH",
        "npm_config_offline",
        "SANDBOX_INPUT_FILE",
        "SANDBOX_OUTPUT",
        "SANDBOX_FILES_DIR",
        "SKILL_NAME",
        "SKILL_VERSION",
        "SANDBOX_INPUT",
        "SKILL_INSTRUCTIONS",
        "PWD",
        "SHLVL",
        "_",
    ];
    names.sort_unstable();
    names
}

/// S-29, P11: neither the server's environment nor a manifest's wishes get in.
#[tokio::test]
async fn environment_has_only_promised_variables() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let wishes = "env: { LD_PRELOAD: /x, BASH_ENV: /x, PATH: /evil, WISH: 1 }\nenvironment: [PYTHONSTARTUP=/x]\nmetadata: { skillbox.env: NODE_OPTIONS=--require=/x }\n";
    let program = "verdicts.update(os.environ)\nverdicts['argv'] = sys.argv\nconclude()";
    let seen = watched
        .verdicts(Attack::python(program).front_matter(wishes))
        .await;
    let expected = json!({
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/sandbox/runtime/bin:/sandbox/deps/bin:/node_modules/.bin",
        "HOME": "/workspace", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
        "PYTHONPATH": "/sandbox/runtime:/sandbox/deps", "PYTHONNOUSERSITE": "1", "NODE_PATH": "/sandbox/runtime/node_modules:/node_modules", "npm_config_offline": "true",
        "SANDBOX_INPUT": "{}", "SANDBOX_INPUT_FILE": "/sandbox/input.json",
        "SANDBOX_OUTPUT": "/sandbox/out/output.json", "SANDBOX_FILES_DIR": "/sandbox/out/files",
        "SKILL_NAME": "probe", "SKILL_VERSION": seen["SKILL_VERSION"], "SKILL_INSTRUCTIONS": seen["SKILL_INSTRUCTIONS"],
        "argv": ["/skills/probe/scripts/main.py"],
    });
    assert_eq!(seen, expected);
    assert!(
        seen["SKILL_VERSION"].as_str().unwrap().starts_with("0.0.0+"),
        "{seen:#}"
    );
    assert_eq!(seen["SKILL_INSTRUCTIONS"].as_str().unwrap().trim(), "Probe.");
    watched.close().await;
}

/// A-08: no input makes another variable, and each arrives as it was sent.
#[tokio::test]
async fn input_cannot_add_to_the_environment() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let inputs = [
        "{\n\"LD_PRELOAD=/x\":\n\"EVIL=1\"\n}".to_owned(),
        r#"["$(touch /tmp/evil)", "`id`", "%s%n%x", "'\"\\", "a\nEVIL=1\n", "\u0000", "=", "\r\n"]"#
            .to_owned(),
        format!("\"{}\"", "A=1\\n".repeat(13_000)),
        format!("[{}]", "\"LD_PRELOAD=/x\",".repeat(7_000) + "1"),
    ];
    let program = "print(json.dumps(sorted(os.environ)))\nverdicts['input'] = os.environ.get('SANDBOX_INPUT')\nverdicts['same'] = read(os.environ['SANDBOX_INPUT_FILE']).decode() == (verdicts['input'] or sys.stdin.read())\nconclude()";
    for input in inputs {
        let outcome = watched.run(Attack::python(program).input(&input)).await;
        let seen = output(&outcome);
        let inline = input.len() <= 64 * 1024;
        assert_eq!(seen["input"].as_str(), inline.then_some(input.as_str()));
        assert_eq!(seen["same"], json!(true));
        let names: Vec<String> = serde_json::from_slice(&outcome.logs.stdout).unwrap();
        let unknown: Vec<_> = names
            .iter()
            .filter(|name| !environment_names().contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    watched.close().await;
}

/// A-07: each size arrives to the byte, by file and by standard input.
#[tokio::test]
async fn delivers_inputs_of_every_size_exactly() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let cap = 10 * 1024 * 1024;
    let program = "import hashlib\nfile, stdin = read(os.environ['SANDBOX_INPUT_FILE']), sys.stdin.buffer.read()\nverdicts['digest'] = hashlib.sha256(file).hexdigest()\nverdicts['size'] = len(file)\nverdicts['stdin'] = file == stdin\nverdicts['inline'] = os.environ.get('SANDBOX_INPUT') == file.decode()\nconclude()";
    let texts = ["null", "1"].map(str::to_owned);
    let sized = [64 * 1024, 64 * 1024 + 1, 131_056, 131_057, 131_058, 1 << 20, cap]
        .map(|size: usize| format!("\"{}\"", "é".repeat((size - 2) / 2) + &"x".repeat(size % 2)));
    for text in texts.iter().chain(&sized) {
        let seen = watched.verdicts(Attack::python(program).input(text)).await;
        let digest = skillbox::ids::Digest::of(text.as_bytes());
        let expected = json!({ "digest": digest.hex(), "size": text.len(), "stdin": true, "inline": text.len() <= 64 * 1024 });
        assert_eq!(seen, expected);
    }
    let above = Attack::python(program).input(&format!("\"{}\"", "x".repeat(cap - 1)));
    assert_eq!(
        watched.try_execution(above).await.unwrap_err().code(),
        Code::TooLarge
    );
    watched.close().await;
}

/// What cannot be placed ends the execution with a sentence about it, before the program starts.
#[tokio::test]
async fn reports_input_file_that_cannot_be_written() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let file = |path: &str, bytes: usize| skillbox::sandbox::InputFile {
        path: path.to_owned(),
        content: vec![b'x'; bytes].into(),
    };
    let mut attack =
        Attack::plain(Language::Bash, "echo started").front_matter("resources: { disk: 1MiB }\n");
    attack.ask.files = vec![file("large", 4 << 20), file("small", 1)];
    let outcome = watched.run(attack).await;
    let error = outcome.error.unwrap();
    assert_eq!(error.code, "start_failed", "{error:?}");
    assert!(error.message.contains("`large`"), "{error:?}");
    assert!(outcome.logs.stdout.is_empty() && !outcome.logs.truncated());
    watched.close().await;
}
