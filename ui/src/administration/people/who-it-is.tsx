import { TextLink } from '../text-link.tsx';

/** The last rows of a person's facts: their ids, and links to related pages. */
export function WhoItIs({ of: { id, subject } }: { of: { readonly id: string; readonly subject: string } }) {
  return (
    <>
      <dt>Id</dt>
      <dd>
        <code>{id}</code>
      </dd>
      <dt>Subject</dt>
      <dd>
        <code>{subject}</code>
      </dd>
      <dt>More</dt>
      <dd>
        <TextLink to="/admin/user-keys" search={{ owner: id }} inherit>
          Keys
        </TextLink>
        {' · '}
        <TextLink to="/admin/audit" search={{ actor: id }} inherit>
          Events by this person
        </TextLink>
        {' · '}
        <TextLink to="/admin/audit" search={{ target: id }} inherit>
          Events on the account
        </TextLink>
      </dd>
    </>
  );
}
