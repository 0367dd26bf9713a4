//! System packages: LibreOffice of the host, or of an image of the operator, converts a document.

use std::io::Read as _;
use std::path::Path;

use skillbox::engine::RunSpec;
use skillbox::sandbox::InputFile;

use crate::outcomes::succeeded;
use crate::world::{Backend, IMAGE_WITH_OFFICE, World, missing, zip_of};

const SCRIPT: &str = "import subprocess, sys
subprocess.run(['soffice', '--headless', '--convert-to', 'pdf', sys.argv[1]], check=True)
";
const DOCX: [(&str, &str); 3] = [
    (
        "[Content_Types].xml",
        r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#,
    ),
    (
        "_rels/.rels",
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#,
    ),
    (
        "word/document.xml",
        r#"<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Hello</w:t></w:r></w:p></w:body></w:document>"#,
    ),
];

/// `tests/office-image.sh` makes the image; natively LibreOffice must be installed on the host.
#[tokio::test]
async fn libreoffice_converts_document() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    if super::BACKEND == Backend::Native && !Path::new("/usr/bin/soffice").exists() {
        return missing("office", "LibreOffice is not installed here");
    }
    let image = match super::BACKEND {
        Backend::Native => String::new(),
        Backend::Docker => format!("image: {IMAGE_WITH_OFFICE}\n"),
    };
    let skill_md = format!("---\nname: office\ndescription: Converts documents to PDF.\n{image}---\n");
    let mut docx = Vec::new();
    zip_of(&DOCX).read_to_end(&mut docx).unwrap();
    let ask = RunSpec {
        script: Some("scripts/convert.py".to_owned()),
        args: vec!["a.docx".to_owned()],
        files: vec![InputFile {
            path: "a.docx".to_owned(),
            content: docx.into(),
        }],
        ..RunSpec::default()
    };
    let files = [("SKILL.md", skill_md.as_str()), ("scripts/convert.py", SCRIPT)];
    let execution = match world.run_archive(zip_of(&files), ask).await {
        Err(error) if error.to_string().contains(IMAGE_WITH_OFFICE) => {
            return missing("office", &error.to_string());
        }
        ended => ended.unwrap(),
    };
    let outcome = succeeded(execution);
    let sizes: Vec<_> = outcome
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.size > 1000))
        .collect();
    assert_eq!(sizes, [("a.pdf", true)]);
}
