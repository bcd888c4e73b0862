-- Links that are shown on every Environment. `link` is a template with references such as ${environment.branch}.
create table metadata_links (
  id text primary key,
  position integer not null,
  text text not null,
  icon text not null,
  link text not null
);
