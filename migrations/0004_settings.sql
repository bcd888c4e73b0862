-- Every version of every configuration document; the newest is in force (contract 2).
create table config_documents (
  name text not null,
  version int not null constraint config_documents_version_check check (version > 0),
  value jsonb not null,
  changed_at timestamptz not null,
  changed_by text,
  primary key (name, version)
);
