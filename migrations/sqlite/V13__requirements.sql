-- Packages that were added to a published version, beside its files.
alter table skills add column requirements text not null default '[]'; -- JSON
-- Packages that were added to the skill and those of the request. Null for executions of earlier releases.
alter table executions add column requirements text; -- JSON
