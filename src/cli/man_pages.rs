//! Man pages, one for each command and each topic.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::topics::{TOPICS, Topic};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  skillbox man-pages ~/.local/share/man/man1")]
pub(crate) struct ManPagesArgs {
    /// The folder, created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn write(args: &ManPagesArgs, command: clap::Command, console: &Console) -> Result<Exit> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(command, &args.folder))
        .and_then(|()| {
            TOPICS
                .iter()
                .try_for_each(|topic| write_topic(topic, &args.folder))
        })
        .map_err(|error| Failure::file(&args.folder, &error))?;
    console.text(&format!("wrote man pages into {folder}\n"))?;
    Ok(Exit::Success)
}

/// `skillbox-help-packages.1`, for example.
fn write_topic(topic: &Topic, folder: &Path) -> std::io::Result<()> {
    let Topic { name, about, .. } = topic;
    let title = format!("skillbox-help-{name}");
    // A line that begins with a dot or an apostrophe would be a request.
    let escaped = topic.text().replace('\\', "\\e").replace('-', "\\-");
    let lines: String = escaped.lines().map(|line| format!("\\&{line}\n")).collect();
    let page = format!(
        ".TH {title} 1 \"\" \"skillbox {}\"\n.SH NAME\n{title} \\- {about}\n.SH DESCRIPTION\n.nf\n{lines}.fi\n",
        env!("CARGO_PKG_VERSION")
    );
    std::fs::write(folder.join(format!("{title}.1")), page)
}
