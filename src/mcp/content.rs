//! Executions as results of tools: text, images and links, within limits that a model's context can bear.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::{Value, json};

use super::McpClient;
use super::failure::meta;
use super::read::ResourceBytes;
use super::uri::{ExecutionPart, ResourceUri};
use crate::api::skills::Skill;
use crate::error::Error;
use crate::execution::{Envelope, Execution, Failure, FileLink, Links, ResultForm, RichResult, Status};
use crate::ids::ExecutionId;
use crate::limits;

/// Whether the tool promises an output, which clients then require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    Text,
    /// The skill declares the schema of an object.
    Structured,
}

/// Image types that models read.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl OutputKind {
    pub(super) fn of(skill: &Skill) -> Self {
        let promised = skill
            .output_schema
            .as_ref()
            .is_some_and(|schema| schema["type"] == "object");
        match promised {
            true => Self::Structured,
            false => Self::Text,
        }
    }
}

impl McpClient {
    pub(super) async fn result(
        &self,
        execution: &Execution,
        kind: OutputKind,
    ) -> Result<CallToolResult, Error> {
        let links = self.links.as_ref();
        let links = links.map(|links| (links.make)(&self.engine, execution, &links.base_url));
        let envelope = Envelope::from_execution(execution, links.as_ref());
        let mut content = texts(&envelope);
        for (n, result) in envelope.results.iter().enumerate() {
            content.extend(rich_result(&envelope, n, result));
        }
        content.extend(self.files(&envelope).await?);
        let succeeded = envelope.status == Status::Success;
        let output = envelope
            .output
            .as_ref()
            .filter(|_| succeeded && kind == OutputKind::Structured);
        let output = output.and_then(|output| serde_json::from_str(output.as_str()).ok());
        let mut result = CallToolResult::success(content);
        result.is_error = Some(!succeeded);
        result.structured_content = output;
        result.meta = Some(meta([("skillbox/execution", about(&envelope, links.as_ref()))]));
        Ok(result)
    }

    /// Small images and texts with their content, all others as links.
    async fn files(&self, envelope: &Envelope) -> Result<Vec<ContentBlock>, Error> {
        let (id, mut left) = (envelope.execution_id, limits::MCP_FILES_BYTES_MAX);
        let mut blocks = Vec::new();
        for file in envelope.files.iter().take(limits::MCP_FILES_MAX) {
            let is_image = IMAGES.contains(&file.media_type.as_str());
            let max = match is_image {
                true => limits::MCP_IMAGE_BYTES_MAX,
                false if is_text(&file.media_type) => limits::MCP_FILE_TEXT_BYTES_MAX,
                false => 0,
            };
            if file.size <= max.min(left) {
                left -= file.size;
                let read = self.read_file(id, &file.path).await?;
                if is_image {
                    blocks.push(ContentBlock::image(
                        STANDARD.encode(&read.bytes),
                        &read.media_type,
                    ));
                } else if let contents @ ResourceContents::TextResourceContents { .. } =
                    read.into_contents(&uri(id, ExecutionPart::File(file.path.clone())))
                {
                    blocks.push(ContentBlock::resource(contents));
                    continue;
                }
            }
            blocks.push(ContentBlock::resource_link(file_link(id, file)));
        }
        let unnamed = envelope.files.len().saturating_sub(limits::MCP_FILES_MAX);
        if unnamed > 0 {
            blocks.push(ContentBlock::text(format!("[{unnamed} more files]")));
        }
        if envelope.files_skipped_total > 0 {
            let skipped = envelope.files_skipped_total;
            blocks.push(ContentBlock::text(format!(
                "[{skipped} files were not collected]"
            )));
        }
        Ok(blocks)
    }
}

/// What a program reads of a result: ids, times and URLs.
fn about(envelope: &Envelope, links: Option<&Links>) -> Value {
    json!({
        "id": envelope.execution_id,
        "status": envelope.status,
        "skill": envelope.skill,
        "version": envelope.version,
        "error_code": envelope.error.as_ref().map(|error| &error.code),
        "exit_code": envelope.exit_code,
        "duration_ms": envelope.duration_ms,
        "files_url": links.and(envelope.files_url.as_ref()),
    })
}

