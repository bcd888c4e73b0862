-- Browser grants for private sites, and the switch that ends them all.

-- `generation` counts how often Sites was switched off: grants from before stay ended after it is switched on (contract 6).
create table sites_switch (
  only_row boolean primary key default true constraint sites_switch_only_row_check check (only_row),
  generation bigint not null
);
insert into sites_switch (generation) values (1);

-- Every browser grant that was issued, for the owner of the site to read. Never the secret of the grant.
create table site_grants (
  id text primary key,
  site_id text not null references sites (id) on delete cascade,
  user_id text not null,
  -- The epoch of the site and the generation of the switch at that time: with an older number the grant is ended.
  epoch bigint not null,
  generation bigint not null default 0,
  issued_at timestamptz not null,
  ends_at timestamptz not null,
  address text,
  agent text
);
create index site_grants_by_site on site_grants (site_id, issued_at desc);
create index site_grants_by_end on site_grants (ends_at);
