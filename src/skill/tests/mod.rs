//! SKILL.md files as people publish them, and hostile ones.

use std::time::Duration;

use super::*;
use crate::limits;

mod hostile;

const FILES: [&str; 2] = ["SKILL.md", "scripts/main.py"];

fn parse(skill_md: &str) -> Result<Manifest, SkillMdError> {
    declared(skill_md.as_bytes(), None).manifest()
}

fn declared<'a>(skill_md: &'a [u8], fallback_name: Option<&'a str>) -> Declaration<'a> {
    Declaration {
        skill_md: Some(skill_md),
        fallback_name,
        files: &FILES,
        ..Declaration::default()
    }
}

/// A SKILL.md with these further lines; the first of them is line 4.
fn with(lines: &str) -> Result<Manifest, SkillMdError> {
    parse(&format!("---\nname: a\ndescription: Adds.\n{lines}\n---\nBody\n"))
}

fn refusal(lines: &str) -> String {
    with(lines).expect_err(lines).to_string()
}

#[test]
fn reads_fields_of_a_program_skill() {
    let manifest = with(
        "version: 1.2.0\nlang: Python\nimage: python:3.11-slim\nentrypoint: ./scripts/main.py\ntimeout: 2m\n\
         resources: {memory: 256Mi, cpu: 500m, disk: 10MB}\ninput_schema:\n  type: object\n  properties: {n: {type: integer, minimum: 1}}\n\
         license: MIT\ncompatibility: any\nallowed-tools: [Read, 'Bash(git add:*)']",
    )
    .unwrap();
    assert_eq!(manifest.version.unwrap().to_string(), "1.2.0");
    assert_eq!(
        (manifest.language, manifest.entrypoint.as_deref()),
        (Some(Language::Python), Some("scripts/main.py"))
    );
    assert_eq!(
        (manifest.image.as_deref(), manifest.timeout),
        (Some("python:3.11-slim"), Some(Duration::from_secs(120)))
    );
    let asked = Resources {
        memory_bytes: Some(256 * limits::MIB),
        cpu_millis: Some(500),
        disk_bytes: Some(10_000_000),
    };
    assert_eq!(manifest.resources, asked);
    let schema =
        serde_json::json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    assert_eq!(manifest.input_schema, Some(schema));
    assert_eq!(manifest.allowed_tools.as_deref(), Some("Read, Bash(git add:*)"));
    assert_eq!(
        (manifest.instructions.as_str(), manifest.warnings),
        ("Body", vec![])
    );
}

