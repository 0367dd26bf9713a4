//! `skillbox blob`: upload, download, list and delete blobs.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use sha2::Digest as _;

use crate::api::blobs::BlobInfo;
use crate::cli::arguments;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exec::rows;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::id_argument::IdArgument;
use crate::cli::moment;
use crate::cli::skill::keep;
use crate::engine::NewBlob;
use crate::execution::media_type;
use crate::ids::Digest;
use crate::limits;
use crate::skill::parse_span;
use crate::store::Saved;

#[derive(Debug, Subcommand)]
pub(crate) enum BlobCommand {
    /// Store a file or standard input as a blob and print its id
    #[command(after_help = "\
The id is the digest of the content: the same content again is the same blob, and only kept longer.

Examples:
  skillbox blob put sales.csv --ttl 24h
  skillbox run report --blob \"$(skillbox blob put sales.csv)\"
  curl -s https://example.com/feed | skillbox blob put - --type application/json")]
    Put {
        /// A file, or - for standard input
        #[arg(value_name = "FILE|-")]
        file: String,
        /// Media type; by default derived from the file name
        #[arg(long = "type", value_name = "MEDIA-TYPE")]
        media_type: Option<String>,
        /// Lifetime, such as 90s, 24h or 7d; by default `blobs.ttl` of the server
        #[arg(long, value_name = "TIME", value_parser = life)]
        ttl: Option<Duration>,
    },
    /// Download a blob and verify it against its id
    #[command(after_help = "\
Examples:
  skillbox blob get sha256:… --out sales.csv
  skillbox blob get sha256:… | head")]
    Get {
        /// ID of the blob: sha256:…, or its first or last digits
        id: IdArgument<Digest>,
        /// File to write; by default, or with -, standard output
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List blobs, newest first
    #[command(after_help = "Example:\n  skillbox blob list --format json")]
    List {
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Show size, type and expiry of a blob
    #[command(after_help = "Example:\n  skillbox blob show sha256:…")]
    Show {
        /// ID of the blob: sha256:…, or its first or last digits
        id: IdArgument<Digest>,
    },
    /// Delete a blob immediately
    #[command(after_help = "Example:\n  skillbox blob rm sha256:…")]
    Rm {
        /// ID of the blob: sha256:…, or its first or last digits
        id: IdArgument<Digest>,
    },
}

pub(crate) fn blob(command: BlobCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        BlobCommand::Put {
            file,
            media_type,
            ttl,
        } => put(client, given_blob(&file, media_type, ttl)?, console)?,
        BlobCommand::Get { id, out } => get(client, &find(id, client)?, out.as_deref(), console)?,
        BlobCommand::List { limit } => {
            let listed = client.blobs(limit)?;
            console.data(Format::Table, &listed.items, |blobs| table(blobs, console))?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        BlobCommand::Show { id } => {
            let blob = client.blob(&find(id, client)?)?;
            console.data(Format::Json, &blob, |blob| {
                table(std::slice::from_ref(blob), console)
            })?;
        }
        BlobCommand::Rm { id } => {
            let id = find(id, client)?;
            client.delete_blob(&id)?;
            console.success(format!("deleted blob {id}"));
        }
    }
    Ok(Exit::Success)
}

fn find(id: IdArgument<Digest>, client: &Client) -> Result<Digest> {
    id.find("blob", || {
        let listed = client.blobs(limits::ID_SEARCH_ROWS)?;
        Ok(listed.items.into_iter().map(|blob| blob.blob_id).collect())
    })
}

fn put(client: &Client, new: NewBlob, console: &Console) -> Result<()> {
    let (blob, kept) = client.upload_blob(new)?;
    match console.format() {
        // Only the id, which the next command needs.
        None => console.text(&format!("{}\n", blob.blob_id))?,
        Some(_) => console.data(Format::Json, &blob, |blob| {
            table(std::slice::from_ref(blob), console)
        })?,
    }
    let until = moment::exact(blob.expires_at);
    match kept {
        Saved::New => console.success(format!("stored {} bytes, retained until {until}", blob.size)),
        Saved::Existing => console.success(format!("already stored; retained until {until}")),
    }
    Ok(())
}

/// Downloads the whole blob and verifies it before printing any of it, since a server is not trusted.
fn get(client: &Client, id: &Digest, out: Option<&Path>, console: &Console) -> Result<()> {
    let mut content = temporary()?;
    client.blob_content(id, &mut content)?;
    let mut hash = sha2::Sha256::new();
    each_piece(&mut content, |piece| {
        hash.update(piece);
        Ok(())
    })?;
    if Digest::from_bytes(hash.finalize().into()) != *id {
        return Err(Failure::new(
            Exit::Unavailable,
            format!("the received content does not match blob {id}; nothing was written"),
        ));
    }
    match out.filter(|out| *out != Path::new("-")) {
        Some(out) => {
            content.rewind().map_err(reading)?;
            keep(&mut content, out)?;
            console.success(format!("saved {id} as {}", out.display()));
            Ok(())
        }
        None => each_piece(&mut content, |piece| console.bytes(piece)),
    }
}

/// Size of one read.
const PIECE: u64 = 64 * limits::KIB;

fn each_piece(content: &mut File, mut act: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    content.rewind().map_err(reading)?;
    loop {
        let mut piece = Vec::new();
        content.take(PIECE).read_to_end(&mut piece).map_err(reading)?;
        if piece.is_empty() {
            return Ok(());
        }
        act(&piece)?;
    }
}

fn reading(error: io::Error) -> Failure {
    Failure::internal("reading the blob", error)
}

/// `FILE|-`. A pipe is copied to disk, because its size must be known.
fn given_blob(file: &str, told: Option<String>, life: Option<Duration>) -> Result<NewBlob> {
    let content = if file == "-" {
        let mut content = temporary()?;
        let max = limits::BLOB_BYTES_MAX;
        let copied = io::copy(&mut io::stdin().lock().take(max + 1), &mut content);
        let copied = copied.map_err(|error| Failure::refused(format!("standard input: {error}")))?;
        if copied > max {
            return Err(Failure::refused(format!(
                "standard input: more than the {max} bytes of a blob; split it"
            )));
        }
        content
    } else {
        arguments::blob_file(Path::new(file))?
    };
    let media_type = told.or_else(|| (file != "-").then(|| media_type(file)));
    Ok(NewBlob {
        content,
        media_type,
        life,
    })
}

fn temporary() -> Result<File> {
    tempfile::tempfile().map_err(|error| Failure::internal("making a temporary file", error))
}

/// `--ttl`: whole seconds, as a server takes them.
fn life(text: &str) -> std::result::Result<Duration, String> {
    let life = Duration::from_secs(parse_span(text)?.as_secs());
    if life.is_zero() {
        return Err("must be at least 1 s".to_owned());
    }
    Ok(life)
}

fn table(blobs: &[BlobInfo], console: &Console) -> Rows {
    let row = |blob: &BlobInfo| {
        vec![
            console.id(blob.blob_id),
            blob.size.to_string(),
            blob.media_type.clone(),
            console.moment(blob.created_at),
            console.moment(blob.expires_at),
        ]
    };
    Rows {
        heading: &["blob", "bytes", "type", "created", "expires"],
        rows: blobs.iter().map(row).collect(),
        optional: &["type", "created", "bytes"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_lifetimes_in_whole_seconds() {
        assert_eq!(life("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(life("7d"), Ok(Duration::from_hours(7 * 24)));
        assert_eq!(life("1.5"), Ok(Duration::from_secs(1)));
        for wrong in ["0", "500ms", "-1", "soon"] {
            assert!(life(wrong).is_err(), "{wrong}");
        }
    }
}
