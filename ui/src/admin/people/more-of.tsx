import { TextLink } from '../text-link.tsx';

/** Where else there is something about this person: a row of their facts. */
export function MoreOf({ id }: { id: string }) {
  return (
    <>
      <dt>More</dt>
      <dd>
        <TextLink to="/admin/user-keys" search={{ owner: id }} inherit>
          Keys
        </TextLink>
        {' · '}
        <TextLink to="/admin/audit" search={{ actor: id }} inherit>
          What they did
        </TextLink>
        {' · '}
        <TextLink to="/admin/audit" search={{ target: id }} inherit>
          What was done to the account
        </TextLink>
      </dd>
    </>
  );
}
