-- How often Sites had been switched off when a grant was issued: one of an earlier number is dead (contract 6). Grants of
-- before this column count as ended; they last five minutes.
alter table site_grants add column generation bigint not null default 0;
alter table site_grants alter column generation drop default;
