//! `skillbox mcp`: a server of the Model Context Protocol on standard input and output, and the entries of its clients.

use clap::{Args, Subcommand, ValueEnum};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::cli::client::{self, Client};
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::open::local_url;
use crate::config::Config;
use crate::skill::SkillName;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
A client starts this command and exchanges messages with it on standard input and output. Without a configured server it runs its own engine.

Examples:
  skillbox mcp
  skillbox mcp --skills data-analysis,pdf
  skillbox mcp config claude-code"
)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// Skills that are always tools; by default all, unless there are more than 40
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skills: Vec<SkillName>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Print the entry for the configuration of a client
    #[command(after_help = "\
The entry names the API key as a variable that the client fills in. --with-key writes the key itself: the file is then a secret.

Examples:
  skillbox mcp config claude-code > .mcp.json
  skillbox mcp config vscode --server https://skillbox.example")]
    Config {
        /// The client
        #[arg(value_enum)]
        client: McpClientName,
        /// Skills that are always tools; by default all, unless there are more than 40
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        skills: Vec<SkillName>,
        /// Print the API key itself instead of a variable
        #[arg(long)]
        with_key: bool,
    },
}

/// Clients whose configuration files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClientName {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
}

pub(crate) fn mcp(args: McpArgs, config: &Config, console: &Console) -> Result<Exit> {
    let Some(McpCommand::Config {
        client,
        skills,
        with_key,
    }) = args.command
    else {
        return serve(args.skills, config, console);
    };
    let url = match &config.server_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => local_url(config)?,
    };
    let key = match with_key {
        true => Some(client::key_for(config, &url)?),
        false => None,
    };
    let entry = ClientEntry {
        client,
        is_remote: config.server_url.is_some(),
        url,
        skills: &skills,
        key: key.as_ref().map(|key| key.expose_secret()),
    };
    let text = serde_json::to_string_pretty(&entry.json())
        .map_err(|error| Failure::internal("writing the entry", error))?;
    console.text(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

/// Answers until the client closes standard input.
fn serve(skills: Vec<SkillName>, config: &Config, console: &Console) -> Result<Exit> {
    let pinned = skills.into_iter().collect();
    let opened = Client::open(config, console)?;
    let served = opened.serve_mcp(pinned);
    opened.close();
    served.map(|()| Exit::Success)
}

/// Everything that an entry depends on.
struct ClientEntry<'a> {
    client: McpClientName,
    is_remote: bool,
    url: String,
    skills: &'a [SkillName],
    key: Option<&'a str>,
}

impl ClientEntry<'_> {
    fn json(&self) -> Value {
        match self.client {
            McpClientName::ClaudeCode => {
                let mut server = json!({ "type": "http" });
                merge(&mut server, self.http("${SKILLBOX_API_KEY}"));
                json!({ "mcpServers": { "skillbox": server } })
            }
            McpClientName::Cursor => {
                json!({ "mcpServers": { "skillbox": self.http("${env:SKILLBOX_API_KEY}") } })
            }
            McpClientName::Vscode => self.vscode(),
            McpClientName::ClaudeDesktop => json!({ "mcpServers": { "skillbox": self.stdio() } }),
        }
    }

    /// A server over HTTP; `variable` stands for the key.
    fn http(&self, variable: &str) -> Value {
        let query = match self.skills {
            [] => String::new(),
            skills => format!("?skills={}", names(skills)),
        };
        let key = self.key.unwrap_or(variable);
        json!({
            "url": format!("{}/mcp{query}", self.url),
            "headers": { "Authorization": format!("Bearer {key}") },
        })
    }

    /// VS Code asks for the key and keeps it.
    fn vscode(&self) -> Value {
        let mut server = json!({ "type": "http" });
        merge(&mut server, self.http("${input:skillbox-api-key}"));
        let mut entry = json!({ "servers": { "skillbox": server } });
        if self.key.is_none() {
            let input = json!({ "type": "promptString", "id": "skillbox-api-key", "description": "API key of Skillbox", "password": true });
            entry["inputs"] = json!([input]);
        }
        entry
    }

    /// A command that the client starts; it has no variables.
    fn stdio(&self) -> Value {
        let program = std::env::current_exe().ok();
        let program = program.map_or_else(|| "skillbox".to_owned(), |path| path.display().to_string());
        let mut args = vec!["mcp".to_owned()];
        if !self.skills.is_empty() {
            args.extend(["--skills".to_owned(), names(self.skills)]);
        }
        let mut server = json!({ "command": program, "args": args });
        if self.is_remote {
            let key = self.key.unwrap_or("skb_…");
            server["env"] = json!({ "SKILLBOX_SERVER_URL": self.url, "SKILLBOX_API_KEY": key });
        }
        server
    }
}

fn names(skills: &[SkillName]) -> String {
    let names: Vec<&str> = skills.iter().map(SkillName::as_str).collect();
    names.join(",")
}

fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: McpClientName, key: Option<&str>) -> Value {
        let skills = ["pdf".parse().unwrap(), "a.b".parse().unwrap()];
        ClientEntry {
            client,
            is_remote: true,
            url: "https://box.example".to_owned(),
            skills: &skills,
            key,
        }
        .json()
    }

    #[test]
    fn writes_the_entry_of_each_client() {
        let url = "https://box.example/mcp?skills=pdf,a.b";
        assert_eq!(
            entry(McpClientName::ClaudeCode, None),
            json!({ "mcpServers": { "skillbox": { "type": "http", "url": url, "headers": { "Authorization": "Bearer ${SKILLBOX_API_KEY}" } } } })
        );
        assert_eq!(
            entry(McpClientName::Cursor, Some("skb_x")),
            json!({ "mcpServers": { "skillbox": { "url": url, "headers": { "Authorization": "Bearer skb_x" } } } })
        );
        let vscode = entry(McpClientName::Vscode, None);
        assert_eq!(vscode["servers"]["skillbox"]["type"], "http");
        assert_eq!(
            vscode["servers"]["skillbox"]["headers"]["Authorization"],
            format!(
                "Bearer ${{input:{}}}",
                vscode["inputs"][0]["id"].as_str().unwrap()
            )
        );
        assert!(entry(McpClientName::Vscode, Some("skb_x"))["inputs"].is_null());
        let desktop = &entry(McpClientName::ClaudeDesktop, Some("skb_x"))["mcpServers"]["skillbox"];
        assert_eq!(desktop["args"], json!(["mcp", "--skills", "pdf,a.b"]));
        assert_eq!(desktop["env"]["SKILLBOX_SERVER_URL"], "https://box.example");
        assert_eq!(desktop["env"]["SKILLBOX_API_KEY"], "skb_x");
    }
}
