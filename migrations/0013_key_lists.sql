-- Lists of keys in the order of their name, last use or end, and by scope; and refusals found by any request they count.

-- A row for every key, from its creation on: only so can one index put the keys that were never used in their place.
alter table api_key_last_used alter column last_used_at drop not null;
insert into api_key_last_used (key_id, last_used_at)
select id, null from api_keys on conflict (key_id) do nothing;
create function begin_api_key_use() returns trigger language plpgsql as $$
begin
  insert into api_key_last_used (key_id, last_used_at) values (new.id, null);
  return null;
end $$;
create trigger api_keys_use_begun after insert on api_keys for each row execute function begin_api_key_use();

create index api_key_last_used_in_order on api_key_last_used (last_used_at desc nulls last, key_id);
create index api_keys_in_name_order on api_keys (lower(name), id);
create index api_keys_of_type_in_name_order on api_keys (type, lower(name), id);
create index api_keys_in_expiry_order on api_keys (expires_at, id);
create index api_keys_of_type_in_expiry_order on api_keys (type, expires_at, id);
create index api_keys_by_scope on api_keys using gin (scopes);

-- One event counts many refusals of a minute; its details name the requests it was last told of.
create index audit_events_by_counted_request on audit_events using gin ((details -> 'requestIds'))
  where event = 'auth.denied';
