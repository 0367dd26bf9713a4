//! Man pages, one for each command.

use std::path::PathBuf;

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};

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
        .map_err(|error| Failure::file(&args.folder, &error))?;
    console.text(&format!("wrote man pages into {folder}\n"))?;
    Ok(Exit::Success)
}
