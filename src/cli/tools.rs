//! `skillbox tools`: prints skills as the tools of a model.

use clap::{Args, ValueEnum};

use crate::api::tools::ToolDefinition;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::Result;
use crate::skill::ToolFormat;

#[derive(Debug, Args)]
#[command(
    after_help = "The name of a tool is the skill's, with _ for each dot. Skills with instructions only cannot be called; `prompt` lists them, too.\n\nExamples:\n  skillbox tools --for openai\n  skillbox tools --for prompt"
)]
pub(crate) struct ToolsArgs {
    /// Format of the definitions
    #[arg(long = "for", value_name = "PRODUCT", value_enum, default_value = "mcp")]
    product: Product,
}

/// Products that read tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Product {
    /// tools/list of the Model Context Protocol
    Mcp,
    /// `tools` of OpenAI's chat completions
    Openai,
    /// `tools` of Anthropic's messages; also `claude`
    #[value(alias = "claude")]
    Anthropic,
    /// The <available_skills> text of Agent Skills
    Prompt,
}

pub(crate) fn tools(args: &ToolsArgs, client: &Client, console: &Console) -> Result<Exit> {
    let format = match args.product {
        Product::Mcp => ToolFormat::Mcp,
        Product::Openai => ToolFormat::OpenAi,
        Product::Anthropic => ToolFormat::Anthropic,
        Product::Prompt => {
            console.text(&client.prompt()?)?;
            return Ok(Exit::Success);
        }
    };
    console.data(Format::Json, &client.tools(format)?, |tools| names(tools))?;
    Ok(Exit::Success)
}

fn names(tools: &[ToolDefinition]) -> Rows {
    let row = |tool: &ToolDefinition| vec![tool.name().to_owned(), tool.description().to_owned()];
    Rows {
        heading: &["tool", "description"],
        rows: tools.iter().map(row).collect(),
        ..Rows::default()
    }
}
