-- How many files Postern left out, by the rule of each: [{"rule": "._*", "count": 3}].
alter table site_versions add column left_out jsonb not null default '[]';
alter table site_uploads add column left_out jsonb not null default '[]';
