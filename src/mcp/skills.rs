//! The skills extension (SEP-2640): skills with the digests of their files, and their folders.

use std::collections::BTreeMap;

use rmcp::model::{
    ListResourcesResult, ListSkillsResult, Resource, Skill, SkillFrontmatter, SkillResource, SkillResources,
};

use super::McpClient;
use super::read::text_type;
use super::uri::{ResourceUri, SKILL_MD};
use crate::api::skill_files::{self, ListedSkillFile};
use crate::api::skills::{self, SkillSummary};
use crate::api::{List, page_request};
use crate::error::Error;
use crate::limits;
use crate::skill::{Dialect, Selector, SkillName, SkillRef, agent_skill};

/// The type of a folder.
const FOLDER: &str = "inode/directory";

impl McpClient {
    /// A page of the skills that the extension can describe.
    pub(super) async fn listed_skills(&self, cursor: Option<String>) -> Result<ListSkillsResult, Error> {
        let page = self.page(cursor).await?;
        let mut listed = Vec::new();
        for summary in page.items {
            let SkillSummary { name, version, .. } = summary;
            let exact = Selector::Version(version);
            listed.extend(self.described(&name, exact, Selector::Latest).await?);
        }
        let mut result = ListSkillsResult::with_all_items(listed);
        result.next_cursor = page.next_page_token;
        Ok(result)
    }

    /// The skill whose SKILL.md is at `uri`.
    pub(super) async fn listed_skill(&self, uri: &str) -> Result<Skill, Error> {
        let missing = || Error::not_found(format!("skill {uri:?}"));
        let Ok(ResourceUri::Skill { skill, path }) = uri.parse() else {
            return Err(missing());
        };
        if path != SKILL_MD {
            return Err(missing());
        }
        let SkillRef { name, selector } = skill;
        let found = skills::get(&self.engine, &self.caller, &name, &selector).await?;
        let exact = Selector::Version(found.summary.version);
        self.described(&name, exact, selector).await?.ok_or_else(missing)
    }

    /// The children of a folder of a skill.
    pub(super) async fn directory(&self, uri: &str) -> Result<ListResourcesResult, Error> {
        let missing = || Error::not_found(format!("folder {uri:?}"));
        let Ok(ResourceUri::Skill { skill, path }) = uri.parse() else {
            return Err(missing());
        };
        let files = skill_files::files(&self.engine, &self.caller, &skill).await?;
        let children = children(&files.items, &path);
        if children.is_empty() {
            return Err(missing());
        }
        let resources = children.into_iter().map(|(name, file)| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            let uri = ResourceUri::Skill {
                skill: skill.clone(),
                path: path.clone(),
            };
            match file {
                Some(file) => Resource::new(uri.to_string(), name)
                    .with_mime_type(text_type(&path))
                    .with_size(file.size),
                None => Resource::new(uri.to_string(), name).with_mime_type(FOLDER),
            }
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    /// The SKILL.md of each skill that must have one, for clients without the extension.
    pub(super) async fn skill_documents(&self, cursor: Option<String>) -> Result<ListResourcesResult, Error> {
        let page = self.page(cursor).await?;
        let with_document = page
            .items
            .into_iter()
            .filter(|skill| skill.dialect != Dialect::Function);
        let resources = with_document.map(|skill| {
            let uri = document_uri(&skill.name, Selector::Latest);
            Resource::new(uri, skill.name.as_str())
                .with_description(skill.description)
                .with_mime_type(text_type(SKILL_MD))
        });
        let mut result = ListResourcesResult::with_all_items(resources.collect());
        result.next_cursor = page.next_page_token;
        Ok(result)
    }

    async fn page(&self, cursor: Option<String>) -> Result<List<SkillSummary>, Error> {
        let rows = limits::MCP_SKILLS_PER_PAGE.to_string();
        let page = page_request(Some(&rows), cursor.as_deref())?;
        skills::list(&self.engine, &self.caller, page).await
    }

    /// The version `exact` of a skill, at the URIs of `shown`; `None` if the extension cannot describe it.
    async fn described(
        &self,
        name: &SkillName,
        exact: Selector,
        shown: Selector,
    ) -> Result<Option<Skill>, Error> {
        let exact = SkillRef {
            name: name.clone(),
            selector: exact,
        };
        let listed = skill_files::files(&self.engine, &self.caller, &exact).await?;
        let Some(document) = self.document(&exact, &listed.items).await? else {
            return Ok(None);
        };
        let Ok(front_matter) = agent_skill(name, &document) else {
            return Ok(None);
        };
        let Ok(front_matter) = serde_json::from_value::<SkillFrontmatter>(front_matter.into()) else {
            return Ok(None);
        };
        let files = listed.items.iter().map(|file| {
            let uri = ResourceUri::Skill {
                skill: SkillRef {
                    name: name.clone(),
                    selector: shown.clone(),
                },
                path: file.path.clone(),
            };
            SkillResource::new(uri.to_string(), file.sha256.to_string(), file.size)
        });
        let resources = SkillResources::Files(files.collect());
        let uri = document_uri(name, shown);
        Ok(Some(Skill::new(uri, front_matter, resources)))
    }

    async fn document(&self, skill: &SkillRef, files: &[ListedSkillFile]) -> Result<Option<Vec<u8>>, Error> {
        if !files.iter().any(|file| file.path == SKILL_MD) {
            return Ok(None);
        }
        let uri = document_uri(&skill.name, skill.selector.clone());
        self.read(&uri).await.map(|read| Some(read.bytes))
    }
}

fn document_uri(name: &SkillName, selector: Selector) -> String {
    let skill = SkillRef {
        name: name.clone(),
        selector,
    };
    let path = SKILL_MD.to_owned();
    ResourceUri::Skill { skill, path }.to_string()
}

/// Names directly in `folder`: files, and folders without a file of their own.
fn children<'a>(files: &'a [ListedSkillFile], folder: &str) -> BTreeMap<String, Option<&'a ListedSkillFile>> {
    let prefix = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    let inside = files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix(&prefix)?)));
    inside
        .map(|(file, rest)| match rest.split_once('/') {
            Some((child, _)) => (child.to_owned(), None),
            None => (rest.to_owned(), Some(file)),
        })
        .collect()
}
