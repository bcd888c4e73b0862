-- Lists of files are mostly digests, which do not get smaller by compressing; trying costs more than storing them.
alter table site_versions alter column manifest set storage external;
alter table site_uploads alter column files set storage external;
