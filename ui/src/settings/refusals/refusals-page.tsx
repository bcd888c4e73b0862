import { Alert, Anchor, Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { ApiProblem } from '../../api/client.ts';
import { useIsAdministrator } from '../../api/queries.ts';
import { Problem } from '../../shell/problem.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { TableLoading } from '../../lists/table.tsx';
import { refusalOf } from '../queries.ts';
import { Explanation } from './explanation.tsx';
import { LastRefusals } from './last-refusals.tsx';
import { refusalSearch } from './refusal-search.ts';
import styles from './refusals.module.css';

const route = getRouteApi('/settings/refusals');

/** Explains a refused request with one of the user's keys, by the id that every answer has. */
export function RefusalsPage() {
  const { requestId = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, isFetching, refetch } = useQuery(refusalOf(requestId));

  function ask(text: string): void {
    const asked = refusalSearch({ requestId: text });
    if (asked.requestId === requestId) void refetch();
    else void navigate({ search: asked });
  }

  const isUnknown = error instanceof ApiProblem && error.status === 404;
  return (
    <>
      <PageHead
        title="Why was this refused?"
        intro="Choose a refused request, or enter the id from a response of the API. You see why it was refused and what to do."
      />
      {/* A new one for each address, so that going back shows the id that was asked for. */}
      <Form key={requestId} first={requestId} onAsk={ask} />
      <div role="status">
        {requestId !== '' && isFetching && data === undefined && !isUnknown && (
          <TableLoading what="the refusal" />
        )}
        {requestId !== '' && isUnknown && (
          <Unknown requestId={requestId} isBusy={isFetching} onRetry={() => void refetch()} />
        )}
      </div>
      {error !== null && !isUnknown && <Problem error={error} onRetry={() => void refetch()} />}
      {data !== undefined && <Explanation of={data} />}
      {requestId === '' && <LastRefusals />}
    </>
  );
}

function Form({ first, onAsk }: { first: string; onAsk: (text: string) => void }) {
  const [text, setText] = useState(first);

  function submit(event: FormEvent): void {
    event.preventDefault();
    onAsk(text);
  }

  return (
    <form className={styles['form']} onSubmit={submit}>
      <TextInput
        label="Request id"
        description="In the response’s request_id, or its header x-request-id"
        placeholder="0b8f6c7e-8f0f-4c1a-9f43-3f4dd1f7c9a1"
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        className={styles['field']}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <Button type="submit">Explain</Button>
    </form>
  );
}

type UnknownProps = {
  readonly requestId: string;
  readonly isBusy: boolean;
  readonly onRetry: () => void;
};

function Unknown({ requestId, isBusy, onRetry }: UnknownProps) {
  const isAdministrator = useIsAdministrator();
  return (
    <Alert color="yellow" title="No refused request with one of your keys has this id">
      <ul className={styles['reasons']}>
        <li>It may be too early: you can look up a refusal one minute after it.</li>
        <li>
          The status may not have been 401, 403 or 429. For other errors, read the message in the response.
        </li>
        <li>
          Postern keeps the first and the last ten of many equal refusals in a minute. Try the id of a later
          one.
        </li>
        <li>
          The request may have used someone else’s key, or none.
          {isAdministrator && (
            <>
              {' '}
              You are an administrator:{' '}
              <Anchor
                inherit
                underline="always"
                renderRoot={(props) => <Link to="/admin/audit" search={{ requestId }} {...props} />}
              >
                find it in the audit log
              </Anchor>
              .
            </>
          )}
        </li>
      </ul>
      <Button size="xs" variant="default" loading={isBusy} onClick={onRetry}>
        Search again
      </Button>
    </Alert>
  );
}
