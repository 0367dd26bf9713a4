//! Skills as tools, in both places.

use ureq::Body;
use ureq::http::{Method, Response};

use super::embedded::listed;
use super::remote::{ApiCall, copy, read_json};
use super::{Client, EmbeddedClient, RemoteClient};
use crate::cli::failure::Result;
use crate::http::{List, ToolDefinition};
use crate::limits;
use crate::skill::{ToolFormat, prompt, prompt_entries, prompt_entry};
use crate::store::SkillRecord;

impl Client {
    /// All callable skills as tools.
    pub(crate) fn tools(&self, format: ToolFormat) -> Result<Vec<ToolDefinition>> {
        match self {
            Self::Embedded(local) => {
                let skills = local.latest_skills()?;
                let tools = skills
                    .iter()
                    .filter_map(|record| ToolDefinition::of(record, format));
                Ok(tools.collect())
            }
            Self::Remote(remote) => remote.tools(format),
        }
    }

    /// All skills as the section of a prompt.
    pub(crate) fn prompt(&self) -> Result<String> {
        match self {
            Self::Embedded(local) => {
                let skills = local.latest_skills()?;
                Ok(prompt(skills.iter().map(|record| prompt_entry(&record.manifest))))
            }
            Self::Remote(remote) => remote.prompt(),
        }
    }
}

impl EmbeddedClient {
    fn latest_skills(&self) -> Result<Vec<SkillRecord>> {
        let pages = async |page| self.engine().skills(self.caller(), page).await;
        Ok(self.wait(listed(limits::ROWS_LISTED_MAX, pages))?.items)
    }
}

impl RemoteClient {
    /// A page of them may be empty though there are more.
    fn tools(&self, format: ToolFormat) -> Result<Vec<ToolDefinition>> {
        let mut tools = Vec::new();
        self.pages("/v1/tools", &[("format", format.as_str().to_owned())], |answer| {
            let page: List<ToolDefinition> = read_json(answer)?;
            tools.extend(page.items);
            Ok(page.next_page_token)
        })?;
        Ok(tools)
    }

    fn prompt(&self) -> Result<String> {
        let mut entries = Vec::new();
        self.pages("/v1/tools/prompt", &[], |answer| {
            let next = answer.headers().get("x-next-page-token");
            let next = next.and_then(|token| token.to_str().ok()).map(str::to_owned);
            let mut text = Vec::new();
            copy(answer, &mut text, limits::ANSWER_BYTES_MAX)?;
            let text = String::from_utf8_lossy(&text);
            entries.push(prompt_entries(&text).unwrap_or_default().to_owned());
            Ok(next)
        })?;
        Ok(prompt(entries))
    }

    /// Each page of a list whose pages may be empty; a server that never stops is cut.
    fn pages(
        &self,
        path: &str,
        filter: &[(&str, String)],
        mut read: impl FnMut(Response<Body>) -> Result<Option<String>>,
    ) -> Result<()> {
        let mut token = None;
        for _ in 0..limits::ROWS_LISTED_MAX / limits::PAGE_ROWS_MAX as usize {
            let mut query = filter.to_vec();
            query.push(("limit", limits::PAGE_ROWS_MAX.to_string()));
            query.extend(token.take().map(|token| ("page_token", token)));
            let call = ApiCall {
                query: &query,
                accept: "*/*",
                ..ApiCall::new(Method::GET, path)
            };
            token = read(self.call(&call)?)?;
            if token.is_none() {
                break;
            }
        }
        Ok(())
    }
}
