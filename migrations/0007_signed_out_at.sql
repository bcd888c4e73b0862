-- When an account was last signed out everywhere, by a new password, by an administrator, or by being disabled: what was
-- proved before, such as a sign-in that is not finished yet, no longer counts.
alter table accounts add column signed_out_at timestamptz;
