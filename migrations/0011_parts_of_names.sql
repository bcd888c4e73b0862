-- Lists find a name by any part of it (decision 0043). With trigrams the database looks the part up; without them it reads every
-- name. PostgreSQL ships pg_trgm, and the owner of a database may create it. Where a server lacks or forbids it, `doctor` advises.
do $$
declare
  place text;
begin
  begin
    create extension if not exists pg_trgm;
  exception
    when others then raise notice 'pg_trgm cannot be created: %', sqlerrm;
  end;
  -- The extension may be in another schema already.
  select n.nspname into place
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace
   where e.extname = 'pg_trgm';
  if place is not null then
    execute format('create index repositories_name_parts on repositories using gin (full_name_key %I.gin_trgm_ops)', place);
    execute format('create index sites_name_parts on sites using gin (lower(name) %I.gin_trgm_ops)', place);
    execute format('create index api_keys_name_parts on api_keys using gin (lower(name) %I.gin_trgm_ops)', place);
  end if;
end
$$;
