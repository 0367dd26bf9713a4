-- The promises that a sandbox kept only as well as its host let it. Before, every one was kept.
alter table executions add column degraded text not null default '[]'; -- JSON
