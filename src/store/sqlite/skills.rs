//! Published versions of skills.

use rusqlite::{Connection, Row, named_params, params_from_iter};

use super::row::{all, execute, exists, first, json, optional_text, text, time, to_json};
use super::{Sqlite, storage};
use crate::ids::{Digest, Tenant};
use crate::skill::{Selector, SkillName, Version};
use crate::store::skills::{PushedSkill, Skills};
use crate::store::{Conflict, Error, Published, SkillRecord};

macro_rules! select {
    ($manifest:literal, $which:literal) => {
        concat!(
            "select tenant, name, version, push, digest, ",
            $manifest,
            " as manifest, archive_bytes, unpacked_bytes, files, folder, pushed_by, requirements, created_at from skills where ",
            $which
        )
    };
}

macro_rules! select_skill {
    ($which:literal) => {
        select!("manifest", $which)
    };
}

/// A page of manifests with the longest instructions would take 200 MiB.
macro_rules! select_row {
    ($which:literal) => {
        select!("json_replace(manifest, '$.instructions', '')", $which)
    };
}

macro_rules! select_row_key {
    ($which:literal) => {
        concat!(
            "select version, push, digest, requirements, created_at from skills where ",
            $which
        )
    };
}

macro_rules! by_version {
    ($select:ident) => {
        $select!("tenant = ?1 and name = ?2 and version = ?3")
    };
}

macro_rules! by_digest {
    ($select:ident) => {
        $select!("tenant = ?1 and name = ?2 and digest = ?3 order by push desc limit 1")
    };
}

macro_rules! latest {
    ($select:ident) => {
        $select!("tenant = ?1 and name = ?2 order by rank desc, push desc limit 1")
    };
}

const BY_VERSION: &str = by_version!(select_skill);
const BY_DIGEST: &str = by_digest!(select_skill);
pub(super) const LATEST: &str = latest!(select_skill);
const ROW_KEY_BY_VERSION: &str = by_version!(select_row_key);
const ROW_KEY_BY_DIGEST: &str = by_digest!(select_row_key);
const ROW_KEY_OF_LATEST: &str = latest!(select_row_key);
pub(super) const NEXT_LATEST: &str =
    select_row!("tenant = ?1 and name > ?2 order by name, rank desc, push desc limit 1");
pub(super) const VERSIONS: &str =
    select_row!("tenant = ?1 and name = ?2 and push < ?3 order by push desc limit ?4");

const INSERT: &str = "
    insert into skills (
        tenant, name, version, push, rank, digest, manifest,
        archive_bytes, unpacked_bytes, files, folder, pushed_by, requirements, created_at
    ) values (
        :tenant, :name, :version,
        1 + coalesce((select max(push) from skills where tenant = :tenant and name = :name), 0),
        :rank, :digest, :manifest,
        :archive_bytes, :unpacked_bytes, :files, :folder, :pushed_by, :requirements, :created_at
    )";
/// Changes nothing if the version is already the last push.
const PUSH_AGAIN: &str = "
    update skills set
        push = 1 + (select max(push) from skills where tenant = ?1 and name = ?2), folder = ?4, pushed_by = ?5
    where tenant = ?1 and name = ?2 and version = ?3
        and push < (select max(push) from skills where tenant = ?1 and name = ?2)";
/// Skills above and below in the tree of imports, with the modules of each version.
pub(super) const ABOVE: &str = "select name, coalesce(manifest ->> '$.modules', '[]') as modules from skills where tenant = ?1 and name = ?2";
pub(super) const BELOW: &str =
    "select distinct name from skills where tenant = ?1 and name > ?2 and name < ?3";
const SET_REQUIREMENTS: &str =
    "update skills set requirements = ?4 where tenant = ?1 and name = ?2 and version = ?3";
const DELETE: &str = "delete from skills where tenant = ?1 and name = ?2 and version = ?3";
const DIGEST_IS_USED: &str = "select 1 from skills where digest = ?1 limit 1";

impl Skills for Sqlite {
    async fn publish(&self, skill: SkillRecord) -> Result<Published, Error> {
        self.write(move |c| publish(c, &skill)).await
    }

