-- Where a version came from: the name of its folder or archive, and the id of the API key.
alter table skills add column folder text;
alter table skills add column pushed_by text;
