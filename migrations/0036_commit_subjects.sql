-- The first line of the commit's message, for people. Null: the commit was not read, or git did not say.
alter table deploys add column commit_subject text;
