-- Notices about a deploy that failed.
alter table notices drop constraint notices_kind_check;
alter table notices add constraint notices_kind_check check (kind in (
  'key_expires_7d', 'key_expires_1d', 'key_expired', 'key_exposed', 'key_dead_use', 'key_suspended',
  'site_expires_7d', 'site_expires_1d', 'site_expired', 'site_taken_down', 'site_put_back',
  'environment_expires_1d', 'environment_expires_1h', 'environment_expired', 'environment_deploy_failed'));
