//! The command line: arguments, parsed into types, and one function per command.

mod arguments;
mod artifacts;
#[cfg_attr(windows, path = "atomic_file_windows.rs")]
mod atomic_file;
mod authoring;
mod blob;
mod client;
mod completions;
mod console;
mod deps;
mod dev;
mod doctor;
mod event_printer;
mod exec;
mod exec_logs;
mod exit;
mod failure;
mod id_argument;
mod key;
mod man_pages;
#[cfg(feature = "mcp")]
mod mcp;
mod moment;
mod open;
mod package_arguments;
#[cfg_attr(windows, path = "piped_stdin_windows.rs")]
mod piped_stdin;
mod progress;
mod prove;
mod requirements;
mod result_files;
mod result_view;
mod run;
mod run_options;
#[cfg(target_os = "linux")]
mod scope;
mod sdk;
mod secret;
mod show_config;
mod skill;
mod skill_source;
mod syntax;
mod table;
mod terminal_text;
mod tools;
mod topics;
mod version_bump;
mod webhook;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::{Config, Sources};
use crate::server;
use crate::telemetry;

use client::Client;
use console::{Console, ForeignText, Format, Rows};
use failure::Result;
use key::KeyCommand;

pub use exit::Exit;

/// Runs AI-agent skills in hardened sandboxes.
#[derive(Debug, Parser)]
#[command(
    name = "skillbox",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = after_help(),
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Global options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Configuration file, instead of ~/.skillbox/config.yaml
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    /// Server to use; without one the command runs its own engine
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// API key for the server; prefer SKILLBOX_API_KEY, which other users of this machine cannot see
    #[arg(long, global = true, value_name = "KEY")]
    api_key: Option<String>,
    /// Output format
    #[arg(long, global = true, value_enum)]
    format: Option<Format>,
    /// Print untrusted text to a terminal unescaped, including control characters
    #[arg(long, global = true)]
    raw: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the REST API
    #[command(after_help = "Example:\n  SKILLBOX_API_PORT=9000 skillbox serve")]
    Serve(ServeArgs),
    /// Sign a browser in to the dashboard of a running server
    Open(open::OpenArgs),
    /// As `serve`: `server start`
    #[command(hide = true, subcommand, after_help = "Example:\n  skillbox server start")]
    Server(ServerCommand),
    /// Run code or a skill, and print its result
    Run(Box<run::RunArgs>),
    /// Create, check, publish and inspect skills
    #[command(subcommand, after_help = "Example:\n  skillbox skill init my-skill")]
    Skill(skill::SkillCommand),
    /// Print skills as tool definitions for a model
    Tools(tools::ToolsArgs),
    /// Print a client library for programs, or write its package
    Sdk(sdk::SdkArgs),
    /// Serve skills and code to an agent over the Model Context Protocol
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpArgs),
    /// Inspect, wait for and cancel executions
    #[command(subcommand, after_help = "Example:\n  skillbox exec list")]
    Exec(exec::ExecCommand),
    /// Manage installed packages
    #[command(subcommand, after_help = "Example:\n  skillbox deps list")]
    Deps(deps::DepsCommand),
    /// Manage blobs: input and output files of executions
    #[command(subcommand, after_help = "Example:\n  skillbox blob put sales.csv")]
    Blob(blob::BlobCommand),
    /// Manage API keys
    #[command(subcommand, after_help = "Example:\n  skillbox key create ci --scope run")]
    Key(KeyCommand),
    /// Manage secrets: values that skills declare and read from environment variables
    #[command(subcommand, after_help = "Example:\n  skillbox secret set API_TOKEN")]
    Secret(secret::SecretCommand),
    /// Inspect webhook deliveries and the signing secret
    #[command(subcommand, after_help = "Example:\n  skillbox webhook deliveries")]
    Webhook(webhook::WebhookCommand),
    /// Check this machine: data folder, database, container engine, images, test runs
    #[command(after_help = "Example:\n  skillbox doctor --format json")]
    Doctor,
    /// Attack test sandboxes on this machine and report which promises hold
    Prove(prove::ProveArgs),
    /// Show every setting, its value and its source
    #[command(after_help = "Example:\n  skillbox config --format json")]
    Config,
    /// Print a completion script
    Completions(completions::CompletionsArgs),
    /// Write man pages into a folder
    ManPages(man_pages::ManPagesArgs),
    /// Print help for a command or a topic
    Help(topics::HelpArgs),
    /// Print the version
    #[command(after_help = "Example:\n  skillbox version --format json")]
    Version,
}

