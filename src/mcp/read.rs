//! Reads resources: files of skills, and files, output and logs of executions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ResourceContents;
use tokio::io::AsyncReadExt as _;

use super::McpClient;
use super::uri::{ExecutionPart, ResourceUri};
use crate::api::{RUN, executions, require, skill_files};
use crate::error::{Code, Error};
use crate::execution::{Execution, ResultForm, media_type};
use crate::ids::ExecutionId;
use crate::limits;

/// The bytes of a resource and their type.
#[derive(Debug)]
pub(super) struct ResourceBytes {
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

impl ResourceBytes {
    /// As text if it is UTF-8, else in base64.
    pub(super) fn into_contents(self, uri: &str) -> ResourceContents {
        let contents = match String::from_utf8(self.bytes) {
            Ok(text) => ResourceContents::text(text, uri),
            Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri),
        };
        contents.with_mime_type(self.media_type)
    }
}

impl McpClient {
    /// The resource at `uri`.
    pub(super) async fn read(&self, uri: &str) -> Result<ResourceBytes, Error> {
        let missing = || Error::not_found(format!("resource {uri:?}"));
        match uri.parse().map_err(|()| missing())? {
            ResourceUri::Skill { path, .. } if path.is_empty() => Err(missing()),
            ResourceUri::Skill { skill, path } => {
                let opened = skill_files::open_file(&self.engine, &self.caller, &skill, &path).await?;
                self.fits(opened.size, None)?;
                let file = tokio::fs::File::from_std(opened.content);
                Ok(ResourceBytes {
                    media_type: text_type(&path),
                    bytes: read_all(file, opened.size).await?,
                })
            }
            ResourceUri::Execution { id, part } => {
                require(&self.caller, RUN)?;
                self.read_execution(id, part).await
            }
        }
    }

    async fn read_execution(&self, id: ExecutionId, part: ExecutionPart) -> Result<ResourceBytes, Error> {
        let (engine, caller) = (&self.engine, &self.caller);
        let text = |bytes| ResourceBytes {
            media_type: "text/plain".to_owned(),
            bytes,
        };
        match part {
            ExecutionPart::File(path) => self.read_file(id, &path).await,
            ExecutionPart::Result(n, form) => {
                let bytes = executions::result(engine, caller.tenant(), id, n, form).await?;
                self.fits(bytes.len() as u64, None)?;
                Ok(ResourceBytes {
                    media_type: ResultForm::media_type(form).to_owned(),
                    bytes,
                })
            }
            ExecutionPart::Stdout => Ok(text(executions::logs(engine, caller, id).await?.stdout)),
            ExecutionPart::Stderr => Ok(text(executions::logs(engine, caller, id).await?.stderr)),
            ExecutionPart::Output => {
                let execution = executions::get(engine, caller, id, None).await?;
                let output = execution.outcome.and_then(|outcome| outcome.output);
                let output = output.ok_or_else(|| Error::not_found(format!("output of execution `{id}`")))?;
                self.fits(output.as_str().len() as u64, None)?;
                Ok(ResourceBytes {
                    media_type: "application/json".to_owned(),
                    bytes: output.as_str().as_bytes().to_vec(),
                })
            }
        }
    }

    /// A file of an execution.
    pub(super) async fn read_file(&self, id: ExecutionId, path: &str) -> Result<ResourceBytes, Error> {
        require(&self.caller, RUN)?;
        let file = executions::file(&self.engine, self.caller.tenant(), id, path).await?;
        let size = file.entry.size;
        if size > limits::MCP_RESOURCE_BYTES_MAX {
            let execution = executions::get(&self.engine, &self.caller, id, None).await?;
            self.fits(size, self.url_of(&execution, path))?;
        }
        let range = file.range();
        let reader = file.object.into_reader(range).await.map_err(Error::internal)?;
        Ok(ResourceBytes {
            media_type: media_type(path),
            bytes: read_all(reader, size).await?,
        })
    }

    /// The signed link to a file of an execution.
    fn url_of(&self, execution: &Execution, path: &str) -> Option<String> {
        let links = self.links.as_ref()?;
        let made = (links.make)(&self.engine, execution, &links.base_url);
        let files = &execution.outcome.as_ref()?.files;
        let index = files.iter().position(|file| file.path == path)?;
        made.files.into_iter().nth(index)
    }

    /// A message is held in memory as a whole, by the client, too.
    fn fits(&self, bytes: u64, url: Option<String>) -> Result<(), Error> {
        let max = limits::MCP_RESOURCE_BYTES_MAX;
        if bytes <= max {
            return Ok(());
        }
        let remedy = match url {
            Some(url) => format!("download it from {url}"),
            None => "download it over the REST API or with the command line".to_owned(),
        };
        let message =
            format!("the resource has {bytes} bytes, and a message carries at most {max}; {remedy}");
        Err(Error::new(Code::TooLarge, message))
    }
}

/// The type of a file of a skill; program text is text for a model, whatever its extension stands for.
pub(super) fn text_type(path: &str) -> String {
    let guessed = media_type(path);
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("py" | "js" | "mjs" | "ts" | "sh" | "toml" | "yaml" | "yml") => "text/plain".to_owned(),
        _ => guessed,
    }
}

async fn read_all(reader: impl tokio::io::AsyncRead + Unpin, size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut reader = reader.take(size.min(limits::MCP_RESOURCE_BYTES_MAX));
    reader.read_to_end(&mut bytes).await.map_err(Error::internal)?;
    Ok(bytes)
}
