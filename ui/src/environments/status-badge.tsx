import { Badge } from '@mantine/core';
import {
  type Deploy,
  deployStatusWords,
  type Environment,
  type Service,
  serviceStatusWords,
  statusWords,
} from './environment-words.ts';

export function EnvironmentBadge({ of: status }: { of: Environment['status'] }) {
  const [label, color] = statusWords[status];
  return <Badge color={color}>{label}</Badge>;
}

export function DeployBadge({ of: status }: { of: Deploy['status'] }) {
  const [label, color] = deployStatusWords[status];
  return <Badge color={color}>{label}</Badge>;
}

export function ServiceBadge({ of: status }: { of: Service['status'] }) {
  const [label, color] = serviceStatusWords[status];
  return <Badge color={color}>{label}</Badge>;
}
