import { Fragment } from 'react';

/** An address or the path of a field: wrapped after a slash or a dot, never inside a part. */
export function Wrapped({ text }: { text: string }) {
  return text.split(/(?<=[/.])/).map((part, at) => (
    // The same part may come twice; parts never change places.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={at}>
      {part}
      <wbr />
    </Fragment>
  ));
}
