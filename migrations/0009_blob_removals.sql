-- A removal that is done is remembered for a while: an upload that began before it may have counted on those bytes.
alter table blob_removals add column removed_at timestamptz;
create index blob_removals_by_end on blob_removals (removed_at);
