//! Front matter as it is published, imitated: each loads, and everything ignored is reported.

use skillbox::bundle;
use skillbox::skill::{Dialect, Manifest};

use crate::folders::{
    Piece::{Link, Plain},
    folder_of, packed,
};

/// What a push of a folder of this name takes the skill for.
fn loaded(files: &[(&str, &str)]) -> Result<Manifest, bundle::Error> {
    let pieces: Vec<_> = files.iter().map(|(path, text)| Plain(path, text)).collect();
    let archive = packed(&folder_of(&pieces))?;
    let into = tempfile::tempdir().unwrap();
    let listing = bundle::unpack(&archive, into.path())?;
    bundle::load(into.path(), &listing, Some("its-folder"))
}

/// The name it gets, and its warnings as one text.
fn told(files: &[(&str, &str)]) -> (String, String) {
    let manifest = loaded(files).unwrap_or_else(|error| panic!("{files:?}: {error}"));
    let warnings = manifest.warnings.into_iter().map(|warning| warning.message);
    (manifest.name.to_string(), warnings.collect::<Vec<_>>().join("\n"))
}

/// Each SKILL.md, the name it gets, and a part of its warnings.
const SHAPES: &[(&str, &str, &str)] = &[
    // Products' own keys, with nothing to say about.
    (
        "---\nname: a\ndescription: x\nallowed-tools: [Read, Bash]\nmetadata:\n  author: me\n  version: \"1.0\"\n---\n",
        "a",
        "",
    ),
    (
        "---\r\nname: a\r\ndescription: |\r\n  x\r\n\r\n  y\r\n---\r\nBody\r\n",
        "a",
        "",
    ),
    ("\u{feff}---\nname: a\ndescription: x\n---\n", "a", ""),
    (
        "---\nname: a\ndescription: &d x\ncompatibility: *d\n---\n---\nRule\n---\n",
        "a",
        "",
    ),
    // Names as titles, and in other scripts.
    (
        "---\nname: PDF_Tools & More!\ndescription: x\n---\n",
        "pdf-tools-more",
        "not a valid name",
    ),
    (
        "---\nname: team:Résumé\ndescription: x\n---\n",
        "team-resume",
        "not a valid name",
    ),
    (
        "---\nname: 数据分析\ndescription: 分析数据。\n---\n# 数据\n",
        "its-folder",
        "not a valid name",
    ),
    (
        "---\nname: PDF変換ツール\ndescription: 変換します。\n---\n",
        "its-folder",
        "not a valid name",
    ),
    (
        "---\nname: Заметки\ndescription: x\n---\n",
        "its-folder",
        "not a valid name",
    ),
    ("---\ndescription: x\n---\n", "its-folder", ""),
    (
        "---\nname: -pdf\ndescription: x\n---\n",
        "pdf",
        "not a valid name",
    ),
    (
        "---\nname: team/pdf+docx\ndescription: x\n---\n",
        "team-pdf-docx",
        "not a valid name",
    ),
    (
        "---\nname: \" pdf tools \"\ndescription: x\n---\n",
        "pdf-tools",
        "not a valid name",
    ),
    // No front matter at all.
    (
        "# PDF tools\n\nFills forms.\n",
        "its-folder",
        "the front matter is missing",
    ),
    (
        "Fills forms,\nfield by field.\n\n- one\n",
        "its-folder",
        "the front matter is missing",
    ),
    // What generators and editors leave above.
    (
        "\n\n---\nname: a\ndescription: x\n---\n",
        "a",
        "blank lines above",
    ),
    (
        "<!-- generated -->\n---\nname: a\ndescription: x\n---\n",
        "a",
        "a comment above",
    ),
    (
        "```skill\n---\nname: a\ndescription: x\n---\nBody\n```\n",
        "a",
        "code block above",
    ),
    // Values that are no YAML.
    (
        "---\nname: a\ndescription: Use when: always\n---\n",
        "a",
        "read as text",
    ),
    (
        "---\nname: a\ndescription: 'it's here'\n---\n",
        "a",
        "read as text",
    ),
    (
        "---\nname: a\ndescription: \"Title\" and more\n---\n",
        "a",
        "read as text",
    ),
    (
        "---\nname: a\ndescription: x\nargument-hint: [file] [--all]\n---\n",
        "a",
        "read as text",
    ),
    // Keys that mean something else elsewhere.
    (
        "---\nname: a\ndescription: x\nlang: zh-CN\n---\n",
        "a",
        "`lang` `zh-CN` is ignored",
    ),
    (
        "---\nname: a\ndescription: x\nlanguage: typescript\n---\n",
        "a",
        "`language`",
    ),
    (
        "---\nname: a\ndescription: x\nlanguage: python\n---\n",
        "a",
        "language is ignored",
    ),
    (
        "---\nname: a\ndescription: x\nimage: https://example.org/a.png\n---\n",
        "a",
        "`image`",
    ),
    (
        "---\nname: a\ndescription: x\nentrypoint: SKILL.md\n---\n",
        "a",
        "`entrypoint`",
    ),
    (
        "---\nname: a\ndescription: x\nversion: 2024.1\n---\n",
        "a",
        "`version`",
    ),
    (
        "---\nname: a\ndescription: x\nresources: [references/a.md]\n---\n",
        "a",
        "`resources`",
    ),
    (
        "---\nname: a\ndescription: x\npermissions: read-only\n---\n",
        "a",
        "`permissions`",
    ),
    (
        "---\nname: a\ndescription: x\npermissions: {network: {allow: [a.example]}, files: rw}\n---\n",
        "a",
        "sandboxes have no network access",
    ),
    (
        "---\nname: a\ndescription: x\nmetadata: [a, b]\n---\n",
        "a",
        "`metadata` is ignored",
    ),
    // Nothing but words.
    (
        "---\nname: a\n---\n# Title\n\nThe first words.\n",
        "a",
        "first words",
    ),
    ("---\nname: a\ndescription: [x, y]\n---\n", "a", "stored as text"),
];