/// Why it failed, its output, and what it printed.
fn texts(envelope: &Envelope) -> Vec<ContentBlock> {
    let id = envelope.execution_id;
    let mut blocks = Vec::new();
    if let Some(failure) = &envelope.error {
        blocks.push(ContentBlock::text(reason(envelope.status, failure)));
    }
    if let Some(output) = &envelope.output {
        blocks.extend(limited(id, ExecutionPart::Output, output.as_str()));
    }
    let logs = &envelope.logs;
    blocks.extend(limited(id, ExecutionPart::Stdout, &logs.stdout));
    if !logs.stderr.is_empty() {
        let stderr = format!("stderr:\n{}", logs.stderr);
        blocks.extend(limited(id, ExecutionPart::Stderr, &stderr));
    }
    if logs.truncated {
        blocks.push(ContentBlock::text("[the program printed more than is recorded]"));
    }
    blocks
}

fn reason(status: Status, failure: &Failure) -> String {
    let traceback = failure
        .exception
        .as_ref()
        .map(|exception| exception.traceback.trim());
    match traceback {
        Some(traceback) if !traceback.is_empty() => format!("{status}: {}\n{traceback}", failure.message),
        Some(_) | None => format!("{status}: {}", failure.message),
    }
}

/// A text as it is, or its start and a link.
fn limited(id: ExecutionId, part: ExecutionPart, text: &str) -> Vec<ContentBlock> {
    let max = limits::MCP_TEXT_BYTES_MAX;
    if text.is_empty() {
        return Vec::new();
    }
    if text.len() <= max {
        return vec![ContentBlock::text(text)];
    }
    let start = &text[..text.floor_char_boundary(max)];
    let (name, media_type) = match part {
        ExecutionPart::Output => ("output.json".to_owned(), "application/json"),
        ExecutionPart::Stderr => ("stderr.txt".to_owned(), "text/plain"),
        ExecutionPart::Result(n, form) => (format!("result-{n}.{form}"), form.media_type()),
        ExecutionPart::Stdout | ExecutionPart::File(_) => ("stdout.txt".to_owned(), "text/plain"),
    };
    let link = Resource::new(uri(id, part), name)
        .with_mime_type(media_type)
        .with_size(text.len() as u64);
    vec![
        ContentBlock::text(format!(
            "{start}\n[cut: {} bytes in all; the link has all of them]",
            text.len()
        )),
        ContentBlock::resource_link(link),
    ]
}

/// The form of a result that a model reads best: an image, else text.
fn rich_result(envelope: &Envelope, n: usize, result: &RichResult) -> Vec<ContentBlock> {
    let id = envelope.execution_id;
    for form in [ResultForm::Png, ResultForm::Jpeg] {
        let Some(image) = result.content(form) else {
            continue;
        };
        if image.len() as u64 <= limits::MCP_IMAGE_BYTES_MAX {
            return vec![ContentBlock::image(STANDARD.encode(&image), form.media_type())];
        }
        let link = Resource::new(
            uri(id, ExecutionPart::Result(n, form)),
            format!("result-{n}.{form}"),
        )
        .with_mime_type(form.media_type())
        .with_size(image.len() as u64);
        return vec![ContentBlock::resource_link(link)];
    }
    // The main result of code is its output, too.
    if result.is_main_result && envelope.output.is_some() {
        return Vec::new();
    }
    let forms = [
        ResultForm::Markdown,
        ResultForm::Text,
        ResultForm::Html,
        ResultForm::Json,
        ResultForm::Svg,
    ];
    for form in forms {
        let Some(text) = result
            .content(form)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
        else {
            continue;
        };
        return limited(id, ExecutionPart::Result(n, form), &text);
    }
    Vec::new()
}

fn file_link(id: ExecutionId, file: &FileLink) -> Resource {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let link = Resource::new(uri(id, ExecutionPart::File(file.path.clone())), name)
        .with_mime_type(&file.media_type)
        .with_size(file.size);
    match &file.url {
        Some(url) => link.with_meta(meta([("skillbox/url", json!(url))])),
        None => link,
    }
}

fn uri(id: ExecutionId, part: ExecutionPart) -> String {
    ResourceUri::Execution { id, part }.to_string()
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || matches!(media_type, "application/json" | "application/xml")
}

/// A resource for a model: an image as an image, all others as they are.
pub(super) fn resource_block(read: ResourceBytes, uri: &str) -> ContentBlock {
    if IMAGES.contains(&read.media_type.as_str()) {
        return ContentBlock::image(STANDARD.encode(&read.bytes), &read.media_type);
    }
    match read.into_contents(uri) {
        ResourceContents::TextResourceContents { text, .. } => ContentBlock::text(text),
        contents => ContentBlock::resource(contents),
    }
}
