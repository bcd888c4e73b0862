-- Sites have notices of their own: they expire too (contract 10.14). The subject is the site's id then.
alter table notices drop constraint notices_kind_check;
alter table notices add constraint notices_kind_check check (kind in (
  'key_expires_7d', 'key_expires_1d', 'key_expired', 'key_exposed', 'key_dead_use', 'key_suspended',
  'site_expires_7d', 'site_expires_1d', 'site_expired'));
