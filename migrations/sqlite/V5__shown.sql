-- What called code has shown, the exception that ended it, and what programs log. Before, there was none of it.
alter table execution_results add column results text not null default '[]'; -- JSON
alter table execution_results add column results_truncated integer not null default 0;
alter table execution_results add column exception text; -- JSON
alter table execution_results add column log_lines text not null default '[]'; -- JSON
alter table execution_results add column log_lines_truncated integer not null default 0;
