//! Completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::Result;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  skillbox completions bash > ~/.local/share/bash-completion/completions/skillbox"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn print(args: &CompletionsArgs, command: &mut clap::Command, console: &Console) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "skillbox", &mut script);
    console.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