    async fn skill(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error> {
        let found = match self.try_read_now(|c| self.parsed.find(c, tenant, name, selector)) {
            Some(found) => found?,
            None => {
                let (parsed, tenant) = (self.parsed.clone(), tenant.clone());
                let (name, selector) = (name.clone(), selector.clone());
                self.read(move |c| parsed.find(c, &tenant, &name, &selector))
                    .await?
            }
        };
        found.ok_or_else(|| Error::NotFound(format!("skill `{name}` version `{selector}`")))
    }

    async fn set_requirements(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        version: &Version,
        requirements: Vec<String>,
    ) -> Result<(), Error> {
        let terms = [tenant.to_string(), name.to_string(), version.to_string()];
        self.write(move |c| {
            let [tenant, name, version] = &terms;
            let changed = execute(
                c,
                SET_REQUIREMENTS,
                (tenant, name, version, to_json(&requirements)?),
            )?;
            if changed == 0 {
                return Err(Error::NotFound(format!("skill `{name}` version `{version}`")));
            }
            Ok(())
        })
        .await
    }

    async fn delete_version(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        version: &Version,
    ) -> Result<SkillRecord, Error> {
        let owner = tenant.clone();
        let terms = [tenant.to_string(), name.to_string(), version.to_string()];
        self.write(move |c| {
            let [_, name, version] = &terms;
            let deleted = first(c, BY_VERSION, terms.each_ref(), record)?
                .ok_or_else(|| Error::NotFound(format!("skill `{name}` version `{version}`")))?;
            execute(c, DELETE, terms.each_ref())?;
            storage::take(c, &owner, deleted.archive_bytes)?;
            Ok(deleted)
        })
        .await
    }

    async fn skill_digest_is_used(&self, digest: &Digest) -> Result<bool, Error> {
        let digest = digest.to_string();
        self.read(move |c| exists(c, DIGEST_IS_USED, [digest])).await
    }

    /// Seeks from one skill's first row to the next skill's: as many seeks as rows, however many versions lie between.
    async fn skills(
        &self,
        tenant: &Tenant,
        after: Option<SkillName>,
        rows: u32,
    ) -> Result<Vec<SkillRecord>, Error> {
        let tenant = tenant.to_string();
        self.read(move |c| {
            let mut found: Vec<SkillRecord> = Vec::new();
            for _ in 0..rows {
                let last = found.last().map(|skill| &skill.name).or(after.as_ref());
                // Every name sorts after the empty text.
                let last = last.map_or("", SkillName::as_str);
                let Some(next) = first(c, NEXT_LATEST, (&tenant, last), record)? else {
                    break;
                };
                found.push(next);
            }
            Ok(found)
        })
        .await
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        after: Option<u64>,
        rows: u32,
    ) -> Result<Vec<PushedSkill>, Error> {
        let below = after.map_or(i64::MAX, |push| i64::try_from(push).unwrap_or(i64::MAX));
        let terms = (tenant.to_string(), name.to_string(), below, rows);
        self.read(move |c| {
            all(c, VERSIONS, terms, |row| {
                Ok(PushedSkill {
                    push: row.get("push")?,
                    skill: record(row)?,
                })
            })
        })
        .await
    }
}

fn publish(c: &Connection, skill: &SkillRecord) -> Result<Published, Error> {
    let what = || format!("skill `{}` version `{}`", skill.name, skill.version);
    let terms = (
        skill.tenant.as_str(),
        skill.name.as_str(),
        skill.version.to_string(),
    );
    match first(c, BY_VERSION, (terms.0, terms.1, &terms.2), record)? {
        Some(existing) if existing.digest == skill.digest => {
            // A declared version has a rank of its own; among contents without one the last push is `latest`.
            if skill.manifest.version.is_none() {
                let pushed_by = skill.pushed_by.map(|key| key.to_string());
                execute(
                    c,
                    PUSH_AGAIN,
                    (terms.0, terms.1, &terms.2, &skill.folder, pushed_by),
                )?;
            }
            return Ok(Published::Same(Box::new(existing)));
        }
        Some(_) => return Err(Conflict::VersionExists.of(what())),
        None => {}
    }
    if let Some(other) = same_import(c, skill)? {
        return Err(Conflict::SameImport(other).of(what()));
    }
    c.prepare_cached(INSERT)?.execute(named_params! {
        ":tenant": skill.tenant.as_str(),
        ":name": skill.name.as_str(),
        ":version": skill.version.to_string(),
        ":rank": skill.version.release().map(rank),
        ":digest": skill.digest.to_string(),
        ":manifest": to_json(&skill.manifest)?,
        ":archive_bytes": skill.archive_bytes,
        ":unpacked_bytes": skill.unpacked_bytes,
        ":files": skill.files,
        ":folder": skill.folder,
        ":pushed_by": skill.pushed_by.map(|key| key.to_string()),
        ":requirements": to_json(&skill.requirements)?,
        ":created_at": skill.created_at.as_microsecond(),
    })?;
    storage::add(c, &skill.tenant, skill.archive_bytes)?;
    Ok(Published::New)
}

/// A skill that programs import by the path of one of this skill's modules, or the reverse.
fn same_import(c: &Connection, skill: &SkillRecord) -> Result<Option<SkillName>, Error> {
    let tenant = skill.tenant.as_str();
    for (above, label) in skill.name.above() {
        let mut rows = c.prepare_cached(ABOVE)?;
        let mut rows = rows.query((tenant, above))?;
        while let Some(row) = rows.next()? {
            let modules: Vec<String> = json(row, "modules")?;
            if modules.contains(&label) {
                return text(row, "name").map(Some);
            }
        }
    }
    if skill.manifest.modules.is_empty() {
        return Ok(None);
    }
    let (from, to) = (format!("{}.", skill.name), format!("{}/", skill.name));
    let mut rows = c.prepare_cached(BELOW)?;
    let mut rows = rows.query((tenant, from, to))?;
    while let Some(row) = rows.next()? {
        let below: SkillName = text(row, "name")?;
        let label = below.above().find(|(above, _)| *above == skill.name.as_str());
        if label.is_some_and(|(_, label)| skill.manifest.modules.contains(&label)) {
            return Ok(Some(below));
        }
    }
    Ok(None)
}

/// Sorts as text the way releases sort by precedence: 20 digits hold any u64.
fn rank([major, minor, patch]: [u64; 3]) -> String {
    format!("{major:020}.{minor:020}.{patch:020}")
}

pub(super) fn find(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    selector: &Selector,
) -> Result<Option<SkillRecord>, Error> {
    let (tenant, name) = (tenant.as_str(), name.as_str());
    match selector {
        Selector::Latest => first(c, LATEST, (tenant, name), record),
        Selector::Version(version) => first(c, BY_VERSION, (tenant, name, version.to_string()), record),
        Selector::Digest(digest) => first(c, BY_DIGEST, (tenant, name, digest.to_string()), record),
    }
}

/// Identifies a row, even if it is deleted and its content pushed again. Everything else of a row changes only together with
/// its `push`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowKey {
    tenant: Tenant,
    name: SkillName,
    version: String,
    push: u64,
    digest: String,
    requirements: String,
    created_at: i64,
}

