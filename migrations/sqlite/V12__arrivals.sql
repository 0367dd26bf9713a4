-- When parts of stdout, stderr and the log arrived, in order. Null for executions of earlier releases.
alter table execution_results add column arrivals text; -- JSON
