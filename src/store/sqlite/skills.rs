//! Published versions of skills.

use rusqlite::{Connection, Row, named_params};

use super::row::{json, text, time, to_json};
use super::storage;
use crate::ids::{Digest, Tenant};
use crate::skill::{Selector, SkillName, Version};
use crate::store::{Conflict, Error, Published, SkillRecord};

macro_rules! select {
    ($manifest:literal, $which:literal) => {
        concat!(
            "select tenant, name, version, push, digest, ",
            $manifest,
            " as manifest, archive_bytes, unpacked_bytes, files, created_at from skills where ",
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

macro_rules! select_stamp {
    ($which:literal) => {
        concat!(
            "select version, push, digest, created_at from skills where ",
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
const STAMP_BY_VERSION: &str = by_version!(select_stamp);
const STAMP_BY_DIGEST: &str = by_digest!(select_stamp);
const STAMP_OF_LATEST: &str = latest!(select_stamp);
pub(super) const NEXT_LATEST: &str =
    select_row!("tenant = ?1 and name > ?2 order by name, rank desc, push desc limit 1");
pub(super) const VERSIONS: &str =
    select_row!("tenant = ?1 and name = ?2 and push < ?3 order by push desc limit ?4");

const INSERT: &str = "
    insert into skills (
        tenant, name, version, push, rank, digest, manifest,
        archive_bytes, unpacked_bytes, files, created_at
    ) values (
        :tenant, :name, :version,
        1 + coalesce((select max(push) from skills where tenant = :tenant and name = :name), 0),
        :rank, :digest, :manifest,
        :archive_bytes, :unpacked_bytes, :files, :created_at
    )";
/// Skills above and below in the tree of imports, with the modules of each version.
pub(super) const ABOVE: &str = "select name, coalesce(manifest ->> '$.modules', '[]') as modules from skills where tenant = ?1 and name = ?2";
pub(super) const BELOW: &str =
    "select distinct name from skills where tenant = ?1 and name > ?2 and name < ?3";
const DELETE: &str = "delete from skills where tenant = ?1 and name = ?2 and version = ?3";
const DIGEST_IS_USED: &str = "select exists (select 1 from skills where digest = ?1)";

pub(super) fn publish(c: &Connection, skill: &SkillRecord) -> Result<Published, Error> {
    match by_version(c, &skill.tenant, &skill.name, &skill.version) {
        Ok(there) if there.digest == skill.digest => return Ok(Published::Same(Box::new(there))),
        Ok(_) => return Err(Conflict::VersionExists.into()),
        Err(Error::NotFound) => {}
        Err(other) => return Err(other),
    }
    if let Some(other) = same_import(c, skill)? {
        return Err(Conflict::SameImport(other).into());
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
        ":created_at": skill.created_at.as_microsecond(),
    })?;
    storage::add(c, &skill.tenant, skill.archive_bytes)?;
    Ok(Published::New)
}

/// A skill that programs would import by the path of one of this skill's modules, or the other way round.
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
) -> Result<SkillRecord, Error> {
    let scope = (tenant.as_str(), name.as_str());
    match selector {
        Selector::Latest => one(c, LATEST, scope),
        Selector::Version(version) => by_version(c, tenant, name, version),
        Selector::Digest(digest) => one(c, BY_DIGEST, (scope.0, scope.1, digest.to_string())),
    }
}

/// What no two rows share, even if one is deleted and its content pushed again. Rows never change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    tenant: Tenant,
    name: SkillName,
    version: String,
    push: u64,
    digest: String,
    created_at: i64,
}

/// The stamp of what [`find`] would find, without its manifest.
pub(super) fn stamp(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    selector: &Selector,
) -> Result<Stamp, Error> {
    let (sql, third) = match selector {
        Selector::Latest => (STAMP_OF_LATEST, None),
        Selector::Version(version) => (STAMP_BY_VERSION, Some(version.to_string())),
        Selector::Digest(digest) => (STAMP_BY_DIGEST, Some(digest.to_string())),
    };
    let mut statement = c.prepare_cached(sql)?;
    let scope = [Some(tenant.as_str()), Some(name.as_str()), third.as_deref()];
    let given = scope.into_iter().flatten();
    let mut rows = statement.query(rusqlite::params_from_iter(given))?;
    let row = rows.next()?.ok_or(Error::NotFound)?;
    Ok(Stamp {
        tenant: tenant.clone(),
        name: name.clone(),
        version: row.get("version")?,
        push: row.get("push")?,
        digest: row.get("digest")?,
        created_at: row.get("created_at")?,
    })
}

fn by_version(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    version: &Version,
) -> Result<SkillRecord, Error> {
    one(
        c,
        BY_VERSION,
        (tenant.as_str(), name.as_str(), version.to_string()),
    )
}

fn one(c: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<SkillRecord, Error> {
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query_and_then(params, record)?;
    rows.next().ok_or(Error::NotFound)?
}

/// From one skill's first row straight to the next skill's: as many seeks as rows, however many versions lie between.
pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<&SkillName>,
    rows: u32,
) -> Result<Vec<SkillRecord>, Error> {
    let mut found: Vec<SkillRecord> = Vec::new();
    for _ in 0..rows {
        // Every name sorts after the empty text.
        let last = found
            .last()
            .map(|skill| &skill.name)
            .or(after)
            .map_or("", SkillName::as_str);
        match one(c, NEXT_LATEST, (tenant.as_str(), last)) {
            Ok(next) => found.push(next),
            Err(Error::NotFound) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

pub(super) fn versions(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    after: Option<u64>,
    rows: u32,
) -> Result<Vec<(u64, SkillRecord)>, Error> {
    let below = after.map_or(i64::MAX, |push| i64::try_from(push).unwrap_or(i64::MAX));
    let mut statement = c.prepare_cached(VERSIONS)?;
    let found = statement.query_and_then((tenant.as_str(), name.as_str(), below, rows), |row| {
        Ok((row.get("push")?, record(row)?))
    })?;
    found.collect()
}

pub(super) fn delete(
    c: &Connection,
    tenant: &Tenant,
    name: &SkillName,
    version: &Version,
) -> Result<SkillRecord, Error> {
    let gone = by_version(c, tenant, name, version)?;
    c.prepare_cached(DELETE)?
        .execute((tenant.as_str(), name.as_str(), version.to_string()))?;
    storage::take(c, tenant, gone.archive_bytes)?;
    Ok(gone)
}

pub(super) fn digest_is_used(c: &Connection, digest: &Digest) -> Result<bool, Error> {
    let mut statement = c.prepare_cached(DIGEST_IS_USED)?;
    Ok(statement.query_row([digest.to_string()], |row| row.get(0))?)
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
        created_at: time(row, "created_at")?,
    })
}
