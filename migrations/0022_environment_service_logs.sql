-- Logs of services that run on Kubernetes: the worker copies them here, and web reads them. Many lines in one row, as in
-- build_log_chunks. The ids of lines count from 1 in each service, also after the oldest rows were removed.
create table environment_service_logs (
  environment_id text not null references environments (id) on delete cascade,
  service text not null,
  first_line int not null,
  lines jsonb not null,
  -- Of the lines, as they count for the limit of the policy.
  bytes int not null,
  primary key (environment_id, service, first_line)
);
