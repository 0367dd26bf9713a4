-- `request` or `skill`: what the working directory started with. Null for executions of earlier releases.
alter table executions add column workdir text;