#[test]
fn loads_odd_front_matter_with_warnings() {
    for (skill_md, name, part) in SHAPES {
        let (found, warnings) = told(&[("SKILL.md", skill_md)]);
        assert_eq!(found, *name, "{skill_md}");
        assert!(
            warnings.contains(part) && (warnings.is_empty() == part.is_empty()),
            "{skill_md}: {warnings:?}"
        );
    }
}

#[test]
fn cuts_long_description_with_warning() {
    let skill_md = format!("---\nname: a\ndescription: {}\n---\n", "long ".repeat(400));
    assert!(told(&[("SKILL.md", &skill_md)]).1.contains("is truncated"));
}

/// Other products have a skill.toml, too.
#[test]
fn ignores_skill_toml_of_other_product() {
    let skill_md = "---\nname: a\ndescription: From SKILL.md.\n---\n";
    for toml in [
        "[skill]\nname = \"a\"\nversion = \"1.0\"\ndescription = \"\"\nauthor = \"me\"\n[runtime]\ntype = \"python\"\nentry = \"scripts/a.py\"\n",
        "slug = \"a\"\nname = \"a\"\nstatus = \"beta\"\n[descriptions]\nen = \"x\"\n",
        "[skill]\nid = \"a.b\"\n[compatibility]\nenhances = []\n[dependencies]\npip = []\nsystem = [\"jq\"]\n[permissions]\nnetwork = true\n",
        "[skill_metadata]\nname = \"Standard\"\n[[workflow_steps]]\nname = \"one\"\n[rules]\na = 1\n",
        "name = \"a\"\nresources = [\"references/\"]\n[[tools.provided]]\nname = \"t\"\ninput_schema = { type = \"object\" }\n",
    ] {
        let manifest = loaded(&[("SKILL.md", skill_md), ("skill.toml", toml), ("scripts/a.py", "")]);
        let manifest = manifest.unwrap_or_else(|error| panic!("{toml}: {error}"));
        assert_eq!(
            (manifest.name.as_str(), manifest.description.as_str()),
            ("a", "From SKILL.md."),
            "{toml}"
        );
        assert_eq!(manifest.dialect, Dialect::Toolbox, "{toml}");
    }
    let bare = [
        ("SKILL.md", "# Just words\n\nText.\n"),
        ("skill.toml", "name = 'b'\ndescription = 'x'\n"),
    ];
    assert_eq!(told(&bare).0, "b");
}

/// Z-17, Z-20, Z-22: leniency ends where something could mislead.
#[test]
fn rejects_misleading_published_skills() {
    for skill_md in [
        "# No front matter\n",
        "# A template\n\n[TODO: say what the skill does]\n",
        "\n",
        "---\nname: a\ndescription: never closed\n",
        "---\nname: dаta\ndescription: x\n---\n",
        "---\nname: ../a\ndescription: x\n---\n",
        "---\nname: a\nname: b\ndescription: x\n---\n",
        "---\nname: a\ndescription: !!python/object:os.system x\n---\n",
        "---\nname: a\ndescription: x\ntimeout: 10y\n---\n",
        "---\nname: a\ndescription: x\nentrypoint: /bin/sh\n---\n",
    ] {
        assert!(loaded(&[("SKILL.md", skill_md)]).is_err(), "{skill_md}");
    }
}

/// Z-03: a link that leads out of the folder is never followed.
#[test]
fn rejects_link_out_of_folder() {
    let skill_md = Plain("SKILL.md", "---\nname: a\ndescription: x\n---\n");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let target = outside.path().to_str().unwrap();
    for link in [
        Link("a", "/etc/passwd"),
        Link("a", target),
        Link("a/b", &format!("{target}/secret")),
        Link("SKILL2.md", "../../../../../../etc/passwd"),
    ] {
        let error = packed(&folder_of(&[skill_md, link])).unwrap_err().to_string();
        assert!(error.contains("leads out of the folder"), "{error}");
    }
    // Also not by way of a link that stays inside.
    let chain = [skill_md, Link("a", "b"), Link("b", target)];
    assert!(packed(&folder_of(&chain)).is_err());
}
