-- Accounts of the built-in provider that were deleted here, so that a subject this installation never had (the owner
-- of an imported key) is not taken for one whose account is gone.
create table account_tombstones (
  subject text primary key,
  deleted_at timestamptz not null
);

-- Until now a deleted account left its row in users alone. Only accounts have an e-mail or have signed in; owners
-- that were merely heard of have neither.
insert into account_tombstones (subject, deleted_at)
select distinct u.subject, u.created_at from users u
 where (u.email is not null or u.last_login_at is not null)
   and not exists (select 1 from accounts a where a.user_id = u.id)
on conflict do nothing;
