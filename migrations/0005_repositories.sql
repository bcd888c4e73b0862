-- The registry of repositories. `full_name_key` is the name in lower case.
create table repositories (
  id text primary key,
  full_name text not null,
  full_name_key text not null unique,
  clone_url text not null,
  default_branch text not null,
  environment_defaults jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
