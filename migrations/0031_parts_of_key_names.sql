-- Keys, as repositories in 0029. A step of its own: no key can change while the index is built.
do $$
declare
  place text;
begin
  select n.nspname into place
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace
   where e.extname = 'pg_trgm';
  if place is not null then
    execute format('create index api_keys_name_parts on api_keys using gin (lower(name) %I.gin_trgm_ops)', place);
  end if;
end
$$;
