-- An e-mail address is unique, and found, by the spelling that the program counts it under: only A to Z have a small
-- form, whatever the locale of the database (accounts/email.ts).
create unique index accounts_by_canonical_email on accounts (lower(email collate "C"));
drop index accounts_by_email;
