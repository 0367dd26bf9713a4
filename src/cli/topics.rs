//! `skillbox help`: commands in groups, and topics that concern several commands.

use std::fmt::Write as _;

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::config::SETTINGS;
use crate::error::did_you_mean;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  skillbox help run\n  skillbox help exec logs\n  skillbox help packages")]
pub(crate) struct HelpArgs {
    /// A command, such as `exec logs`, or a topic
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    content: TopicText,
}

enum TopicText {
    Written(&'static str),
    ExitCodes,
    Environment,
}

macro_rules! topic {
    ($name:literal, $about:literal) => {
        Topic {
            name: $name,
            about: $about,
            content: TopicText::Written(include_str!(concat!("topics/", $name, ".txt"))),
        }
    };
}

pub(crate) const TOPICS: [Topic; 9] = [
    topic!("code", "how to run code, and what it returns"),
    topic!("skills", "what a skill is, from creating to publishing it"),
    topic!("packages", "how programs get Python and Node packages"),
    topic!("secrets", "how programs get secret values"),
    topic!("sandbox", "backends, limits and promises"),
    topic!("output", "what is printed where, and formats"),
    topic!("config", "configuration files and their order"),
    Topic {
        name: "environment",
        about: "the variable of each setting",
        content: TopicText::Environment,
    },
    Topic {
        name: "exit-codes",
        about: "exit codes and their meaning",
        content: TopicText::ExitCodes,
    },
];

/// Commands by group, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "exec"]),
    ("Skills", &["skill", "tools", "mcp", "deps"]),
    ("Data", &["blob", "secret"]),
    ("Server", &["serve", "open", "key", "webhook", "sdk"]),
    ("This machine", &["doctor", "prove", "config"]),
    ("Help", &["help", "completions", "man-pages", "version"]),
];

/// The command with groups and topics in its help.
pub(crate) fn with_groups(command: clap::Command) -> clap::Command {
    let heading = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut template = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n\n");
    let mut section = |title: &str, rows: &mut dyn Iterator<Item = (String, String)>| {
        let _ = writeln!(template, "{heading}{title}:{heading:#}");
        for (name, about) in rows {
            let _ = writeln!(template, "  {literal}{name:<12}{literal:#} {about}");
        }
        template.push('\n');
    };
    for (title, names) in GROUPS {
        let mut rows = names.iter().filter_map(|name| {
            let about = command.find_subcommand(name)?.get_about()?;
            Some(((*name).to_owned(), about.to_string()))
        });
        section(title, &mut rows);
    }
    let mut topics = TOPICS
        .iter()
        .map(|topic| (topic.name.to_owned(), topic.about.to_owned()));
    section("Topics of `skillbox help`", &mut topics);
    let _ = write!(
        template,
        "{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Suggests `run` for `rnu`, which is too short for clap's measure of similarity.
pub(crate) fn with_swapped_letters(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let meant = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .find(|name| letters(name) == letters(unknown));
    if let Some(meant) = meant {
        let meant = ContextValue::Strings(vec![meant.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    error
}

pub(crate) fn help(args: &HelpArgs, mut command: clap::Command, console: &Console) -> Result<Exit> {
    command.build();
    let topic = match &args.words[..] {
        [name] => TOPICS.iter().find(|topic| topic.name == *name),
        _ => None,
    };
    let mut found = Some(&mut command);
    for word in &args.words {
        found = found.and_then(|command| command.find_subcommand_mut(word));
    }
    let is_command = found.is_some();
    if let Some(command) = found {
        // Fails only if the reader has gone.
        let _ = command.print_long_help();
    }
    match topic {
        Some(topic) if is_command => console.text(&format!("\n{}", topic.text()))?,
        Some(topic) => console.text(&topic.text())?,
        None if is_command => {}
        None => return Err(unknown(&args.words, &command)),
    }
    Ok(Exit::Success)
}

fn unknown(words: &[String], command: &clap::Command) -> Failure {
    let known = command.get_subcommands().map(clap::Command::get_name);
    let known = known.chain(TOPICS.iter().map(|topic| topic.name));
    let meant = did_you_mean(&words[0], known);
    let message = format!("no command or topic `{}`{meant}", words.join(" "));
    Failure::new(Exit::Usage, message).hint("`skillbox help` lists commands and topics")
}

impl Topic {
    pub(crate) fn text(&self) -> String {
        match self.content {
            TopicText::Written(text) => text.to_owned(),
            TopicText::ExitCodes => exit_codes(),
            TopicText::Environment => environment(),
        }
    }
}

fn exit_codes() -> String {
    let mut text = String::from("The exit code tells how a command ended:\n\n");
    for exit in Exit::ALL {
        let (number, meaning) = exit.row();
        let _ = writeln!(text, "  {number:>3}  {meaning}");
    }
    text.push_str("\nFor scripts: retry after 69; do not retry after 3.\n");
    text
}

fn environment() -> String {
    let mut text = String::from("Each setting can be set by a variable. Write lists as a,b.\n\n");
    let width = SETTINGS.iter().map(|setting| setting.variable.len()).max();
    for setting in SETTINGS {
        let (variable, width) = (setting.variable, width.unwrap_or_default());
        let _ = writeln!(text, "  {variable:<width$}  {}", setting.key);
    }
    text.push_str(
        "
SKILLBOX_CONFIG names the configuration file, and NO_COLOR switches colour off.

  skillbox config    show the value of each setting and its source

More: https://github.com/skillbox-rs/skillbox/blob/main/docs/CONFIGURATION.md
",
    );
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = crate::cli::Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<_> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn topics_fit_a_terminal() {
        for topic in TOPICS {
            let text = topic.text();
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{}", topic.name);
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{}",
                topic.name
            );
            // A page and a half of a terminal; the list of variables has one line for each setting.
            let lines = text.lines().count();
            assert!(
                lines <= 36 || topic.name == "environment",
                "{} {lines}",
                topic.name
            );
        }
    }
}