#[derive(Debug, Subcommand)]
enum ServerCommand {
    /// Serve the REST API
    #[command(after_help = "Example:\n  skillbox server start --port 9000")]
    Start(ServeArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Port to listen on; 0 selects a free port
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Print no banner, so that the first API key does not end up in a log
    #[arg(long)]
    quiet: bool,
}

fn after_help() -> String {
    use std::fmt::Write as _;
    let mut text = String::from("Exit codes:\n");
    for exit in Exit::ALL {
        let (number, meaning) = exit.row();
        let _ = writeln!(text, "  {number:>3}  {meaning}");
    }
    text.push_str(
        "\nExample:\n  skillbox run examples/skills/text-summary --input '{\"text\": \"One. Two.\"}'",
    );
    text
}

/// The command line with groups and topics in its help.
fn grouped_command() -> clap::Command {
    topics::with_groups(Cli::command())
}

fn parse() -> std::result::Result<Cli, clap::Error> {
    let mut command = grouped_command();
    let matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(|error| topics::with_swapped_letters(error, &command))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

#[must_use]
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help is printed to standard output with exit code 0.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Success
            }
            .into();
        }
    };
    let foreign = if cli.global.raw {
        ForeignText::Raw
    } else {
        ForeignText::Escaped
    };
    let console = Console::new(cli.global.format, foreign);
    match dispatch(cli, &console) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.with_flags();
            console.bad(&failure);
            failure.exit().into()
        }
    }
}

impl Command {
    /// Whether `--format value` prints something: an output, or a new key.
    fn has_value(&self) -> bool {
        match self {
            Self::Run(_) | Self::Skill(skill::SkillCommand::Dev(_)) => true,
            Self::Key(KeyCommand::Managed(command)) => command.makes_key(),
            Self::Exec(command) => command.has_value(),
            _ => false,
        }
    }
}

fn dispatch(cli: Cli, console: &Console) -> Result<Exit> {
    let Cli { global, command } = cli;
    if console.format() == Some(Format::Value) && !command.has_value() {
        return Err(console::no_value());
    }
    match command {
        Command::Serve(args) | Command::Server(ServerCommand::Start(args)) => serve(global, args),
        Command::Open(args) => open::open(&args, &load_config(global, console)?, console),
        Command::Run(args) => {
            let config = load_config(global, console)?;
            enter_scope(&config);
            run::run(*args, &config, console)
        }
        Command::Skill(command) => skill::skill(command, || load_config(global, console), console),
        Command::Tools(args) => with_client(global, console, |client| tools::tools(&args, client, console)),
        Command::Sdk(args) => sdk::sdk(&args, console),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => {
            let config = load_config(global, console)?;
            enter_scope(&config);
            mcp::mcp(args, &config, console)
        }
        Command::Exec(command) => with_client(global, console, |client| exec::exec(command, client, console)),
        Command::Deps(command) => with_client(global, console, |client| deps::deps(command, client, console)),
        Command::Blob(command) => with_client(global, console, |client| blob::blob(command, client, console)),
        Command::Key(KeyCommand::Managed(command)) => {
            with_client(global, console, |client| key::key(command, client, console))
        }
        Command::Key(KeyCommand::Recover) => key::recover(&load_config(global, console)?, console),
        Command::Secret(command) => {
            with_client(global, console, |client| secret::secret(command, client, console))
        }
        Command::Webhook(command) => with_client(global, console, |client| {
            webhook::webhook(command, client, console)
        }),
        Command::Doctor => {
            let config = global.load(Vec::new(), UnknownVariables::Warn(console));
            config.iter().for_each(enter_scope);
            doctor::doctor(config, console)
        }
        Command::Prove(args) => {
            let config = load_config(global, console)?;
            enter_scope(&config);
            prove::prove(&args, &config, console)
        }
        Command::Config => show_config::show(
            &global.load(Vec::new(), UnknownVariables::Warn(console))?,
            console,
        ),
        Command::Completions(args) => completions::print(&args, &mut Cli::command(), console),
        Command::ManPages(args) => man_pages::write(&args, Cli::command(), console),
        Command::Help(args) => topics::help(&args, grouped_command(), console),
        Command::Version => {
            let version = env!("CARGO_PKG_VERSION");
            match console.format() {
                None | Some(Format::Table) => console.text(&format!("skillbox {version}\n"))?,
                Some(_) => console.data(Format::Json, &serde_json::json!({"version": version}), |_| {
                    Rows::default()
                })?,
            }
            Ok(Exit::Success)
        }
    }
}

