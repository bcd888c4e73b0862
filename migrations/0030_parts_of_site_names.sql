-- Sites, as repositories in 0029.
do $$
declare
  place text;
begin
  select n.nspname into place
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace
   where e.extname = 'pg_trgm';
  if place is not null then
    execute format('create index sites_name_parts on sites using gin (lower(name) %I.gin_trgm_ops)', place);
  end if;
end
$$;
