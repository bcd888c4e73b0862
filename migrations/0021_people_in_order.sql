-- The list of people goes by name.
create index users_by_name on users (lower(name), id);
