create table published (
    snapshot     varchar not null,
    published_at timestamp not null
);
comment on table published is 'Which state of the journal this file shows.';
comment on column published.snapshot is 'Hash of the journal''s files and of the migrations.';
comment on column published.published_at is 'When the file was built.';
