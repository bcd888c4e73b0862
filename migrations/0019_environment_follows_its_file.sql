-- Null until a caller chose whether an Environment follows its branch, or postern.yaml was read.
alter table environments alter column auto_track drop not null;