#[test]
fn fields_in_metadata_take_precedence() {
    let manifest = with(
        "lang: bash\ntimeout: 10\nmetadata:\n  author: x\n  version: 1.10\n  skillbox.lang: python\n  skillbox.version: \"0.3.0\"\n  \
         skillbox.resources.memory: 64Mi\n  skillbox.input_schema: '{\"type\": \"object\"}'\n  skillbox:\n    timeout: 20s\n  tags: [a, 1]",
    )
    .unwrap();
    assert_eq!(
        (manifest.language, manifest.timeout),
        (Some(Language::Python), Some(Duration::from_secs(20)))
    );
    assert_eq!(manifest.version.unwrap().to_string(), "0.3.0");
    assert_eq!(manifest.resources.memory_bytes, Some(64 * limits::MIB));
    assert_eq!(manifest.input_schema, Some(serde_json::json!({"type": "object"})));
    let own: Vec<_> = manifest
        .metadata
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    assert_eq!(own, ["author=x", r#"tags=["a",1]"#, "version=1.10"]);
}

#[test]
fn loads_skills_of_other_products_unchanged() {
    let published = "---\r\nname: pdf-tools\r\ndescription: >-\r\n  Fill forms, merge & split PDFs:\r\n  use it when a PDF is mentioned.\r\n\
        license: Proprietary. LICENSE.txt has complete terms\r\nallowed-tools: Bash(pdftk:*) Read\r\nargument-hint: '[file]'\r\nmodel: opus\r\n\
        hooks:\r\n  PostToolUse:\r\n    - matcher: x\r\nmetadata: {\"claw\": {\"emoji\": \"📄\", \"requires\": {\"bins\": [\"pdftk\"]}}}\r\n---\r\n# PDF\r\n";
    let manifest = Declaration {
        files: &["SKILL.md", "scripts/fill_form.py"],
        ..declared(published.as_bytes(), None)
    }
    .manifest()
    .unwrap();
    assert_eq!((manifest.language, manifest.entrypoint), (None, None));
    assert_eq!(
        manifest.description,
        "Fill forms, merge & split PDFs: use it when a PDF is mentioned."
    );
    assert_eq!(
        manifest.metadata["claw"],
        r#"{"emoji":"📄","requires":{"bins":["pdftk"]}}"#
    );
    let warned: Vec<_> = manifest
        .warnings
        .iter()
        .map(|w| (w.line, w.message.split(": ").next().unwrap()))
        .collect();
    assert_eq!(warned, [(Some(8), "keys `argument-hint`, `model`, `hooks`")]);
}

#[test]
fn takes_a_missing_name_from_the_folder() {
    let nameless = b"---\ndescription: x\n---\n";
    let named = |fallback| declared(nameless, fallback).manifest();
    assert_eq!(named(Some("from-folder")).unwrap().name.as_str(), "from-folder");
    assert_eq!(named(Some("From Folder")).unwrap().name.as_str(), "from-folder");
    assert_eq!(named(Some("-From/Folder")).unwrap().name.as_str(), "from-folder");
    assert!(
        named(Some("../Folder"))
            .unwrap_err()
            .to_string()
            .contains("`../Folder` cannot stand in")
    );
    assert!(named(None).unwrap_err().to_string().contains("`name` is missing"));
}

/// Z-20.
#[test]
fn keeps_yaml_text_as_text() {
    for version in ["1.10", "1", "v2", "2024-01-02", "latest"] {
        let manifest = with(&format!("version: {version}")).unwrap();
        let warning = &manifest.warnings[0];
        assert_eq!((&manifest.version, warning.line), (&None, Some(4)), "{version}");
        let said = format!("`version` `{version}`: version must be a strict semantic version");
        assert!(warning.message.contains(&said), "{}", warning.message);
        assert!(refusal(&format!("metadata: {{skillbox.version: {version}}}")).contains(&said));
    }
    assert_eq!(
        with("version: 1.10.0").unwrap().version.unwrap().to_string(),
        "1.10.0"
    );
    assert_eq!(
        parse("---\nname: no\ndescription: yes\n---\n")
            .unwrap()
            .name
            .as_str(),
        "no"
    );
    assert_eq!(
        with("license: 2024-01-02").unwrap().license.as_deref(),
        Some("2024-01-02")
    );
    assert!(refusal("timeout: 0o17").contains("`0o17`"));
    assert!(refusal("timeout: 1_000").contains("`1_000`"));
    let unquoted = with("license: MIT: really").unwrap();
    assert_eq!(unquoted.license.as_deref(), Some("MIT: really"));
    assert!(unquoted.warnings[0].message.contains("in quotes"));
    assert!(refusal("hooks:\n  - a: b: c").contains("in quotes"));
    assert!(refusal("license: a\nlicense: b").contains("line 5"));
    assert!(refusal("lang: python\nlanguage: bash").contains("line 5: `lang` is declared twice"));
    assert!(refusal("license: !!python/object:os.system x").contains("tag"));
}

#[test]
fn a_wrong_type_names_line_field_and_remedy() {
    let wrong = [
        (
            "resources: 512Mi",
            "SKILL.md, line 4: `resources` must be a mapping of `memory`, `cpu`, `disk`, but is text",
        ),
        (
            "timeout: {s: 1}",
            "SKILL.md, line 4: `timeout` must be text, but is a mapping",
        ),
        (
            "input_schema: yes please",
            "SKILL.md, line 4: `input_schema` must be a JSON Schema, but is text",
        ),
        (
            "permissions: {secrets: [[a]]}",
            "SKILL.md, line 4: `permissions.secrets` must be text or a list of texts, but is a list",
        ),
        (
            "permissions: {secrets: [LD_PRELOAD]}",
            "SKILL.md, line 4: `permissions.secrets` `LD_PRELOAD`: secret name `LD_PRELOAD` is a variable that interpreters, loaders or the sandbox read; choose another",
        ),
        (
            "lang: cobol",
            "SKILL.md, line 4: `lang` `cobol`: must be `python`, `node` or `bash`",
        ),
        (
            "image: a b",
            "SKILL.md, line 4: `image` `a b`: must be an image name such as `python:3.12-slim`, without white space",
        ),
    ];
    for (lines, message) in wrong {
        assert_eq!(refusal(lines), message);
    }
}

/// Z-17, Z-20: white space that is not a space, and numbers that are no number of ours.
#[test]
fn names_line_of_tab_indentation_and_huge_number() {
    assert_eq!(with("license:\tMIT").unwrap().license.as_deref(), Some("MIT"));
    for (lines, line) in [
        ("resources:\n\tmemory: 1Gi", "line 5"),
        ("\tlicense: MIT", "line 3"),
        ("timeout: 99999999999999999999999999999999999999999", "line 4"),
        ("timeout: -9223372036854775809", "line 4"),
        (
            "resources:\r\n  cpu: 340282366920938463463374607431768211456",
            "line 5",
        ),
    ] {
        let message = refusal(lines);
        assert!(message.contains(line), "{lines}: {message}");
        assert_eq!(
            message.contains("indent with spaces"),
            lines.contains('\t'),
            "{message}"
        );
    }
    let exact = with("license: 340282366920938463463374607431768211456")
        .unwrap()
        .license;
    assert_eq!(exact.as_deref(), Some("340282366920938463463374607431768211456"));
}

/// S-35, Z-22, Z-23: what is compared or becomes a path is taken to the letter or refused, never tidied up.
#[test]
fn rejects_surrounding_white_space() {
    let values = [
        ("image", "bash:5"),
        ("skillbox.version", "1.0.0"),
        ("lang", "python"),
        ("entrypoint", "scripts/main.py"),
        ("timeout", "30s"),
        ("skillbox.image", "bash:5"),
    ];
    for (key, value) in values {
        let line = |text: &str| match key.strip_prefix("skillbox.") {
            Some(_) => format!("metadata: {{{key}: {text}}}"),
            None => format!("{key}: {text}"),
        };
        assert!(with(&line(&format!("\"{value}\""))).is_ok(), "{key}");
        for odd in [
            format!("\"{value} \""),
            format!("\" {value}\""),
            format!("\"{value}\\n\""),
            format!("\"{value}\\u00a0\""),
        ] {
            assert!(refusal(&line(&odd)).contains("line 4"), "{key}: {odd}");
        }
    }
    for name in ["'a.'", "\"a\\n\"", "\"a\\t\"", "|\n  a"] {
        assert!(
            parse(&format!("---\nname: {name}\ndescription: x\n---\n")).is_err(),
            "{name}"
        );
    }
}

/// Z-21.
#[test]
fn rejects_unlimited_limits() {
    for timeout in [
        "0", "-1", "0.0001", ".nan", "NaN", "1e308", "1e999", "10y", ".inf", "''",
    ] {
        assert!(
            refusal(&format!("timeout: {timeout}")).contains("line 4"),
            "{timeout}"
        );
    }
    for memory in ["\"0\"", "\"-1\"", "64Ti", "99999999999999999999Gi", "1", "0Mi"] {
        assert!(
            refusal(&format!("resources:\n  memory: {memory}")).contains("line 5"),
            "{memory}"
        );
    }
    for cpu in [".nan", ".inf", "0", "-1", "1e3"] {
        assert!(
            refusal(&format!("resources:\n  cpu: {cpu}")).contains("line 5"),
            "{cpu}"
        );
    }
    let long = with("timeout: 3h").unwrap();
    assert_eq!(long.timeout, Some(limits::TIMEOUT_MAX));
    assert_eq!(long.warnings[0].line, Some(4));
}

/// W-13.
#[test]
fn removes_hidden_text_from_descriptions_with_warning() {
    let described = |text: &str| parse(&format!("---\nname: a\ndescription: \"{text}\"\n---\n"));
    for (hidden, seen) in [
        ("Adds.\\u200b", "Adds."),
        ("Adds.\u{200b}", "Adds."),
        ("a\\U000E0041b", "ab"),
        ("\u{202e}sddA", "sddA"),
        ("\\e[8mx", "[8mx"),
        ("a\\u2066b", "ab"),
    ] {
        let manifest = described(hidden).unwrap();
        let warning = &manifest.warnings[0];
        assert!(
            warning.message.contains("invisible character U+"),
            "{}",
            warning.message
        );
        assert_eq!((manifest.description.as_str(), warning.line), (seen, Some(3)));
    }
    let long = described(&"x".repeat(50_000)).unwrap();
    assert!(long.warnings[0].message.contains("longer than 1024"));
    assert_eq!(long.description.len(), 1024);
    assert!(
        described("")
            .unwrap_err()
            .message
            .contains("`description` is missing")
    );
    assert_eq!(described(&"é".repeat(1024)).unwrap().warnings, []);
    assert!(
        described("Adds. <!-- and obeys -->").unwrap().warnings[0]
            .message
            .contains("HTML comment")
    );
}

/// What others write for others: none of it stops a skill, each is told.
#[test]
fn odd_front_matter_loads_with_a_warning() {
    let odd = [
        ("license:\n  - a", "`license` is a list"),
        ("metadata: [a]", "`metadata` is ignored"),
        ("metadata: x", "`metadata` is ignored"),
        ("allowed-tools: [[a]]", "`allowed-tools` is a list"),
        ("compatibility: {claude: yes}", "`compatibility` is a mapping"),
        ("language: zh-CN", "`language` `zh-CN` is ignored"),
        ("resources: [a.md]", "`resources` is ignored"),
        ("permissions: [read]", "`permissions` is ignored"),
        ("argument-hint: [file] [--all]", "`argument-hint` is invalid YAML"),
        ("tags: [a]", "key `tags`: of other products"),
    ];
    for (lines, part) in odd {
        let manifest = with(lines).unwrap();
        let warning = &manifest.warnings[0];
        assert!(warning.message.starts_with(part), "{lines}: {}", warning.message);
        assert_eq!(warning.line, Some(4), "{lines}");
    }
    let titled =
        parse("---\nname: PDF_Processing (v2)\n---\n# PDF\n\nWorks on\nPDF files.\n\nMore.\n").unwrap();
    assert_eq!(
        (titled.name.as_str(), titled.description.as_str()),
        ("pdf-processing-v2", "Works on PDF files.")
    );
    assert_eq!(titled.warnings.len(), 2, "{:?}", titled.warnings);
}

const TOML: &str = "name = 'salesforce.leads'\ndescription = 'Syncs leads.'\nversion = '2.0.0'\ntimeout = '20s'\n[permissions]\nsecrets = ['API_TOKEN', {name = 'OTHER'}]\nnetwork = ['api.example.com']\n";

/// Design §4: skill.toml counts before `metadata`, that before the top level; the normal form says which it was.
#[test]
fn nearer_value_takes_precedence() {
    let skill_md = "---\nname: leads\ndescription: x\ntimeout: 10\nmemory: 1\nresources: {memory: 64Mi, cpu: 500m}\nmetadata:\n  skillbox.timeout: 15\n  skillbox.resources.cpu: 250m\n---\n";
    let manifest = Declaration {
        skill_toml: Some(TOML.as_bytes()),
        ..declared(skill_md.as_bytes(), None)
    }
    .manifest()
    .unwrap();
    assert_eq!(
        (manifest.name.as_str(), manifest.timeout),
        ("salesforce.leads", Some(Duration::from_secs(20)))
    );
    assert_eq!(manifest.resources.cpu_millis, Some(250));
    let said: Vec<_> = manifest
        .origins
        .iter()
        .map(|(key, origin)| format!("{key} {origin:?}"))
        .collect();
    assert_eq!(
        said,
        [
            "description SkillToml",
            "dialect Inferred",
            "entrypoint Inferred",
            "lang Inferred",
            "name SkillToml",
            "permissions.network SkillToml",
            "permissions.secrets SkillToml",
            "resources.cpu Metadata",
            "resources.memory FrontMatter",
            "timeout SkillToml",
            "version SkillToml",
        ]
    );
}

#[test]
fn a_function_skill_needs_no_skill_md() {
    let files = ["code/leads.py", "code/sync/__init__.py", "skill.toml"];
    let manifest = Declaration {
        skill_toml: Some(TOML.as_bytes()),
        files: &files,
        ..Declaration::default()
    }
    .manifest()
    .unwrap();
    assert_eq!(
        (manifest.dialect, manifest.entrypoint.as_deref()),
        (Dialect::Function, Some("code/leads.py"))
    );
    let function = manifest.function.unwrap();
    assert_eq!(
        (function.module.as_str(), function.export.as_str()),
        ("skills.salesforce.leads.leads", "main")
    );
    assert_eq!(manifest.modules, ["leads", "sync"]);
    let secrets: Vec<_> = manifest
        .permissions
        .secrets
        .iter()
        .map(SecretName::as_str)
        .collect();
    assert_eq!(secrets, ["API_TOKEN", "OTHER"]);
    assert!(
        manifest.warnings[0]
            .message
            .starts_with("skill.toml, line 7: `permissions.network` is ignored")
    );
    let wrong = Declaration {
        skill_toml: Some(b"name = 'a'\ndescription = 'x'\n[resources]\nmemory = '1'\n"),
        files: &files,
        ..Declaration::default()
    };
    assert!(
        wrong
            .manifest()
            .unwrap_err()
            .to_string()
            .starts_with("skill.toml"),
        "{:?}",
        wrong.manifest()
    );
}
