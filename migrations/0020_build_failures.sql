-- Why a build failed: a deploy whose build had wrong_inputs ends as config_error. Null: it did not fail, or before this column.
alter table build_jobs add column failure text;
