-- How often Sites had been switched off when a grant was issued: one of an earlier number is dead (contract 6). Grants of
-- before this column, and those that a process of an older version writes meanwhile, count as ended; they last five minutes.
alter table site_grants add column generation bigint not null default 0;