/// The key of the row that [`find`] would read, without its manifest.
pub(super) fn row_key(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    selector: &Selector,
) -> Result<Option<RowKey>, Error> {
    let (sql, third) = match selector {
        Selector::Latest => (ROW_KEY_OF_LATEST, None),
        Selector::Version(version) => (ROW_KEY_BY_VERSION, Some(version.to_string())),
        Selector::Digest(digest) => (ROW_KEY_BY_DIGEST, Some(digest.to_string())),
    };
    let terms = [Some(tenant.as_str()), Some(name.as_str()), third.as_deref()];
    let terms = params_from_iter(terms.into_iter().flatten());
    first(c, sql, terms, |row| {
        Ok(RowKey {
            tenant: tenant.clone(),
            name: name.clone(),
            version: row.get("version")?,
            push: row.get("push")?,
            digest: row.get("digest")?,
            requirements: row.get("requirements")?,
            created_at: row.get("created_at")?,
        })
    })
}

fn record(row: &Row<'_>) -> Result<SkillRecord, Error> {
    Ok(SkillRecord {
        tenant: text(row, "tenant")?,
        name: text(row, "name")?,
        version: text(row, "version")?,
        digest: text(row, "digest")?,
        manifest: json(row, "manifest")?,
        archive_bytes: row.get("archive_bytes")?,
        unpacked_bytes: row.get("unpacked_bytes")?,
        files: row.get("files")?,
        folder: row.get("folder")?,
        pushed_by: optional_text(row, "pushed_by")?,
        requirements: json(row, "requirements")?,
        created_at: time(row, "created_at")?,
    })
}