/// What a misspelt variable does. A server would run for long without the setting that was meant.
#[derive(Clone, Copy)]
enum UnknownVariables<'a> {
    Refuse,
    Warn(&'a Console),
}

impl Global {
    fn load(self, more: Vec<(&'static str, String)>, unknown: UnknownVariables<'_>) -> Result<Config> {
        let own = [
            ("data_dir", self.data_dir),
            ("server_url", self.server),
            ("api_key", self.api_key),
        ];
        let own = own.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let flags = own.chain(more).collect();
        let sources = Sources::of_process(self.config, flags);
        for error in sources.unknown_variables() {
            match unknown {
                UnknownVariables::Refuse => return Err(error.into()),
                UnknownVariables::Warn(console) => console.say(format!("warning: {error}")),
            }
        }
        Ok(Config::load(&sources)?)
    }
}

/// Loads the configuration of a command. Only errors are logged unless `log.level` is set.
fn load_config(global: Global, console: &Console) -> Result<Config> {
    let config = global.load(Vec::new(), UnknownVariables::Warn(console))?;
    telemetry::init(config.log.filter.as_deref().unwrap_or("error"), config.log.format)
        .map_err(server::Error::from)?;
    Ok(config)
}

/// Restarts in a delegated cgroup if native sandboxes need one and the user's service manager provides it.
fn enter_scope(config: &Config) {
    #[cfg(target_os = "linux")]
    scope::enter(config);
    #[cfg(not(target_os = "linux"))]
    let _ = config;
}

fn with_client(global: Global, console: &Console, act: impl FnOnce(&Client) -> Result<Exit>) -> Result<Exit> {
    let client = Client::open(&load_config(global, console)?, console)?;
    let result = act(&client);
    client.close();
    result
}

fn serve(global: Global, args: ServeArgs) -> Result<Exit> {
    let flags = [("api.host", args.host), ("api.port", args.port)];
    let config = global.load(
        flags
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect(),
        UnknownVariables::Refuse,
    )?;
    enter_scope(&config);
    let greeting = if args.quiet {
        server::Greeting::Quiet
    } else {
        server::Greeting::Banner
    };
    let runtime = server::runtime()?;
    let served = runtime.block_on(server::serve(config, greeting));
    server::end_runtime(runtime);
    served?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn visit(command: &mut clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            if command.get_name() != "help" {
                let help = command.render_long_help().to_string();
                assert!(help.contains("Example"), "{path}");
            }
            for inner in command.get_subcommands_mut() {
                visit(inner, &path);
            }
        }
        visit(&mut Cli::command(), "");
    }
}
