import type { Schemas } from '../../api/contract.ts';
import { TextLink } from '../text-link.tsx';
import { actorInWords } from './event-words.ts';

type Event = Schemas['ListedAuditEvent'];

/** The actor by name, with a link to the account or key. */
export function Who({ of: event }: { of: Event }) {
  const { kind, id, name } = event.actor;
  if (id === null) return <bdi>{name ?? actorInWords(event, kind)}</bdi>;
  return <Named kind={kind} id={id} name={name} />;
}

/** The target by name if known, otherwise by id. */
export function OnWhat({ of: { target, targetName } }: { of: Event }) {
  return <Named kind={target.kind} id={target.id} name={targetName} />;
}

function Named({ kind, id, name }: { kind: string; id: string; name: string | null }) {
  const shown = name === null ? <code title={id}>{id}</code> : <bdi title={id}>{name}</bdi>;
  if (kind === 'user')
    return (
      <TextLink to="/admin/users/$id" params={{ id }} inherit>
        {shown}
      </TextLink>
    );
  // That page redirects if it is the other kind of key.
  if (kind === 'api_key' || kind === 'service_key')
    return (
      <TextLink to="/admin/user-keys/$id" params={{ id }} inherit>
        {shown}
      </TextLink>
    );
  if (kind === 'environment')
    return (
      <TextLink to="/environments/$id" params={{ id }} inherit>
        {shown}
      </TextLink>
    );
  return shown;
}
