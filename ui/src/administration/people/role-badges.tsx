import { Badge } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import common from '../admin.module.css';

type RoleProps = {
  readonly roles: readonly Schemas['Role'][];
  /** The roles that come through a group, which are marked. */
  readonly direct?: readonly Schemas['Role'][];
};

export function RoleBadges({ roles, direct = roles }: RoleProps) {
  if (roles.length === 0) return <span className="quiet">None</span>;
  return (
    <span className={common['badges']}>
      {roles.map((role) => (
        <Badge key={role} color={role === 'admin' ? 'blue' : 'gray'}>
          {role}
          {!direct.includes(role) && ' by group'}
        </Badge>
      ))}
    </span>
  );
}
