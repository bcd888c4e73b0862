-- When the identity provider first said that there is such a person. Only of those it can be said later that they were
-- deleted: an imported key may name a subject that never was.
alter table users add column found_at timestamptz;
update users set found_at = last_login_at where last_login_at is not null;
