//! Skills as tools, from the embedded engine or a server.

use super::Client;
use super::listed;
use super::remote::copy;
use crate::api::List;
use crate::api::tools::{self, ToolDefinition};
use crate::cli::failure::Result;
use crate::limits;
use crate::skill::{ToolFormat, prompt, prompt_entries};

impl Client {
    /// All callable skills as tools.
    pub(crate) fn tools(&self, format: ToolFormat) -> Result<Vec<ToolDefinition>> {
        let rows = limits::ROWS_LISTED_MAX;
        let tools = match self {
            Self::Embedded(local) => local.list(rows, async |engine, caller, page| {
                tools::list(engine, caller, format, page).await
            }),
            Self::Remote(remote) => {
                remote.listed("/v1/tools", &[("format", format.as_str().to_owned())], rows)
            }
        };
        Ok(tools?.items)
    }

    /// All skills as the section of a prompt.
    pub(crate) fn prompt(&self) -> Result<String> {
        let rows = limits::ROWS_LISTED_MAX;
        let entries = match self {
            Self::Embedded(local) => local.list(rows, tools::prompt_entries),
            // A page is one text.
            Self::Remote(remote) => listed(rows, |_, token| {
                let limit = limits::PAGE_ROWS_MAX as usize;
                let answer = remote.page("/v1/tools/prompt", &[], limit, token)?;
                let next = answer.headers().get("x-next-page-token");
                let next_page_token = next.and_then(|token| token.to_str().ok()).map(str::to_owned);
                let mut text = Vec::new();
                copy(answer, &mut text, limits::ANSWER_BYTES_MAX)?;
                let entries = prompt_entries(&String::from_utf8_lossy(&text)).map(str::to_owned);
                Ok(List {
                    items: entries.into_iter().collect(),
                    next_page_token,
                })
            }),
        };
        Ok(prompt(entries?.items))
    }
}
